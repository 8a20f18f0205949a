"""ONNX models for tests: one way to put a graph together, and the kinds of networks that tests are made of.

    net = Net(seed=3, opset=17)                       a graph under construction; what is random is seeded
    x = net.input('x', [1, 3, 'h', 'w'])              extents: numbers, or names of free ones
    y = net.op('Relu', net.conv(x, 3, 8, pads=[1] * 4))
    net.output(y, [1, 8, 'h', 'w'])
    save(net.model(), 'm.onnx')

    save(conv_chain([16] * 4), 'chain.onnx')          or one of the kinds below

Networks that people know (ResNet, U-Net, ...) come from models/make_models.py; graphs of random operators from
tests/property/graph_gen.py. Nothing here depends on the tool.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def value(name, extents, dtype=FLOAT):
    """An input, output or inner value; extents None: not even the rank is known."""
    return helper.make_tensor_value_info(name, dtype, extents)


def constant(name, array, dtype='f4'):
    """An initializer; dtype None: the array's own."""
    return numpy_helper.from_array(np.array(array, dtype), name)


def ir_of(opset):
    """The IR version that files of this opset have in tests."""
    return 8 if opset < 21 else 10


def model(nodes, inputs, outputs, inits=(), opset=17, ir=None, name='g', domains=(), **more):
    """A model of one graph. domains: operator sets beside the standard one, as (name, version); more: as make_model has it."""
    graph = helper.make_graph(nodes, name, inputs, outputs, list(inits))
    sets = [helper.make_opsetid(d, v) for d, v in [('', opset), *domains]]
    return helper.make_model(graph, opset_imports=sets, ir_version=ir or ir_of(opset), **more)


def save(m, path, outside=None):
    """outside: name of a file beside it that holds all weights. Returns the path."""
    if outside:
        onnx.save(m, path, save_as_external_data=True, location=outside, size_threshold=0)
    else:
        onnx.save(m, path)
    return path


class Net:
    """A graph under construction. Methods append nodes and return the name of what they make."""

    def __init__(self, seed=0, opset=17, dtype=FLOAT, rng=None):
        """dtype: of values and constants that say no other; rng: in place of a seed."""
        self.rng = np.random.default_rng(seed) if rng is None else rng
        self.opset, self.type = opset, dtype
        self.nodes, self.inits, self.inputs, self.outputs, self.count = [], [], [], [], 0

    def fresh(self, base='v'):
        self.count += 1
        return f'{base}{self.count}'

    def input(self, name, extents, dtype=None):
        self.inputs.append(value(name, extents, dtype or self.type))
        return name

    def output(self, name, extents=None, dtype=None):
        self.outputs.append(value(name, extents, dtype or self.type))

    def const(self, array, dtype=None, name=None):
        """dtype: of numpy; None: the network's."""
        name = name or self.fresh('c')
        if dtype is None and self.type == TensorProto.BFLOAT16:  # which numpy has not
            array = np.asarray(array, 'f4')
            self.inits.append(helper.make_tensor(name, self.type, array.shape, array.ravel()))
        else:
            self.inits.append(constant(name, array, dtype or helper.tensor_dtype_to_np_dtype(self.type)))
        return name

    def op(self, op, *ins, out=None, name=None, **attrs):
        """A node of one output, called out or a fresh name."""
        out = out or self.fresh()
        self.nodes.append(helper.make_node(op, list(ins), [out], name=name or f'n_{out}', **attrs))
        return out

    def conv(self, x, c_in, c_out, k=3, bias=None, scale=2, **attrs):
        """k x k; weights are normal, of variance scale over what one output sums up. bias: their deviation, None: none."""
        ins = [x, self.const(self.rng.normal(0, (scale / (k * k * c_in)) ** .5, (c_out, c_in, k, k)))]
        if bias is not None:
            ins.append(self.const(self.rng.normal(0, bias, c_out)))
        return self.op('Conv', *ins, **attrs)

    def uniform(self, shape, low=.5, high=1.5):
        return self.const(self.rng.uniform(low, high, shape))

    def reduce(self, op, x, axes, since=18, **attrs):
        """A reduction: axes are an attribute before the opset `since`, then an input."""
        if self.opset >= since:
            return self.op(op, x, self.const(axes, 'i8'), **attrs)
        return self.op(op, x, axes=axes, **attrs)

    def reshape(self, x, shape):
        return self.op('Reshape', x, self.const(shape, 'i8'))

    def model(self, ir=None, **more):
        return model(self.nodes, self.inputs, self.outputs, self.inits, self.opset, ir, **more)


# ---- kinds of networks ----

def conv_chain(widths, c_in=3, extents=(1, 64, 64), *, k=3, pads=1, act=None, fill=None, scale=.1,
               seed=0, opset=17, normalise=None, tail=(), out=None):
    """x -> Conv of each width -> ... -> y, with `act` behind each.

    extents: batch, height, width; names are free. fill: what all weights are, else they are normal
    of deviation `scale`. normalise: an operator between Conv and act that has a scale and a shift
    of each channel ('InstanceNormalization'), or statistics as well ('BatchNormalization'). act: an
    operator of one input, or 'PRelu'. tail: (operator, attributes) of nodes behind the chain. out:
    extents of y where a tail or the pads change them; None: left to shape inference. Weights are
    w0, w1, ..., nodes conv0, act0, ..., tail0, ...
    """
    net = Net(seed, opset)
    batch, *size = extents
    v, c = net.input('x', [batch, c_in, *size]), c_in
    steps = []  # (operator, constants, name, attributes) of each node
    for j, width in enumerate(widths):
        shape = (width, c, k, k)
        w = net.rng.normal(0, scale, shape) if fill is None else np.full(shape, fill)
        steps.append(('Conv', [net.const(w, name=f'w{j}')], f'conv{j}', {'pads': [pads] * 4}))
        if normalise:
            steps.append((normalise, norm_constants(net, normalise, width), f'norm{j}', {}))
        if act:
            slope = [net.const(np.full((width, 1, 1), .1))] if act == 'PRelu' else []
            steps.append((act, slope, f'act{j}', {}))
        c = width
    steps += [(op, [], f'tail{j}', attrs) for j, (op, attrs) in enumerate(tail)]
    for j, (op, constants, name, attrs) in enumerate(steps):
        v = net.op(op, v, *constants, out='y' if j == len(steps) - 1 else None, name=name, **attrs)
    keeps = not tail and 2 * pads == k - 1
    net.output('y', [batch, c, *size] if keeps else out)
    return net.model()


