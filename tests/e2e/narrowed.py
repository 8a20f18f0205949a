"""What nobody reads is not computed: kinds of models whose ends read a part. narrowed.py TOOL FOLDER

Each is tiled with both goals and has to give what it gives in ONNX Runtime; of what it makes no more than a part may be left, and
what is read whole stays whole.
"""
import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

import builder
from checks import outputs, unread_constants

tool, d = sys.argv[1], sys.argv[2]
LAST = 2**63 - 1


def crop(net, x, starts, ends, axes, **more):
    if net.opset < 10:
        return net.op('Slice', x, starts=starts, ends=ends, axes=axes, **more)
    return net.op('Slice', x, *(net.const(v, 'i8') for v in (starts, ends, axes)), **more)


def gather(net, x, index, axis, dtype='i8'):
    return net.op('Gather', x, net.const(np.array(index), dtype), axis=axis)


def end(net, y, extents):
    net.output(net.op('Identity', y, out='y'), extents)
    return net.model()


def conv1(net, x, c_in, c_out, dilation=1, k=3):
    w = net.const(net.rng.normal(0, .2, (c_out, c_in, k)))
    return net.op('Conv', x, w, dilations=[dilation], pads=[(k - 1) * dilation, 0])


def tcn(opset=17, crops=([-1], [LAST], [2])):
    """Causal convolutions with residual sums; the last steps are read."""
    net = builder.Net(1, opset)
    x = conv1(net, net.input('x', [2, 4, 3000]), 4, 8)
    for k in range(4):
        x = net.op('Add', x, net.op('Relu', conv1(net, net.op('Relu', conv1(net, x, 8, 8, 2**k)), 8, 8, 2**k)))
    return end(net, crop(net, x, *crops), None)


def block(net, x, tokens, width, heads):
    """A layer of a transformer, causal."""
    part = width // heads
    mean = net.op('LayerNormalization', x, net.uniform(width), net.uniform(width), axis=-1)

    def rows(v, n_in, n_out):
        return net.op('Add', net.op('MatMul', v, net.const(net.rng.normal(0, n_in**-.5, (n_in, n_out)))), net.uniform(n_out))

    def head(perm):
        return net.op('Transpose', net.reshape(rows(mean, width, width), [1, tokens, heads, part]), perm=perm)
    q, k, v = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
    scores = net.op('Add', net.op('MatMul', q, k), net.const(np.triu(np.full((1, 1, tokens, tokens), -1e9), 1)))
    mixed = net.op('Transpose', net.op('MatMul', net.op('Softmax', scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = net.op('Add', x, rows(net.reshape(mixed, [1, tokens, width]), width, width))
    norm = net.op('LayerNormalization', x, net.uniform(width), net.uniform(width), axis=-1)
    return net.op('Add', x, rows(net.op('Relu', rows(norm, width, 4 * width)), 4 * width, width))


def logits(read, tokens=48, width=32):
    """A language model whose last token is read."""
    net = builder.Net(2)
    ids = net.input('ids', [1, tokens], TensorProto.INT64)
    x = net.op('Add', net.op('Gather', net.const(net.rng.normal(0, 1, (100, width))), ids), net.uniform((1, tokens, width)))
    for _ in range(2): x = block(net, x, tokens, width, 4)
    x = net.op('MatMul', x, net.const(net.rng.normal(0, .2, (width, 500))))
    return end(net, read(net, x), None)


def decoder(end_crop):
    """ConvTranspose, and a U-Net whose skip is cropped; the middle is read."""
    net = builder.Net(3)
    x = net.input('x', [1, 3, 64, 96])
    skip = net.op('Relu', net.conv(x, 3, 8, pads=[1] * 4))
    x = net.op('Relu', net.conv(net.op('MaxPool', skip, kernel_shape=[2, 2], strides=[2, 2]), 8, 16))
    x = net.op('ConvTranspose', x, net.const(net.rng.normal(0, .2, (16, 8, 3, 3))), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    x = net.op('Concat', x, crop(net, skip, [2, 2], [62, 94], [2, 3]), axis=1)
    x = net.op('BatchNormalization', net.conv(x, 16, 8, pads=[1] * 4), *builder.norm_constants(net, 'BatchNormalization', 8))
    x = net.op('Resize', net.op('Relu', x), '', net.const([1, 1, 2, 2], 'f4'), mode='linear')
    return end(net, end_crop(net, net.conv(x, 8, 2, pads=[1] * 4)), None)


def middle_slice(net, x): return crop(net, x, [40, 60], [-40, -60], [2, 3])


def middle_pad(net, x): return net.op('Pad', x, net.const([0, 0, -40, -60, 0, 0, -40, -60], 'i8'))


def split():
    """Of three parts of the channels and of the rows, one is read, and some of it."""
    net = builder.Net(4)
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 90, 64]), 3, 8, pads=[1] * 4))
    net.nodes.append(helper.make_node('Split', [x, net.const([20, 40, 30], 'i8')], ['a', 'b', 'c'], axis=2))
    return end(net, net.op('Sigmoid', crop(net, 'c', [5], [9], [2])), None)


