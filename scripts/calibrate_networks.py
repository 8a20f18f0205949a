"""Small networks that scripts/calibrate_runtime.py times: chains of one operator, single operators behind a pool, loops.

Every function returns the bytes of a model with one float input x (or none of interest) and one small output, so that what a caller
copies does not count. Weights are seeded and scaled such that values stay near one.
"""
import itertools

import numpy as np
from onnx import TensorProto as T, helper, numpy_helper

OPSET = 17
NUMBERS = itertools.count()


class Net:
    """A graph under construction; a value is (name, shape)."""

    def __init__(self, shape):
        self.nodes, self.constants, self.rng = [], [], np.random.default_rng(7)
        self.count = next(NUMBERS) * 1000        # names differ between a graph and the bodies in it
        self.x = ('x', list(shape))

    def const(self, array):
        self.count += 1
        name = f'c{self.count}'
        self.constants.append(numpy_helper.from_array(np.asarray(array, order='C'), name))
        return name

    def op(self, kind, inputs, shape, **attributes):
        self.count += 1
        name = f'v{self.count}'
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f'n{self.count}', **attributes))
        return (name, list(shape))

    def conv(self, x, out, kernel=3, group=1):
        n, c, h, w = x[1]
        weight = self.rng.standard_normal((out, c // group, kernel, kernel)) / np.sqrt(c // group * kernel * kernel)
        return self.op('Conv', [x[0], self.const(weight.astype('f4'))], [n, out, h, w], kernel_shape=[kernel] * 2,
                       pads=[kernel // 2] * 4, group=group)

    def transposed(self, x, out):
        n, c, h, w = x[1]
        weight = self.rng.standard_normal((c, out, 4, 4)) / np.sqrt(c * 4)
        return self.op('ConvTranspose', [x[0], self.const(weight.astype('f4'))], [n, out, 2 * h, 2 * w], kernel_shape=[4, 4],
                       strides=[2, 2], pads=[1, 1, 1, 1])

    def unary(self, x, kind):
        """One element-wise operator, or one that keeps the shape."""
        n = x[1]
        if kind == 'PRelu':
            return self.op(kind, [x[0], self.const(np.full((n[1], 1, 1), 0.5, 'f4'))], n)
        if kind == 'Pow':
            return self.op(kind, [x[0], self.const(np.array(2, 'f4'))], n)
        if kind == 'MulScalar':
            return self.op('Mul', [x[0], self.const(np.array(1.0001, 'f4'))], n)
        if kind == 'MaxPool':
            return self.op(kind, [x[0]], n, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        if kind == 'MatMul':
            weight = self.rng.standard_normal((n[-1], n[-1])) / np.sqrt(n[-1])
            return self.op(kind, [x[0], self.const(weight.astype('f4'))], n)
        return self.op(kind, [x[0]], n)

    def resize(self, x, mode):
        n, c, h, w = x[1]
        scales = self.const(np.array([1, 1, 2, 2], 'f4'))
        extra = {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor'} if mode == 'nearest' else {}
        return self.op('Resize', [x[0], '', scales], [n, c, 2 * h, 2 * w], mode=mode, **extra)

    def depth_to_space(self, x):
        n, c, h, w = x[1]
        return self.op('DepthToSpace', [x[0]], [n, c // 4, 2 * h, 2 * w], blocksize=2, mode='DCR')

    def cut(self, x, axis, start, end):
        shape = list(x[1])
        shape[axis] = end - start
        bounds = [self.const(np.array([k], np.int64)) for k in (start, end, axis)]
        return self.op('Slice', [x[0], *bounds], shape)

    def small(self, x):
        """A mean over the last axes: what ends a network."""
        n = x[1]
        if len(n) == 4:
            return self.op('GlobalAveragePool', [x[0]], [n[0], n[1], 1, 1])
        return self.op('ReduceMean', [x[0]], n[:-1] + [1], axes=[-1])

    def model(self, y):
        g = helper.make_graph(self.nodes, 'net', [helper.make_tensor_value_info('x', T.FLOAT, self.x[1])],
                              [helper.make_tensor_value_info(y[0], T.FLOAT, y[1])], self.constants)
        return helper.make_model(g, opset_imports=[helper.make_opsetid('', OPSET)], ir_version=8).SerializeToString()


def chain(shape, step, depth):
    """depth times step(net, value), then a small output."""
    net = Net(shape)
    v = net.x
    for _ in range(depth):
        v = step(net, v)
    return net.model(net.small(v))


def behind(shape, step):
    """One step on the input, then a small output; with step None the small output alone."""
    net = Net(shape)
    return net.model(net.small(step(net, net.x) if step else net.x))


def differences(elements, depth):
    """Each value is the difference of the two before it (they repeat after six), and is read once more, at its first element, so that
    none is written over another: two tensors read, one written."""
    net = Net([1, 1, 1, elements])
    a, b = net.x, net.unary(net.x, 'MulScalar')
    firsts = []
    for _ in range(depth):
        a, b = b, net.op('Sub', [b[0], a[0]], b[1])
        firsts.append(net.cut(b, 3, 0, 1)[0])
    return net.model(net.op('Sum', firsts, [1, 1, 1, 1]))


def tiles(shape, count):
    """Bands of rows cut out, convolved and joined, all written out."""
    net = Net(shape)
    rows = shape[2] // count
    parts = [net.conv(net.cut(net.x, 2, k * rows, (k + 1) * rows), shape[1])[0] for k in range(count)]
    return net.model(net.small(net.op('Concat', parts, shape, axis=2)))


def scan_outputs(shape, count):
    """The same in a Loop whose scan outputs are stacked."""
    n, c, h, w = shape
    rows = h // count
    net, inner = Net(shape), Net(shape)
    starts = inner.const(np.arange(0, h, rows).reshape(-1, 1))
    ends = inner.const(np.arange(rows, h + 1, rows).reshape(-1, 1))
    start = inner.op('Gather', [starts, 'i'], [1], axis=0)
    end = inner.op('Gather', [ends, 'i'], [1], axis=0)
    piece = inner.op('Slice', ['x', start[0], end[0], inner.const(np.array([2], np.int64))], [n, c, rows, w])
    piece = inner.op('Reshape', [piece[0], inner.const(np.array([n, c, rows, w], np.int64))], [n, c, rows, w])
    done = inner.conv(piece, c)
    go = inner.op('Identity', ['go'], [])
    info = lambda name, kind, dims: helper.make_tensor_value_info(name, kind, dims)
    for k in inner.nodes:                        # names of the body are its own
        k.name = 'body_' + k.name
    body = helper.make_graph(inner.nodes, 'body', [info('i', T.INT64, []), info('go', T.BOOL, [])],
                             [info(go[0], T.BOOL, []), info(done[0], T.FLOAT, done[1])], inner.constants)
    net.nodes.append(helper.make_node('Loop', [net.const(np.array(count, np.int64)), net.const(np.array(True))], ['stack'], body=body))
    flat = net.op('Reshape', ['stack', net.const(np.array([1, count * n, c * rows, w], np.int64))], [1, count * n, c * rows, w])
    return net.model(net.small(flat))


def sequence_loop(trips, rows=2):
    """What form peeled writes, of windows that compute next to nothing: bounds, Slice, a convolution, SequenceInsert; the pieces are joined."""
    shape, tile = [1, 16, trips * rows, 4], [1, 16, rows, 4]
    net, inner = Net(shape), Net(shape)
    starts = inner.const(np.arange(0, trips * rows, rows).reshape(-1, 1))
    ends = inner.const(np.arange(rows, trips * rows + 1, rows).reshape(-1, 1))
    start = inner.op('Gather', [starts, 'i'], [1], axis=0)
    end = inner.op('Gather', [ends, 'i'], [1], axis=0)
    window = inner.op('Slice', ['x', start[0], end[0], inner.const(np.array([2], np.int64))], tile)
    piece = inner.conv(inner.op('Reshape', [window[0], inner.const(np.array(tile, np.int64))], tile), 16)
    more = inner.op('SequenceInsert', ['pieces', piece[0]], tile)
    go = inner.op('Identity', ['go'], [])
    info = lambda name, kind, dims: helper.make_tensor_value_info(name, kind, dims)
    held = lambda name: helper.make_tensor_sequence_value_info(name, T.FLOAT, None)
    for k in inner.nodes:                        # names of the body are its own
        k.name = 'body_' + k.name
    body = helper.make_graph(inner.nodes, 'body', [info('i', T.INT64, []), info('go', T.BOOL, []), held('pieces')],
                             [info(go[0], T.BOOL, []), held(more[0])], inner.constants)
    none = net.op('SequenceEmpty', [], [])
    net.nodes.append(helper.make_node('Loop', [net.const(np.array(trips, np.int64)), net.const(np.array(True)), none[0]], ['all'], body=body))
    return net.model(net.small(net.op('ConcatFromSequence', ['all'], shape, axis=2)))


def loop(trips, scan=False):
    """A Loop (or Scan) that carries one tiny tensor through a pool."""
    shape = [1, 1, 4, 4]
    pool = helper.make_node('MaxPool', ['s'], ['s_'], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    info = lambda name, kind=T.FLOAT, dims=shape: helper.make_tensor_value_info(name, kind, dims)
    net = Net(shape)
    if scan:
        keep = helper.make_node('Identity', ['k'], ['k_'])
        body = helper.make_graph([pool, keep], 'body', [info('s'), info('k', T.FLOAT, [1])], [info('s_'), info('k_', T.FLOAT, [1])])
        steps = net.const(np.zeros((trips, 1), 'f4'))
        net.nodes.append(helper.make_node('Scan', ['x', steps], ['end', 'kept'], num_scan_inputs=1, body=body))
    else:
        go = helper.make_node('Identity', ['go'], ['go_'])
        body = helper.make_graph([go, pool], 'body', [info('i', T.INT64, []), info('go', T.BOOL, []), info('s')], [info('go_', T.BOOL, []), info('s_')])
        net.nodes.append(helper.make_node('Loop', [net.const(np.array(trips, np.int64)), net.const(np.array(True)), 'x'], ['end'], body=body))
    return net.model(('end', shape))