def norm_constants(net, op, width):
    """Constants of a normalisation of `width` channels: scale and shift, and of BatchNormalization mean and variance."""
    if op == 'BatchNormalization':
        return [net.uniform(width, low, low + 1) for low in (.5, -1, -1, .5)]
    return [net.const(np.ones(width)), net.const(np.zeros(width))]


def residual(blocks=2, width=8, extents=(1, 32, 32), seed=0, opset=17):
    """Conv, then blocks x + Conv(Relu(Conv(x))), then Conv to y."""
    net = Net(seed, opset)
    batch, *size = extents
    v = net.conv(net.input('x', [batch, 3, *size]), 3, width, pads=[1] * 4)
    for _ in range(blocks):
        inner = net.op('Relu', net.conv(v, width, width, pads=[1] * 4))
        v = net.op('Add', v, net.conv(inner, width, width, pads=[1] * 4))
    net.op('Conv', v, net.const(net.rng.normal(0, .1, (3, width, 1, 1))), out='y')
    net.output('y', [batch, 3, *size])
    return net.model()


def attention(tokens=64, width=32, heads=1, seed=0, opset=17):
    """softmax(x Wq (x Wk)^T) x Wv, in heads; tokens may be a name."""
    net, part = Net(seed, opset), width // heads
    x = net.input('x', [1, tokens, width])

    def head(perm):
        w = net.const(net.rng.normal(0, width ** -.5, (width, width)))
        split = net.reshape(net.op('MatMul', x, w), [1, -1, heads, part])
        return net.op('Transpose', split, perm=perm)
    q, k, v = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
    scores = net.op('Mul', net.op('MatMul', q, k), net.const(part ** -.5))
    made = net.op('MatMul', net.op('Softmax', scores, axis=-1), v)
    made = net.op('Transpose', made, perm=[0, 2, 1, 3])
    net.op('Reshape', made, net.const([1, -1, width], 'i8'), out='y')
    net.output('y', [1, tokens, width])
    return net.model()


def quantised_conv(width=8, extents=(1, 32, 32), seed=0, opset=17):
    """x -> quantised and back -> Conv, whose weights are bytes -> quantised and back -> y, as exporters write it."""
    net = Net(seed, opset)
    batch, *size = extents
    x = net.input('x', [batch, 3, *size])

    def pair(v, scale, out=None):
        s, z = net.const(scale), net.const(128, 'u1')
        return net.op('DequantizeLinear', net.op('QuantizeLinear', v, s, z), s, z, out=out)
    w = net.const(net.rng.integers(-127, 128, (width, 3, 3, 3)), 'i1')
    w = net.op('DequantizeLinear', w, net.const(1 / 300), net.const(0, 'i1'))
    pair(net.op('Conv', pair(x, 1 / 32), w, pads=[1] * 4), 1 / 16, out='y')
    net.output('y', [batch, width, *size])
    return net.model()


def counted_loop(trips=3, extents=(1, 4, 16, 16), op='Relu', opset=17):
    """y = x after `trips` rounds of a Loop whose body is one operator."""
    net, body = Net(opset=opset), Net(opset=opset)
    net.input('x', extents)
    body.input('i', [], TensorProto.INT64)
    go, v = body.input('go', [], TensorProto.BOOL), body.input('v', extents)
    on, made = body.op('Identity', go), body.op(op, v)
    body.output(on, [], TensorProto.BOOL)
    body.output(made, extents)
    inner = helper.make_graph(body.nodes, 'body', body.inputs, body.outputs)
    net.op('Loop', net.const(trips, 'i8'), net.const(True, '?'), 'x', out='y', body=inner)
    net.output('y', extents)
    return net.model()


# ---- changes to a model ----

def halve(m, wide=False):
    """Weights, and all between inputs and outputs, in half precision, in place. wide: rounded to it, but kept in float32.

    Factors of Resizes stay: the standard has them in float32.
    """
    factors = {n.input[2] for n in m.graph.node if n.op_type == 'Resize' and len(n.input) > 2}
    for t in m.graph.initializer:
        if t.data_type == FLOAT and t.name not in factors:
            rounded = numpy_helper.to_array(t).astype('f2')
            t.CopyFrom(numpy_helper.from_array(rounded.astype('f4') if wide else rounded, t.name))
    if not wide:
        for v in [*m.graph.input, *m.graph.output]:
            if v.type.tensor_type.elem_type == FLOAT:
                v.type.tensor_type.elem_type = TensorProto.FLOAT16
        del m.graph.value_info[:]
    return m


def free_extents(m, axes=(2, 3)):
    """These axes of all inputs and outputs become free, in place: d2, d3, ..."""
    for v in [*m.graph.input, *m.graph.output]:
        for k in axes:
            d = v.type.tensor_type.shape.dim[k]
            d.Clear()
            d.dim_param = f'd{k}'
    del m.graph.value_info[:]
    return m
