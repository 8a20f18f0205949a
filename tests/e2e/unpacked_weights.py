"""Deep networks whose weights are most of the process. unpacked_weights.py TOOL FOLDER"""
import json
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import graphs, nmse, outputs, printed

tool, d = sys.argv[1:]
WRITTEN = 'tile/unpacked/weight'


def deep(layers, rows, act):
    """Maps of few channels, which are cut where there are many rows of them, and then many channels of few pixels."""
    net, c = Net(seed=3), 8
    x = net.op(act, net.conv(net.input('x', [1, 3, rows, rows]), 3, c, pads=[1] * 4))
    for _ in range(3):
        x = net.op(act, net.conv(x, c, c, pads=[1] * 4))
    x = net.op('AveragePool', x, kernel_shape=[rows // 24] * 2, strides=[rows // 24] * 2)
    for _ in range(layers):
        x = net.op(act, net.conv(x, c, 384, pads=[1] * 4))
        c = 384
    net.output(x, [1, c, 24, 24])
    return net.model()


def packed(model, least):
    """Convolutions of large weights that a runtime knows."""
    known = {t.name: np.prod(t.dims) * 4 for g in graphs(model.graph) for t in g.initializer}
    return [n.input[1] for g in graphs(model.graph) for n in g.node if n.op_type == 'Conv' and known.get(n.input[1], 0) >= least]


for name, model, loops in ('deep', deep(8, 96, 'Relu'), False), ('maps', deep(6, 768, 'Relu'), True):
    path, out = save(model, f'{d}/{name}.onnx'), f'{d}/{name}_tiled.onnx'
    fed = {'x': np.random.default_rng(0).standard_normal([1, 3, *[96 if name == 'deep' else 768] * 2], dtype='f4')}
    args = [path, '-o', out, '--goal', 'memory', '--target', 'cpu-generic', '--max-slowdown', 30]
    plan, written = json.loads(printed(tool, *args, '--json')), onnx.load(out)
    onnx.checker.check_model(out)
    least = plan['unpacked_weights_from_bytes']
    assert plan['in_branch'] and plan['data_file'] and not packed(written, least), (name, least, packed(written, least))
    assert packed(model, least), name
    made = [n for g in graphs(written.graph) for n in g.node if n.op_type == 'Reshape' and n.output[0].startswith(WRITTEN)]
    assert len(made) == len({n.input[0] for n in made}) == len(packed(model, least)), (name, len(made))
    assert (len(plan['regions']) > 0) == loops, (name, len(plan['regions']))
    assert plan['tiled']['process_bytes'] < 0.95 * plan['untiled']['process_bytes'], plan
    assert 'are read as they are' in printed(tool, *args)
    for want, got in zip(outputs(path, fed), outputs(out, fed)):
        assert got.shape == want.shape and nmse(got, want) < 1e-10, (name, nmse(got, want))
    printed(tool, *args, '--verify')
    # time that is not there, one file, another goal: weights are packed as ever
    for more in ['--max-slowdown', 0], ['--single-file'], ['--goal', 'time']:
        assert 'unpacked_weights_from_bytes' not in json.loads(printed(tool, *args, *more, '--json')), more
# what a body has instead of a function of the standard stays in order behind a weight that is handed on (bodies of loops name it anew)
path, out = save(deep(6, 768, 'HardSwish'), f'{d}/functions.onnx'), f'{d}/functions_tiled.onnx'
args = [path, '-o', out, '--goal', 'memory', '--target', 'cpu-generic', '--max-slowdown', 60]
assert json.loads(printed(tool, *args, '--json'))['unpacked_weights_from_bytes']
bodies = [g for g in graphs(onnx.load(out).graph) if any(n.op_type == 'SequenceInsert' for n in g.node)]
assert any(n.op_type == 'Conv' and n.input[1].startswith(WRITTEN) for g in bodies for n in g.node), 'no loop reads one'
for want, got in zip(outputs(path, fed), outputs(out, fed)):
    assert got.shape == want.shape and nmse(got, want) < 1e-10, nmse(got, want)

# maps that others read as they are: their convolution makes them so, and they are not there twice
net = Net(seed=4)
x = net.op('Relu', net.conv(net.input('x', [1, 16, 192, 192]), 16, 96, k=1))
rows = net.reshape(x, [1, 96, 192 * 192])
net.output(net.op('MatMul', rows, net.op('Transpose', rows, perm=[0, 2, 1])), [1, 96, 96])
path, out = save(net.model(), f'{d}/gram.onnx'), f'{d}/gram_tiled.onnx'
fed = {'x': np.random.default_rng(0).standard_normal([1, 16, 192, 192], dtype='f4')}
args = [path, '-o', out, '--goal', 'memory', '--target', 'cpu-generic']
plan, packed_plan = (json.loads(printed(tool, *args, *more, '--json')) for more in ([], ['--max-slowdown', 0]))
assert 'plain_maps' not in packed_plan, packed_plan
assert plan['plain_maps'] == 1 and plan['tiled']['process_bytes'] < 0.8 * packed_plan['tiled']['process_bytes'], plan
assert 'weights of 1 more convolution' in printed(tool, *args, '--verify')
written = onnx.load(out)
assert [n.input[0] for g in graphs(written.graph) for n in g.node if n.op_type == 'Reshape' and n.output[0].startswith(WRITTEN)]
for want, got in zip(outputs(path, fed), outputs(out, fed)):
    assert got.shape == want.shape and nmse(got, want) < 1e-10, nmse(got, want)
for more in ['--goal', 'time'], ['--runtime', 'openvino']:
    assert 'plain_maps' not in json.loads(printed(tool, *args, *more, '--json')), more

# all weights would take more time than there is; the largest alone, of few pixels, does not (two read it: it has no pieces)
vgg = '''model ir 8 opset 17
graph g {
  input %x : float32[1,64,168,168]
  init %w0 : float32[128,64,3,3] = random 1
  init %w1 : float32[256,128,3,3] = random 2
  init %w2 : float32[512,256,3,3] = random 3
  init %w3 : float32[512,512,3,3] = random 4
  init %w4 : float32[2304,512,4,4] = random 5
  %a = Conv(%x, %w0) {pads=[1,1,1,1]}
  %b = Relu(%a)
  %c = MaxPool(%b) {kernel_shape=[2,2],strides=[2,2]}
  %d = Conv(%c, %w1) {pads=[1,1,1,1]}
  %e = Relu(%d)
  %f = MaxPool(%e) {kernel_shape=[2,2],strides=[2,2]}
  %g = Conv(%f, %w2) {pads=[1,1,1,1]}
  %h = Relu(%g)
  %i = Conv(%h, %w3) {pads=[1,1,1,1]}
  %j = Relu(%i)
  %k = MaxPool(%j) {kernel_shape=[6,6],strides=[6,6]}
  %l = Conv(%k, %w4)
  %m = Neg(%k)
  %n = Conv(%m, %w4)
  %o = Add(%l, %n)
  %y = Relu(%o)
  output %y
}
'''
with open(f'{d}/vgg.ot', 'w') as f:
    f.write(vgg)
plan = json.loads(printed(tool, 'inspect', f'{d}/vgg.ot', '--goal', 'memory', '--target', 'cpu-generic', '--json'))
assert plan['unpacked_weights_from_bytes'] >= 16 << 20, plan.get('unpacked_weights_from_bytes')
assert plan['tiled']['process_bytes'] < 0.6 * plan['untiled']['process_bytes'], plan['tiled']
print('all good')