def split_two(axis):
    """Both ends of a Split are read, its middle is not; with other columns of each."""
    net = builder.Net(5)
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 60, 64]), 3, 9, pads=[1] * 4))
    net.nodes.append(helper.make_node('Split', [x], ['a', 'b', 'c'], axis=axis))
    a, c = crop(net, 'a', [0], [8], [3]), crop(net, 'b', [4], [12], [3])
    return end(net, net.op('Add', net.op('Sigmoid', a), c), None)


def video():
    """Causal convolutions in time; the last frame is read by an index without an axis."""
    net = builder.Net(6)
    x, c = net.input('x', [1, 2, 24, 12, 12]), 2
    for dilation in 1, 2:
        x = net.op('Pad', x, net.const([0, 0, 2 * dilation, 0, 0] + [0] * 5, 'i8'), mode='edge')
        w = net.const(net.rng.normal(0, .2, (6, c, 3, 3, 3)))
        x, c = net.op('Relu', net.op('Conv', x, w, pads=[0, 1, 1, 0, 1, 1], dilations=[dilation, 1, 1])), 6
    return end(net, net.op('Relu', gather(net, x, -1, 2, 'i4')), None)


def stack():
    """Heads after each of four blocks are stacked; the last is read, and the shape of what nobody reads otherwise."""
    net = builder.Net(7)
    x, heads = net.input('x', [1, 8, 32, 32]), []
    for _ in range(4):
        x = net.op('Relu', net.conv(x, 8, 8, pads=[1] * 4))
        head = net.op('Sigmoid', net.conv(net.conv(x, 8, 64, pads=[1] * 4), 64, 4, pads=[1] * 4))
        heads.append(net.op('Unsqueeze', head, net.const([0], 'i8')))
    y = gather(net, net.op('Concat', *heads, axis=0), [-1], 0)
    shape = net.op('Concat', net.op('Shape', heads[0], start=0, end=3), net.const([-1], 'i8'), axis=0)
    return end(net, net.op('Reshape', y, shape), None)


def picked():
    """Two rows by index, and a value that is read whole beside it."""
    net = builder.Net(8)
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 80, 40]), 3, 8, pads=[1] * 4))
    y = net.op('Tanh', net.conv(net.op('Transpose', net.conv(x, 8, 32, pads=[1] * 4), perm=[0, 1, 3, 2]), 32, 8, pads=[1] * 4))
    net.output(net.op('ReduceMean', x, axes=[1], out='z'), None)
    return end(net, gather(net, y, [[30, 33], [31, 30]], 3), None)


def two_readers():
    """Other windows of one value, and one node of it that no output depends on."""
    net = builder.Net(9)
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 120, 40]), 3, 8, pads=[1] * 4))
    a, b = crop(net, x, [10], [30], [2]), crop(net, net.conv(x, 8, 8, k=5, pads=[2] * 4), [20], [40], [2])
    net.op('Exp', x)
    return end(net, net.op('Mul', a, b), None)


