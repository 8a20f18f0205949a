"""Models and checks of passes.sh: models DIR; same MODEL DIR SHAPE CHUNK; figures DIR NAME=VALUE...; external DIR."""
import json
import os
import sys

import numpy as np
from onnx import TensorProto, helper

import passing
from builder import Net, save
from checks import check_lines

FREE = ['n', 3, 'h', 'w']


def small(steps, extents=None, opset=17):
    """steps(net, x) between an input of three channels and y."""
    net = Net(seed=8, opset=opset)
    x = net.input('x', extents or FREE)
    net.op('Identity', steps(net, x), out='y')
    net.output('y')
    return net.model()


def instance(net, v, c=3, **attrs):
    return net.op('InstanceNormalization', v, net.uniform([c]), net.uniform([c]), **attrs)


def conv(net, v, c_in, c_out, **attrs):
    return net.conv(v, c_in, c_out, pads=[1] * 4, **attrs)


def weight(net, *shape):
    return net.const(net.rng.normal(0, (1 / np.prod(shape[1:])) ** .5, shape))


def style(net, v):
    """Three norms, one behind the other, a residual around the second, mirrored borders."""
    v = net.op('Pad', v, net.const([0, 0, 4, 4, 0, 0, 4, 4], 'i8'), mode='reflect')
    v = net.op('Relu', instance(net, net.conv(v, 3, 8), 8))
    skip = v
    v = net.op('Add', instance(net, conv(net, v, 8, 8), 8, epsilon=1e-3), skip)
    v = net.op('Relu', instance(net, conv(net, v, 8, 8, strides=[2, 2]), 8))
    return net.op('ConvTranspose', v, weight(net, 8, 3, 3, 3), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])


def groups(net, v):
    """As exporters write it; the shape behind is asked for, as is the one of the first norm."""
    v = conv(net, v, 3, 8)
    for _ in range(2):
        t = net.op('Reshape', v, net.const([0, 4, -1], 'i8'))
        t = net.op('InstanceNormalization', t, net.const([1] * 4), net.const([0] * 4))
        t = net.op('Reshape', t, net.op('Shape', v))
        t = net.op('Mul', t, net.const(net.rng.normal(1, .2, (8, 1, 1))))
        v = conv(net, net.op('Add', t, net.const(net.rng.normal(0, .2, (8, 1, 1)))), 8, 8)
    return v


def group_node(each):
    def steps(net, v):
        v = conv(net, v, 3, 8)
        return net.op('GroupNormalization', v, net.uniform([each]), net.uniform([each]), num_groups=2)
    return steps


def gate(net, v):
    """Squeeze and excite: one mean, and products of it."""
    v = conv(net, v, 3, 8)
    g = net.op('Relu', net.conv(net.op('GlobalAveragePool', v), 8, 2, k=1))
    return net.op('Mul', v, net.op('Sigmoid', net.conv(g, 2, 8, k=1)))


def context(net, v):
    """A pooled branch is spread over the maps and joined with them; another one reads it."""
    v = conv(net, v, 3, 4)
    pooled = net.conv(net.op('GlobalAveragePool', v), 4, 2, k=1)
    size = net.op('Slice', net.op('Shape', v), net.const([2], 'i8'), net.const([4], 'i8'))
    extents = net.op('Concat', net.op('Slice', net.op('Shape', pooled), net.const([0], 'i8'), net.const([2], 'i8')), size, axis=0)
    wide = net.op('Resize', pooled, '', '', extents, mode='linear')
    return net.op('Concat', conv(net, v, 4, 4), wide, axis=1)


def spread(net, v):
    """A pooled value that is spread over the maps, and convolved: its border shows."""
    v = conv(net, v, 3, 4)
    pooled = net.op('GlobalAveragePool', v)
    wide = net.op('Expand', pooled, net.op('Shape', v))
    for c in (4, 2):
        wide = net.op('Conv', wide, weight(net, c, 4, 5, 5), pads=[2] * 4)
    narrow = net.op('Conv', net.op('Resize', pooled, '', '', net.op('Shape', v), mode='nearest'), weight(net, 2, 4, 7, 7), pads=[3] * 4)
    return net.op('Concat', v, wide, narrow, axis=1)


