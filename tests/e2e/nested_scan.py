"""Chains of element-wise operators, whose tiles are cut along channels and rows. nested_scan.py TOOL FOLDER"""
import json
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import outputs, printed

tool, d = sys.argv[1:]


def chain(shape, opset=17):
    net = Net(seed=5, opset=opset)
    x = net.input('x', shape)
    for k in range(4):
        x = net.op('Add', x, net.const(np.linspace(-1, 1, shape[1], dtype='f4').reshape([1, -1] + [1] * (len(shape) - 2))))
        x = net.op('Mul', x, net.op('Sigmoid', x))
    net.output(x, shape)
    return net.model()


def depth(graph):
    """Scans in Scans."""
    inner = [depth(a.g) for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
    return max(inner, default=0) + any(n.op_type == 'Scan' for n in graph.node)


def operators(graph):
    for n in graph.node:
        yield n.op_type
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from operators(a.g)


GROWTH = '''
import sys, numpy as np, onnxruntime as ort
o = ort.SessionOptions()
o.intra_op_num_threads = 1
s = ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider'])
x = {'x': np.random.default_rng(0).random(s.get_inputs()[0].shape, dtype='f4')}
held = lambda key: next(int(line.split()[1]) << 10 for line in open('/proc/self/status') if line.startswith(key))
open('/proc/self/clear_refs', 'w').write('5')
before = held('VmRSS')
for _ in range(3):
    s.run(None, x)
print(held('VmHWM') - before)
'''


def check(name, shape, scans, opset=17, holds=1.25, sequences=True, more=()):
    """scans: in one another; holds: at most, in sizes of the result."""
    path, out = save(chain(shape, opset), f'{d}/{name}.onnx'), f'{d}/{name}_tiled.onnx'
    args = [path, '-o', out, '--goal', 'memory', '--target', 'cpu-generic', *more]
    plan, written = json.loads(printed(tool, *args, '--json')), onnx.load(out)
    onnx.checker.check_model(out, full_check=True)
    assert [r['form'] for r in plan['regions']] == ['scan'], (name, plan['regions'])
    assert depth(written.graph) == scans, (name, depth(written.graph))
    assert ('SequenceLength' in set(operators(written.graph))) == sequences, name
    assert [o.name for o in written.graph.output] == [o.name for o in onnx.load(path).graph.output]
    fed = {'x': np.random.default_rng(0).standard_normal(shape, dtype='f4')}
    for want, got in zip(outputs(path, fed), outputs(out, fed)):
        assert got.shape == want.shape and np.array_equal(got, want), name
    printed(tool, *args, '--verify')
    if holds:
        grown = int(subprocess.run([sys.executable, '-c', GROWTH, out], capture_output=True, text=True, check=True).stdout)
        size = 4 * int(np.prod(shape))
        assert grown <= holds * size + (8 << 20), (name, grown, size)
        assert abs(plan['tiled']['growth_bytes'] - grown) <= 0.15 * grown, (name, plan['tiled']['growth_bytes'], grown)


check('image', [1, 32, 512, 512], 3)
check('volume', [1, 16, 32, 128, 128], 3)
check('batch', [4, 8, 512, 512], 2)
check('old', [1, 32, 512, 512], 3, opset=9, holds=0)
check('small', [1, 8, 128, 128], 1, sequences=False, holds=0, more=['--force', '--form', 'scan', '--l2', '64K'])
# who copies a slice all the same
check('other', [1, 32, 512, 512], 1, sequences=False, holds=0, more=['--runtime', 'portable'])
