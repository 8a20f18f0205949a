"""Files whose weights are Constant nodes against the same with initializers. lifted_constants.py TOOL FOLDER

The plan is the same, in every form and IR version; equal in ONNX Runtime; a file that nothing is tiled of is written back byte for byte.
"""
import json
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import nmse, nodes, outputs

tool, d = sys.argv[1], sys.argv[2]


def network(size, opset=13, ir=7):
    net = Net(seed=8, opset=opset)
    v, c = net.input('x', [1, 3, size, size]), 3
    for width in 16, 32, 16, 8:
        v = net.op('Conv', v, net.const(net.rng.normal(0, .2, (width, c, 3, 3))), pads=[1] * 4)
        v = net.op('BatchNormalization', v, *(net.uniform(width) for _ in range(4)))
        v = net.op('Relu', v)
        c = width
    net.output(v, [1, c, size, size])
    return net.model(ir=ir)


def in_nodes(m):
    """The same, its initializers as Constant nodes."""
    got = onnx.ModelProto()
    got.CopyFrom(m)
    del got.graph.initializer[:]
    made = [onnx.helper.make_node('Constant', [], [t.name], f'at_{t.name}', value=t) for t in m.graph.initializer]
    old = list(got.graph.node)
    del got.graph.node[:]
    got.graph.node.extend(made + old)
    return got


def tiled(path, out, *options):
    p = subprocess.run([tool, path, '-o', out, '--target', 'cpu-generic', '--threads', '1', '--json', *options], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def plan(told):
    return [(r['form'], r['nodes'], r['working_set_bytes']) for r in told['regions']], told['tiled']['peak_bytes']


x = np.random.default_rng(5).random((1, 3, 512, 512), dtype='f4')
for opset, ir in (13, 7), (13, 3):
    plain = network(512, opset, ir)
    listed = onnx.ModelProto()
    listed.CopyFrom(plain)
    if ir < 4:  # there, initializers are inputs, too
        listed.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in plain.graph.initializer)
    save(listed, f'{d}/listed.onnx')
    save(in_nodes(plain), f'{d}/held.onnx')
    for options in ['--force'], ['--goal', 'memory'], ['--runtime', 'portable', '--force'], ['--emit', 'engine', '--force']:
        want, got = tiled(f'{d}/listed.onnx', f'{d}/a.onnx', *options), tiled(f'{d}/held.onnx', f'{d}/b.onnx', *options)
        assert got['regions'] and (ir < 4 or plan(got) == plan(want)), (ir, options, plan(got), plan(want))
        if '--emit' in options: continue
        assert nmse(outputs(f'{d}/b.onnx', {'x': x})[0], outputs(f'{d}/held.onnx', {'x': x})[0]) < 1e-8, (ir, options)
        onnx.checker.check_model(f'{d}/b.onnx', full_check=True)
        held = [n for n in nodes(onnx.load(f'{d}/b.onnx').graph) if n.op_type == 'Constant' and n.name.startswith('at_')]
        assert ir < 4 or not held, held[0].name

for opset in 9, 13:  # 9 is read as a newer one, and written back as it was
    save(in_nodes(network(8, opset)), f'{d}/small.onnx')
    assert not tiled(f'{d}/small.onnx', f'{d}/same.onnx', '--goal', 'memory')['regions']
    assert open(f'{d}/small.onnx', 'rb').read() == open(f'{d}/same.onnx', 'rb').read(), opset