def together(net, v):
    """Two of one depth at two scales: one pass."""
    a, b = instance(net, v), conv(net, v, 3, 3, strides=[2, 2])
    return net.op('Add', net.op('Add', a, net.op('GlobalAveragePool', b)), net.op('GlobalMaxPool', b))


def written(net, v):
    """Mean of squares less square of the mean, written out; then with the difference: two passes."""
    mean, squares = (net.op('ReduceMean', t, axes=[2, 3]) for t in (v, net.op('Mul', v, v)))
    variance = net.op('Sub', squares, net.op('Mul', mean, mean))
    v = net.op('Div', net.op('Sub', v, mean), net.op('Sqrt', net.op('Add', variance, net.const([.01]))))
    away = net.op('Sub', v, net.op('ReduceMean', v, axes=[1, 2, 3]))
    return net.op('Div', away, net.op('Sqrt', net.op('Add', net.op('ReduceMean', net.op('Mul', away, away), axes=[1, 2, 3]), net.const([.01]))))


def last_channels(net, v):
    """Channels are the last axis for the mean."""
    v = net.op('Transpose', conv(net, v, 3, 4), perm=[0, 2, 3, 1])
    return net.op('Sub', v, net.op('ReduceMean', v, axes=[1, 2]))


def sums(net, v):
    """Every other reduction, of numbers that are small."""
    v = net.op('Sigmoid', conv(net, v, 3, 4))
    parts = [net.op('ReduceMax', v, axes=[2, 3]), net.op('ReduceMin', v, axes=[1, 2, 3]), net.op('ReduceL2', v, axes=[2, 3]),
             net.op('ReduceL1', v, axes=[2, 3]), net.op('ReduceSumSquare', v, axes=[2, 3]), net.op('ReduceLogSum', v, axes=[2, 3]),
             net.op('ReduceSum', v, net.const([2, 3], 'i8'))]
    for p in parts:
        v = net.op('Add', v, net.op('Tanh', net.op('Mul', p, net.const([.01]))))
    return v


def integers(net, v):
    bytes_ = net.op('Cast', net.op('Mul', v, net.const([40])), to=TensorProto.INT32)
    return net.op('Cast', net.op('Sub', bytes_, net.op('ReduceMax', bytes_, axes=[2, 3])), to=TensorProto.FLOAT)


def channels_alone(net, v):
    """Over channels: nothing is in the way."""
    return net.op('Sub', v, net.op('ReduceMean', v, axes=[1]))


def attention(net, v):
    flat = net.op('Reshape', v, net.const([0, 3, -1], 'i8'))
    weights = net.op('Softmax', net.op('MatMul', net.op('Transpose', flat, perm=[0, 2, 1]), flat), axis=2)
    out = net.op('MatMul', weights, net.op('Transpose', flat, perm=[0, 2, 1]))
    return net.op('Reshape', net.op('Transpose', out, perm=[0, 2, 1]), net.op('Shape', v))


def product(net, v):
    return net.op('Mul', instance(net, v), net.op('ReduceProd', v, axes=[2, 3]))


def one_axis(net, v):
    return net.op('Sub', instance(net, v), net.op('ReduceMean', v, axes=[3]))


def guided():
    """Two inputs, one of half the size."""
    net = Net(seed=9)
    x, guide = net.input('x', [1, 3, 64, 64]), net.input('guide', [1, 3, 32, 32])
    up = net.op('Resize', instance(net, conv(net, guide, 3, 3)), '', net.const([1, 1, 2, 2], 'f4'), mode='linear')
    net.op('Add', instance(net, conv(net, x, 3, 3)), up, out='y')
    net.output('y')
    return net.model()


def old():
    """Before Where, and before constants other than inputs."""
    net = Net(seed=10, opset=7)
    v = net.input('x', [1, 3, 40, 40])
    v = net.op('Add', instance(net, conv(net, v, 3, 3)), net.op('GlobalMaxPool', v))
    net.op('Add', v, net.op('ReduceMean', v, axes=[2, 3]), out='y')
    net.output('y', [1, 3, 40, 40])
    m = net.model()
    m.ir_version = 3
    for t in m.graph.initializer:
        m.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
    return m


