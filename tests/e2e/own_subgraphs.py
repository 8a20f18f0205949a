"""Valid files that are hard to take: weights and shapes shared with subgraphs, stated shapes that are stale. own_subgraphs.py TOOL FOLDER"""
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from builder import Net, save, value
from checks import graphs, outputs

tool, folder = sys.argv[1:3]


def body(name, nodes, inputs, outputs):
    return helper.make_graph(nodes, name, inputs, outputs)


def branches(net, x, weight, extents):
    """If over two products by the network's own weight."""
    graphs_ = [body(f'b{k}', [helper.make_node('Conv', [x, weight], [f'c{k}'], pads=[1] * 4), helper.make_node(op, [f'c{k}'], [f'o{k}'])],
                    [], [value(f'o{k}', extents)]) for k, op in enumerate(('Relu', 'Sigmoid'))]
    yes = net.op('Greater', net.op('ReduceSum', x, keepdims=0), net.const(np.float32(0)))
    return net.op('If', yes, then_branch=graphs_[0], else_branch=graphs_[1])


def looped(net, x, weight, extents):
    """Loop whose body multiplies by the network's own weight."""
    steps = body('l', [helper.make_node('Identity', ['go'], ['on']), helper.make_node('Conv', ['s', weight], ['c'], pads=[1] * 4),
                       helper.make_node('Tanh', ['c'], ['s2'])],
                 [value('i', [], T.INT64), value('go', [], T.BOOL), value('s', extents)], [value('on', [], T.BOOL), value('s2', extents)])
    return net.op('Loop', net.const(np.int64(2), 'i8'), net.const(np.bool_(True), '?'), x, body=steps)


def scanned(net, x, weight, extents):
    """Scan over the batch, likewise."""
    rows = body('r', [helper.make_node('Unsqueeze', ['s', net.const([0], 'i8')], ['u']),
                      helper.make_node('Conv', ['u', weight], ['c'], pads=[1] * 4),
                      helper.make_node('Squeeze', ['c', net.const([0], 'i8')], ['t'])], [value('s', extents[1:])], [value('t', extents[1:])])
    return net.op('Scan', x, body=rows, num_scan_inputs=1)


def shared_weight(inner, size=192):
    """Convolutions around a subgraph of the file's own that reads the weight of all of them."""
    net, extents = Net(seed=1), [1, 16, size, size]
    x = net.input('x', extents)
    w = net.const(net.rng.normal(0, .1, (16, 16, 3, 3)), name='w')
    for k in range(3): x = net.op('Relu', net.op('Conv', x, w, pads=[1] * 4))
    x = inner(net, x, w, extents)
    for k in range(3): x = net.op('Relu', net.op('Conv', x, w, pads=[1] * 4))
    net.op('Identity', x, out='y')
    net.output('y', extents)
    return net.model()


def shape_of_its_own():
    """A layer normalisation as some export it: weights are reshaped by the channels that Shape tells of what is normalised."""
    net, c = Net(seed=2), 512
    x = net.input('x', [1, 4, 192, 192])
    x = net.conv(x, 4, c, k=2, strides=[2, 2])
    for k in range(2):
        channels = net.op('Unsqueeze', net.op('Gather', net.op('Shape', x), net.const(np.int64(1), 'i8')), net.const([0], 'i8'))
        one = net.const([1], 'i8')
        shape = net.op('Concat', one, channels, one, one, axis=0)
        scale = net.op('Reshape', net.const(net.rng.normal(1, .1, c)), shape)
        mean = net.op('ReduceMean', x, axes=[1])
        centred = net.op('Sub', x, mean)
        square = net.op('ReduceMean', net.op('Mul', centred, centred), axes=[1])
        normal = net.op('Div', centred, net.op('Sqrt', net.op('Add', square, net.const(np.float32(1e-5)))))
        y = net.conv(net.op('Mul', scale, normal), c, 32, k=1)
        x = net.op('Add', x, net.conv(net.op('Relu', y), 32, c, k=1))
    net.op('Identity', x, out='y')
    net.output('y', [1, c, 96, 96])
    return net.model()


def check(name, model, *args, tiled=True):
    path, out = save(model, f'{folder}/m.onnx'), f'{folder}/t.onnx'
    r = subprocess.run([tool, path, '-o', out, '-q', *args], capture_output=True, text=True)
    if r.returncode: sys.exit(f'{name} {args}: {r.stderr}')
    onnx.checker.check_model(out)
    if tiled and not any(n.name.startswith('tile/r') for g in graphs(onnx.load(out).graph) for n in g.node):
        sys.exit(f'{name} {args}: not tiled')
    if 'warning' in r.stderr: sys.exit(f'{name} {args}: {r.stderr}')
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype('f4') for i in model.graph.input}
    for want, got in zip(outputs(path, feeds), outputs(out, feeds)):
        if want.shape != got.shape or np.abs(want - got).max() > 1e-5 * np.abs(want).max(): sys.exit(f'{name} {args}: differs')
    return r.stderr


