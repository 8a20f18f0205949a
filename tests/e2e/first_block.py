"""Maps that grow from step to step, each normalised by what is global, so that no region cuts them. first_block.py TOOL FOLDER"""
import json
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import graphs, nmse, outputs, printed

tool, d = sys.argv[1:]


def gated(channels):
    net, had = Net(seed=3), 3
    x = net.input('x', [1, 3, 256, 256])
    for c in channels:
        x = net.op('Tanh', net.conv(x, had, c, pads=[1] * 4))
        x = net.op('Mul', x, net.op('Sigmoid', net.op('GlobalAveragePool', x)))
        had = c
    net.output(net.op('GlobalAveragePool', x), [1, had, 1, 1])
    return net.model()


path, out = save(gated([8, 16, 24, 32, 40, 48]), f'{d}/gated.onnx'), f'{d}/gated_tiled.onnx'
fed = {'x': np.random.default_rng(0).standard_normal([1, 3, 256, 256], dtype='f4')}
args = [path, '-o', out, '--goal', 'memory', '--target', 'cpu-generic', '--max-slowdown', 30]
plan, written = json.loads(printed(tool, *args, '--json')), onnx.load(out)
onnx.checker.check_model(out)
block = plan['first_block_bytes']
assert plan['in_branch'] and 4 << 20 < block <= 0.8 * plan['untiled']['growth_bytes'], plan
# it comes before the branch, which waits for it, in a graph without a pattern: one that reads a sequence
first, branch = (n for n in written.graph.node if n.op_type == 'If')
assert branch.input[0] == first.output[0]
body = next(a.g for a in first.attribute if a.name == 'then_branch')
assert [n.op_type for n in body.node] == ['SequenceLength', 'Mul', 'ConstantOfShape', 'Size', 'Cast'], body.node
assert [onnx.numpy_helper.to_array(t).tolist() for t in body.initializer] == [[block // 4]]
for want, got in zip(outputs(path, fed), outputs(out, fed)):
    assert got.shape == want.shape and nmse(got, want) < 1e-10, nmse(got, want)
printed(tool, *args, '--verify')
# time that is not there, another goal
for more in ['--max-slowdown', 0], ['--goal', 'time']:
    assert 'first_block_bytes' not in json.loads(printed(tool, *args, *more, '--json')), more