def half():
    net = Net(seed=11, dtype=TensorProto.FLOAT16)
    v = net.input('x', FREE)
    w = net.const(net.rng.normal(0, .2, (4, 3, 3, 3)), 'f2')
    v = net.op('Conv', v, w, pads=[1] * 4)
    v = net.op('InstanceNormalization', v, net.const([1] * 4, 'f2'), net.const([.5] * 4, 'f2'))
    net.op('Mul', v, net.op('GlobalAveragePool', v), out='y')
    net.output('y', ['n', 4, 'h', 'w'])
    return net.model()


def volume(net, v):
    return net.op('InstanceNormalization', net.op('Conv', v, weight(net, 4, 3, 3, 3, 3), pads=[1] * 6), net.uniform([4]), net.uniform([4]))


def line(net, v):
    return net.op('InstanceNormalization', net.op('Conv', v, weight(net, 4, 3, 5), pads=[2, 2]), net.uniform([4]), net.uniform([4]))


MODELS = {
    'style': lambda: small(style), 'groups': lambda: small(groups), 'group18': lambda: small(group_node(2), opset=18),
    'group21': lambda: small(group_node(8), opset=21), 'gate': lambda: small(gate), 'context': lambda: small(context),
    'spread': lambda: small(spread), 'together': lambda: small(together), 'written': lambda: small(written), 'last': lambda: small(last_channels),
    'sums': lambda: small(sums), 'integers': lambda: small(integers), 'alone': lambda: small(channels_alone),
    'guided': guided, 'old': old, 'half': half, 'fixed': lambda: small(style, [1, 3, 64, 64]),
    'volume': lambda: small(volume, ['n', 3, 'd', 'h', 'w']), 'line': lambda: small(line, ['n', 3, 't']),
    'itself': lambda: small(instance), 'lost_attention': lambda: small(attention), 'lost_product': lambda: small(product),
    'lost_axis': lambda: small(one_axis), 'lost_corners': lambda: small(lambda net, v: net.op(
        'Resize', instance(net, v), '', net.const([1, 1, 2, 2], 'f4'), mode='linear', coordinate_transformation_mode='align_corners')),
}


def same(model, folder, shapes, chunk):
    """Passes give the whole, in chunks of two sizes; half precision as far as it goes."""
    rng, x = np.random.default_rng(12), {}
    s = passing.session(model)
    for i, shape in zip(s.get_inputs(), shapes.split('/')):
        x[i.name] = rng.normal(.5, 1, [int(d) for d in shape.split(',')]).astype('f2' if i.type == 'tensor(float16)' else 'f4')
    limit = 2e-3 if s.get_inputs()[0].type == 'tensor(float16)' else passing.TOLERANCE
    for rows in (int(chunk), 4 * int(chunk) + 3):
        apart = passing.difference(folder, model, x, rows)
        if not apart <= limit:
            sys.exit(f'chunks of {rows}: {apart:.1e} of the range off')


def figures(folder, *wanted):
    """Passes, and statistics by kind."""
    with open(os.path.join(folder, 'plan.json'), encoding='utf-8') as f:
        plan = json.load(f)
    found = {'passes': len(plan['passes']) - 1, 'kinds': ','.join(f"{s['kind']}{s['pass']}" for s in plan['statistics'])}
    for pair in wanted:
        name, value = pair.split('=')
        if str(found[name]) != value:
            sys.exit(f'{name} {found[name]}, not {value}')


def check_all(path):
    check_lines(path, lambda command, *args: CHECKS[command](*args), 'right')


CHECKS = {'same': same, 'figures': figures, 'all': check_all}

if __name__ == '__main__':
    command, *rest = sys.argv[1:]
    if command == 'models':
        for name, make in MODELS.items():
            save(make(), os.path.join(rest[0], name + '.onnx'))
        save(small(gate), os.path.join(rest[0], 'apart.onnx'), outside='apart.data')
    else:
        CHECKS[command](*rest)