def stale():
    """Sizes of one batch, stated in a file whose sizes are free: what is written runs at others, and one line tells of it."""
    net = Net(seed=3)
    x = net.input('x', ['n', 3, 'h', 'w'])
    for k in range(4): x = net.op('Relu', net.conv(x, 3 if k == 0 else 16, 16, pads=[1] * 4))
    net.op('Identity', x, out='y')
    for states_output in (False, True):
        m = net.model()
        net.outputs.clear()
        shape = [1, 16, 64, 48]
        m.graph.output.append(value('y', shape if states_output else ['n', 16, 'h', 'w']))
        m.graph.value_info.extend(value(n.output[0], shape) for n in m.graph.node[:-1])
        for args in (['--force', '--l2', '16K'], ['--force', '--l2', '16K', '--runtime', 'portable'], ['--goal', 'memory', '--threads', '1'],
                     ['--force', '--l2', '16K', '--runtime', 'loop'], ['--force', '--l2', '16K', '--runtime', 'openvino']):
            path, out = save(m, f'{folder}/s.onnx'), f'{folder}/st.onnx'
            r = subprocess.run([tool, path, '-o', out, '-q', *args], capture_output=True, text=True)
            if r.returncode or r.stderr.count('warning:') != 1: sys.exit(f'stale {args}: {r.returncode} {r.stderr}')
            for extents in ((1, 3, 90, 70), (3, 3, 64, 48), (1, 3, 64, 48)):
                feeds = {'x': np.random.default_rng(0).standard_normal(extents).astype('f4')}
                want, got = outputs(path, feeds)[0], outputs(out, feeds)[0]
                if want.shape != got.shape or not np.allclose(want, got, atol=1e-4): sys.exit(f'stale {args} at {extents}: {got.shape}')


def ints(net, *values): return net.const(values, 'i8')


# operator: a node that makes of maps of 63 x 63 what the file then states as another size
STATED = {
    'MaxPool': (lambda n, v: n.op('MaxPool', v, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), [1, 4, 31, 31]),
    'AveragePool': (lambda n, v: n.op('AveragePool', v, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, pads=[1] * 4), [1, 4, 31, 32]),
    'LpPool': (lambda n, v: n.op('LpPool', v, kernel_shape=[3, 3], strides=[2, 2]), [1, 4, 32, 32]),
    'Conv': (lambda n, v: n.conv(v, 4, 4, auto_pad='SAME_UPPER', strides=[2, 2]), [1, 4, 31, 31]),
    'ConvTranspose': (lambda n, v: n.op('ConvTranspose', v, n.uniform((4, 4, 3, 3)), strides=[2, 2]), [1, 4, 126, 126]),
    'Resize': (lambda n, v: n.op('Resize', v, '', n.const([1, 1, 1.5, 1.5])), [1, 4, 95, 95]),
    'Pad': (lambda n, v: n.op('Pad', v, ints(n, 0, 0, 1, 1, 0, 0, 1, 1)), [1, 4, 66, 66]),
    'Slice': (lambda n, v: n.op('Slice', v, ints(n, 1), ints(n, 999), ints(n, 2)), [1, 4, 63, 63]),
    'ReduceMean': (lambda n, v: n.op('ReduceMean', v, axes=[3]), [1, 4, 63, 2]),
    'Constant': (lambda n, v: n.op('Constant', value=numpy_helper.from_array(n.rng.normal(size=(1, 4, 63, 63)).astype('f4'))), [1, 4, 63, 1]),
}
STATED_WITH = ([], ['--goal', 'memory', '--threads', '1'], ['--force', '--l2', '16K'])


def stated(name):
    """A file whose operator makes another size than is stated: ONNX Runtime warns and runs it."""
    make, shape = STATED[name]
    net = Net(seed=5)
    v = net.op('Relu', net.conv(net.input('x', [1, 4, 63, 63]), 4, 4, pads=[1] * 4))
    made = make(net, v)
    net.op('Relu', made if name != 'Constant' else net.op('Add', made, v), out='y')
    net.output('y', shape if name != 'Constant' else [1, 4, 63, 63])
    m = net.model()
    m.graph.value_info.append(value(made, shape))
    return m


def stated_shapes():
    """Written, with one line of what is not followed; and equal."""
    for name in STATED:
        for args in STATED_WITH:
            path, out = save(stated(name), f'{folder}/s.onnx'), f'{folder}/st.onnx'
            r = subprocess.run([tool, path, '-o', out, '-q', *args], capture_output=True, text=True)
            if r.returncode or r.stderr.count('warning:') != 1 or 'is taken as [' not in r.stderr: sys.exit(f'stated {name} {args}: {r.returncode} {r.stderr}')
            feeds = {'x': np.random.default_rng(0).standard_normal((1, 4, 63, 63)).astype('f4')}
            want, got = outputs(path, feeds)[0], outputs(out, feeds)[0]
            if want.shape != got.shape or not np.allclose(want, got, atol=1e-5): sys.exit(f'stated {name} {args}: {want.shape}, {got.shape}')


def domains():
    """The standard's operator set stated twice, by one name or by both: ONNX Runtime takes the file."""
    for more in ('', 17), ('ai.onnx', 17):
        net = Net(seed=6)
        v = net.input('x', [1, 8, 128, 128])
        for k in range(3): v = net.op('Relu', net.conv(v, 8, 8, pads=[1] * 4), **({'domain': more[0]} if k == 1 else {}))
        net.output(v, [1, 8, 128, 128])
        m = net.model()
        m.opset_import.append(helper.make_opsetid(*more))
        check(f'domain {more}', m, '--force', '--l2', '64K')


INNER = (branches, looped, scanned)

if __name__ == '__main__':
    for inner in INNER:
        check(inner.__name__, shared_weight(inner), '--goal', 'memory', '--threads', '1', tiled=False)
        check(inner.__name__, shared_weight(inner), '--force', '--l2', '256K')
    for more in (['--goal', 'memory', '--threads', '1'], ['--force', '--l2', '1M'], ['--force', '--l2', '256K', '--runtime', 'portable']):
        check('shape of its own', shape_of_its_own(), *more)
    stale()
    stated_shapes()
    domains()
    print('equal')