def subgraph():
    """A branch reads the value: all of it is made."""
    net = builder.Net(10)
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 64, 40]), 3, 8, pads=[1] * 4), out='inner')
    body = helper.make_graph([helper.make_node('ReduceSum', ['inner'], ['s'], keepdims=0)], 'b', [], [builder.value('s', [])])
    less = helper.make_graph([helper.make_node('ReduceMax', ['inner'], ['m'], keepdims=0)], 'c', [], [builder.value('m', [])])
    yes = net.op('Greater', net.op('ReduceSum', 'x', keepdims=0), net.const(0))
    return end(net, net.op('Add', crop(net, x, [3], [7], [2]), net.op('If', yes, then_branch=body, else_branch=less)), [1, 8, 4, 40])


def whole():
    """A crop that is hardly one."""
    net = builder.Net(11)
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 80, 80]), 3, 8, pads=[1] * 4))
    return end(net, crop(net, x, [1, 1], [79, 79], [2, 3]), [1, 8, 78, 78])


def as_nodes(m):
    """Integer constants are made by Constant nodes, as PyTorch exports them."""
    ints = [i for i in m.graph.initializer if i.data_type == TensorProto.INT64]
    made = [helper.make_node('Constant', [], [i.name], value=i) for i in ints]
    for i in ints: m.graph.initializer.remove(i)
    for k, n in enumerate(made): m.graph.node.insert(k, n)
    return m


# name, model, the most of the multiply-adds that may be left; None: it stays as it is
CASES = [('tcn', tcn(), .05), ('tcn_middle', tcn(crops=([2000, -5], [2100, -2], [2, 1])), .1), ('tcn_old', tcn(9, ([-1], [LAST], [2])), .05),
         ('tcn_prefix', tcn(crops=([0, 1], [20, 2], [2, 0])), .05), ('logits_slice', logits(lambda n, x: crop(n, x, [-1], [LAST], [1])), .6),
         ('logits_index', logits(lambda n, x: gather(n, x, -1, 1)), .6), ('decoder', decoder(middle_slice), .5),
         ('decoder_pad', decoder(middle_pad), .5), ('split', split(), .1), ('split_rows', split_two(2), .3), ('split_channels', split_two(1), .3),
         ('video', video(), .45), ('stack', stack(), .5), ('picked', picked(), .35), ('two_readers', two_readers(), .45),
         ('nodes', as_nodes(logits(lambda n, x: crop(n, x, [-1], [LAST], [1]))), .6),
         ('subgraph', subgraph(), None), ('whole', whole(), None)]

for name, m, most in CASES:
    path, out = f'{d}/{name}.onnx', f'{d}/{name}_out.onnx'
    builder.save(m, path)
    rng = np.random.default_rng(0)
    x = {i.name: rng.integers(0, 100, [e.dim_value for e in i.type.tensor_type.shape.dim]) if i.type.tensor_type.elem_type == TensorProto.INT64
         else rng.standard_normal([e.dim_value for e in i.type.tensor_type.shape.dim]).astype('f4') for i in m.graph.input}
    want = outputs(path, x)
    for goal in 'memory', 'time':
        p = subprocess.run([tool, path, '-o', out, '--goal', goal, '--threads', '1', '--target', 'cpu-generic', '--json', '--verify'],
                           capture_output=True, text=True)
        if p.returncode: sys.exit(f'{name} {goal}: exit {p.returncode}: {p.stderr}')
        facts = json.loads(p.stdout)
        left = facts['tiled']['macs'] / facts['untiled']['macs']
        if ('narrowed_nodes' in facts) != (most is not None): sys.exit(f'{name} {goal}: narrowed_nodes {facts.get("narrowed_nodes")}')
        if most and not left <= most: sys.exit(f'{name} {goal}: x{left:.2f} of the multiply-adds are left')
        onnx.checker.check_model(onnx.load(out), full_check=True)
        if unread := unread_constants(onnx.load(out).graph): sys.exit(f'{name} {goal}: nothing reads {unread}')
        for a, b in zip(want, outputs(out, x), strict=True):
            if a.shape != b.shape or not np.abs(a - b).max() <= 2e-5 * np.abs(a).max():
                sys.exit(f'{name} {goal}: differs by {np.abs(a - b).max() / np.abs(a).max():.1e}' if a.shape == b.shape else f'{name}: shape')
        print(f'{name} {goal}: x{left:.2f}, {facts.get("narrowed_nodes")} nodes')
