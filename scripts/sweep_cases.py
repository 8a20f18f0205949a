"""One model for every operator of include/ops.def and every element type: the cases of sweep.py.

    for case in cases(): case.name, case.op, case.type, case.model        type: name of TensorProto.DataType

Every model reads one input and computes [2, 8, 48, 64] or close to it, so that 16 KiB never hold it. Types that are not computed with
come from float32 by Cast and leave by Cast. A case whose model ONNX Runtime does not run as it is, is nobody's fault and not counted.
"""
import os
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'models'))
import builder  # noqa: E402
import sweep_others  # noqa: E402

EXTENTS = (2, 8, 48, 64)
TYPES = ['FLOAT', 'UINT8', 'INT8', 'UINT16', 'INT16', 'INT32', 'INT64', 'BOOL', 'FLOAT16', 'DOUBLE', 'UINT32', 'UINT64', 'BFLOAT16',
         'FLOAT8E4M3FN', 'FLOAT8E4M3FNUZ', 'FLOAT8E5M2', 'FLOAT8E5M2FNUZ', 'UINT4', 'INT4', 'FLOAT4E2M1', 'UINT2', 'INT2']
FLOATS = {T.FLOAT, T.FLOAT16, T.DOUBLE, T.BFLOAT16}
YOUNGEST = {T.UINT2: 25, T.INT2: 25, T.FLOAT4E2M1: 23}  # opsets of types that came after 21
OPSET = 21


class Kit(builder.Net):
    """A network whose constants may be of any type."""

    def __init__(self, dtype, opset):
        super().__init__(seed=1, opset=opset, dtype=dtype)

    def number(self, shape, low=-2, high=3, dtype=None):
        """A constant of whole numbers."""
        dtype = dtype or self.type
        if dtype in (T.BOOL, T.UINT2, T.UINT4): low, high = 0, 2
        elif low < 0 and dtype in (T.UINT8, T.UINT16, T.UINT32, T.UINT64): low = 0
        elif dtype == T.INT2: low, high = -1, 2
        return self.tensor(self.rng.integers(low, high, shape), dtype)

    def weight(self, shape, dtype=None):
        dtype = dtype or self.type
        if dtype not in FLOATS: return self.number(shape, dtype=dtype)
        return self.tensor(self.rng.normal(0, .2, shape), dtype)

    def tensor(self, array, dtype):
        name, array = self.fresh('c'), np.asarray(array)
        self.inits.append(helper.make_tensor(name, dtype, array.shape, array.ravel().tolist()))
        return name

    def ints(self, *numbers, scalar=False):
        return self.tensor(np.array(numbers[0] if scalar else numbers), T.INT64)

    def many(self, op, n, *ins, **attrs):
        """A node of n outputs."""
        outs = [self.fresh() for _ in range(n)]
        self.nodes.append(helper.make_node(op, list(ins), outs, name='n_' + outs[0], **attrs))
        return outs


def branch(net, op, v):
    """If over a graph that computes op of v."""
    def body(o):
        return helper.make_graph([helper.make_node(o, [v], [net.fresh('b')])], 'b', [], [])
    then, other = body(op), body('Neg' if op != 'Neg' else 'Abs')
    for g in (then, other): g.output.append(builder.value(g.node[0].output[0], None, net.type))
    yes = net.tensor(np.array(True), T.BOOL)
    return net.op('If', yes, then_branch=then, else_branch=other)


def loop(net, v):
    body = helper.make_graph([helper.make_node('Identity', ['go'], ['on']), helper.make_node('Add', ['sum', 'sum'], ['more'])], 'b',
                             [builder.value('i', [], T.INT64), builder.value('go', [], T.BOOL), builder.value('sum', None, net.type)],
                             [builder.value('on', [], T.BOOL), builder.value('more', None, net.type)])
    return net.op('Loop', net.ints(2, scalar=True), net.tensor(np.array(True), T.BOOL), v, body=body)


def scan(net, v):
    body = helper.make_graph([helper.make_node('Relu', ['s'], ['t'])], 'b', [builder.value('s', EXTENTS[1:], net.type)],
                             [builder.value('t', EXTENTS[1:], net.type)])
    return net.op('Scan', v, body=body, num_scan_inputs=1)


def rnn(op, gates):
    def build(net, x):
        x = net.reshape(x, [96, 16, 32])
        return net.many(op, 1, x, net.weight((1, gates * 16, 32)), net.weight((1, gates * 16, 16)), hidden_size=16)[0]
    return build


def quantised(net, x, shape, op, *, zero=True, **attrs):
    """x quantised by `op` with scales of that shape; attrs: axis, block_size."""
    scale = net.tensor(np.full(shape, .25), T.FLOAT)
    more = [net.number(shape, 0, 2)] if zero else []
    return net.op(op, x, scale, *more, **attrs)


def per_channel(op):
    return lambda n, x: quantised(n, x, [8], op, axis=1)


def quantised_weight(readers, product='MatMul'):
    """Products by a weight of the network's type, each after the other; DequantizeLinear is read by all of them."""
    def build(net, x):
        x = net.op('Softplus', net.op('Cast', x, to=T.FLOAT))  # no integers, which any order of sums is exact for
        x = net.reshape(x, [768, 64] if product == 'Gemm' else [2, 384, 64])
        w = quantised(net, net.number((64, 64)), (2, 64), 'DequantizeLinear', zero=False, axis=0, block_size=32)
        for _ in range(readers): x = net.op('Relu', net.op(product, x, w))
        return x
    return build


def add_quantised(extents, axis, before):
    """The sum of one that is quantised along an axis and one that is as a whole. before: an operator that may need other axes whole."""
    def build(net, x):
        def channels(v, op): return quantised(net, v, [extents[axis]], op, axis=axis)
        def whole(v, op): return quantised(net, v, [], op)
        x = net.reshape(net.op('Cast', x, to=T.FLOAT), extents)
        parts = [q(q(net.op(o, x), 'QuantizeLinear'), 'DequantizeLinear') for q, o in ((channels, before), (whole, 'Neg'))]
        return net.op(before, channels(channels(net.op('Add', *parts), 'QuantizeLinear'), 'DequantizeLinear'))
    return build


def qlinear(op, *shapes, **attrs):
    def build(net, x):
        def scale(v): return [v, net.tensor(np.float32(.1), T.FLOAT), net.number(())]
        ins = scale(x) + [i for s in shapes for i in scale(net.weight(s))] + scale('')[1:]
        return net.op(op, *ins, **attrs)
    return build


def every(op, *shapes, n_out=1, **attrs):
    """op of x and weights of these shapes."""
    return lambda net, x: net.many(op, n_out, x, *[net.weight(s) for s in shapes], **attrs)[0]


def reduction(op):
    return lambda n, x: n.op(op, x, n.ints(1), keepdims=1) if op[:3] != 'Arg' else n.op(op, x, axis=1)


def with_ints(op, *lists, **attrs):
    return lambda n, x: n.op(op, x, *[n.ints(*v) for v in lists], **attrs)


UNARY = ['Relu', 'LeakyRelu', 'ThresholdedRelu', 'HardSigmoid', 'HardSwish', 'Abs', 'Neg', 'Sign', 'Ceil', 'Floor', 'Round', 'Reciprocal',
         'Sqrt', 'IsNaN', 'IsInf', 'Shrink', 'Softsign', 'Exp', 'Log', 'Sigmoid', 'Tanh', 'Erf', 'Elu', 'Selu', 'Celu', 'Softplus',
         'Gelu', 'Mish', 'Swish', 'Sin', 'Cos', 'Tan', 'Asin', 'Acos', 'Atan', 'Sinh', 'Cosh', 'Asinh', 'Acosh', 'Atanh', 'Identity',
         'Dropout', 'Not', 'BitwiseNot', 'Softmax', 'LogSoftmax', 'Hardmax', 'LpNormalization', 'MeanVarianceNormalization',
         'GlobalAveragePool', 'GlobalMaxPool', 'GlobalLpPool', 'NonZero', 'Shape', 'Size', 'Transpose', 'Flatten']
BINARY = ['Add', 'Sub', 'Mul', 'Div', 'Min', 'Max', 'Sum', 'Mean', 'And', 'Or', 'Xor', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'Equal',
          'Less', 'LessOrEqual', 'Greater', 'GreaterOrEqual', 'PRelu', 'Pow']
REDUCE = ['ReduceMean', 'ReduceSum', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp',
          'ReduceSumSquare', 'ArgMax', 'ArgMin']
POOL = {'kernel_shape': [3, 3], 'pads': [1] * 4}
# Operators that no model calls for, or whose result is not of numbers alone.
NOT_OURS = {'Moments', 'NormFactors', 'GatherRows'}  # made by the tool itself

CASES = {  # name of a case, its operator in front -> function of (Kit, input) to output
    **{op: every(op) for op in UNARY},
    **{op: every(op, (8, 1, 1)) for op in BINARY},
    **{op: reduction(op) for op in REDUCE},
    'Conv': every('Conv', (8, 8, 3, 3), (8,), pads=[1] * 4),
    'Conv depthwise': every('Conv', (8, 1, 3, 3), pads=[1] * 4, group=8),
    'Conv strided': every('Conv', (8, 8, 3, 3), pads=[1] * 4, strides=[2, 2]),
    'ConvInteger': every('ConvInteger', (8, 8, 3, 3), pads=[1] * 4),
    'QLinearConv': qlinear('QLinearConv', (8, 8, 3, 3), pads=[1] * 4),
    'ConvTranspose': every('ConvTranspose', (8, 8, 2, 2), strides=[2, 2]),
    'MaxPool': every('MaxPool', **POOL),
    'AveragePool': every('AveragePool', **POOL),
    'LpPool': every('LpPool', **POOL),
    'BatchNormalization': lambda n, x: n.op('BatchNormalization', x, *[n.number((8,), 1, 3) for _ in range(4)]),
    'InstanceNormalization': every('InstanceNormalization', (8,), (8,)),
    'LayerNormalization': every('LayerNormalization', (64,)),
    'GroupNormalization': every('GroupNormalization', (8,), (8,), num_groups=2),
    'RMSNormalization': every('RMSNormalization', (64,)),
    'LRN': every('LRN', size=3),
    'MatMul': every('MatMul', (64, 64)),
    'MatMulInteger': every('MatMulInteger', (64, 64)),
    'QLinearMatMul': qlinear('QLinearMatMul', (64, 64)),
    'Gemm': lambda n, x: n.op('Gemm', n.reshape(x, [768, 64]), n.weight((64, 64)), n.weight((64,))),
    'Einsum': every('Einsum', (64, 32), equation='bchw,wk->bchk'),
    'Attention': lambda n, x: n.op('Attention', x, x, x),
    'QuantizeLinear': lambda n, x: quantised(n, n.op('Cast', x, to=T.FLOAT), [], 'QuantizeLinear'),
    'QuantizeLinear per channel': lambda n, x: quantised(n, n.op('Cast', x, to=T.FLOAT), [8], 'QuantizeLinear', axis=1),
    'DequantizeLinear': lambda n, x: quantised(n, x, [], 'DequantizeLinear'),
    'DequantizeLinear per channel': per_channel('DequantizeLinear'),
    'DequantizeLinear blocks': lambda n, x: quantised(n, x, (2, 8, 48, 2), 'DequantizeLinear', axis=3, block_size=32),
    'DequantizeLinear weight': quantised_weight(1),
    'DequantizeLinear weight, two readers': quantised_weight(2),
    'DequantizeLinear weight of Gemm': quantised_weight(1, 'Gemm'),
    'DequantizeLinear weight of Conv': lambda n, x: n.op('Conv', n.op('Cast', x, to=T.FLOAT), quantised(n, n.number((8, 8, 3, 3)), (8,),
                                                         'DequantizeLinear', axis=0), pads=[1] * 4),
    'Add of quantised': add_quantised(EXTENTS, 1, 'Relu'),
    'Add of quantised rows': add_quantised((24, 2048), 0, 'Softmax'),
    'Mod': lambda n, x: n.op('Mod', x, n.number((8, 1, 1), 1, 3), fmod=int(n.type in FLOATS)),
    'BitShift': lambda n, x: n.op('BitShift', x, n.number((8, 1, 1), 1, 3), direction='LEFT'),
    'Where': lambda n, x: n.op('Where', n.number((8, 1, 1), dtype=T.BOOL), x, n.number((8, 1, 1))),
    'Clip': lambda n, x: n.op('Clip', x, n.number((), 0, 1), n.number((), 2, 3)),
    'Cast': lambda n, x: n.op('Cast', x, to=T.INT32),
    'CastLike': lambda n, x: n.op('CastLike', x, n.tensor(np.zeros(1), T.INT32)),
    'SwiGLU': lambda n, x: n.op('SwiGLU', x, x),
    'Reshape': with_ints('Reshape', [2, 8, 3072]),
    'Squeeze': lambda n, x: n.op('Squeeze', n.op('Unsqueeze', x, n.ints(0)), n.ints(0)),
    'Unsqueeze': with_ints('Unsqueeze', [1]),
    'Expand': with_ints('Expand', [2, 2, 8, 48, 64]),
    'Concat': lambda n, x: n.op('Concat', x, x, axis=1),
    'Split': lambda n, x: n.op('Add', *n.many('Split', 2, x, axis=1, num_outputs=2)),
    'Slice': with_ints('Slice', [0, 1], [40, 60], [2, 3]),
    'Pad': with_ints('Pad', [0, 0, 1, 1, 0, 0, 1, 1]),
    'Pad reflect': with_ints('Pad', [0, 0, 1, 1, 0, 0, 1, 1], mode='reflect'),
    'Pad wrap': with_ints('Pad', [0, 0, 1, 1, 0, 0, 1, 1], mode='wrap'),
    'Resize': lambda n, x: n.op('Resize', x, '', n.tensor(np.float32([1, 1, 2, 2]), T.FLOAT), mode='nearest'),
    'Resize linear': lambda n, x: n.op('Resize', x, '', n.tensor(np.float32([1, 1, 2, 2]), T.FLOAT), mode='linear'),
    'DepthToSpace': every('DepthToSpace', blocksize=2),
    'SpaceToDepth': every('SpaceToDepth', blocksize=2),
    'Gather': with_ints('Gather', [3, 1, 2], axis=1),
    'Gather rows': lambda n, x: n.op('Gather', n.reshape(x, [768, 64]), n.ints(*range(0, 700, 2)), axis=0),
    'Tile': with_ints('Tile', [1, 2, 1, 1]),
    'CumSum': lambda n, x: n.op('CumSum', x, n.ints(1, scalar=True)),
    'ConstantOfShape': lambda n, x: n.op('Add', x, n.op('ConstantOfShape', n.op('Shape', x), value=helper.make_tensor('v', n.type, [1], [1]))),
    'Range': lambda n, x: n.op('Add', x, n.op('Cast', n.op('Range', *[n.ints(v, scalar=True) for v in (0, 64, 1)]), to=n.type)),
    'Constant': lambda n, x: n.op('Add', x, n.op('Constant', value=helper.make_tensor('v', n.type, [1], [1]))),
    'EyeLike': lambda n, x: n.op('EyeLike', n.reshape(x, [768, 64])),
    'TopK': lambda n, x: n.many('TopK', 2, x, n.ints(3), axis=1)[0],
    'ScatterElements': lambda n, x: n.op('ScatterElements', x, n.tensor(np.zeros((2, 1, 48, 64), int), T.INT64), n.number((2, 1, 48, 64)), axis=1),
    'ScatterND': lambda n, x: n.op('ScatterND', x, n.ints(1), n.number((8, 48, 64))),
    'GatherElements': lambda n, x: n.op('GatherElements', x, n.tensor(np.ones((2, 3, 48, 64), int), T.INT64), axis=1),
    'GatherND': lambda n, x: n.op('GatherND', x, n.tensor([[0, 1], [1, 2]], T.INT64)),
    'OneHot': lambda n, x: n.op('OneHot', n.op('ArgMax', x, axis=1), n.ints(8), n.number((2,)), axis=1),
    'LSTM': rnn('LSTM', 4), 'GRU': rnn('GRU', 3), 'RNN': rnn('RNN', 1),
    'If': lambda n, x: branch(n, 'Relu', n.op('Identity', x)),
    'Loop': loop,
    'Scan': scan,
    'Compress': lambda n, x: n.op('Compress', x, n.tensor([True, False, True], T.BOOL), axis=1),
    'Unique': lambda n, x: n.op('Unique', x),
    'RoiAlign': lambda n, x: n.op('RoiAlign', x, n.tensor([[0, 0, 9, 9]], n.type), n.ints(0), output_height=4, output_width=4),
    'MaxUnpool': lambda n, x: n.op('MaxUnpool', *n.many('MaxPool', 2, x, kernel_shape=[2, 2], strides=[2, 2]), kernel_shape=[2, 2], strides=[2, 2]),
    'NonMaxSuppression': lambda n, x: n.op('NonMaxSuppression', n.reshape(x, [1, 12288, 4]), n.op('ReduceMax', n.reshape(x, [1, 1, 12288, 4]),
                                           n.ints(3), keepdims=0), n.ints(5)),
    'ReverseSequence': lambda n, x: n.op('ReverseSequence', x, n.ints(2, 1, 2, 1, 2, 1, 1, 2), batch_axis=1, time_axis=0),
    'Det': lambda n, x: n.op('Det', n.reshape(x, [3072, 4, 4])),
    'Trilu': every('Trilu'),
    'GridSample': lambda n, x: n.op('GridSample', x, n.tensor(n.rng.uniform(-1, 1, (2, 24, 32, 2)), n.type if n.type in FLOATS else T.FLOAT)),
    'DeformConv': every('DeformConv', (8, 8, 3, 3), (2, 18, 48, 64), pads=[1] * 4),
}
# Operators that no case runs untiled: why.
UNTRIED = {'SwiGLU': 'no kernel in ONNX Runtime', **sweep_others.REASONS}
# ONNX Runtime has no half-precision kernels for these, drops the Casts to it and back, and so answers of other numbers than the model states.
UNROUNDED = {('Unique', 'FLOAT16'), ('MaxUnpool', 'FLOAT16')}
OLDER = {'Scatter': 10, 'Upsample': 9, 'Affine': 6, 'ImageScaler': 6, 'Crop': 6}  # operators that newer opsets lack
OLD_CASES = {
    'Scatter': lambda n, x: n.op('Scatter', x, n.tensor(np.zeros((2, 1, 48, 64), int), T.INT64), n.number((2, 1, 48, 64)), axis=1),
    'Upsample': lambda n, x: n.op('Upsample', x, n.tensor(np.float32([1, 1, 2, 2]), T.FLOAT)),
    'Affine': every('Affine', alpha=2., beta=1.),
    'ImageScaler': every('ImageScaler', scale=2., bias=[.5] * 8),
    'Crop': every('Crop', border=[1] * 4),
}


class Case:
    """name: operator, what is special about it, type. opset: of the standard's operators."""

    def __init__(self, what, build, dtype, opset):
        self.name, self.op, self.type = f'{what} {dtype}', what.split()[0], dtype
        self._what = build, getattr(T, dtype), opset

    def bare(self):
        """x (float32) -> Relu -> Cast -> the operator -> Cast -> y (float32), of a shape that is not stated."""
        build, dtype, opset = self._what
        net = Kit(dtype, opset)
        x = net.op('Relu', net.input('x', list(EXTENTS), T.FLOAT))
        if dtype != T.FLOAT: x = net.op('Cast', x, to=dtype)
        y = build(net, x)
        net.op('Cast', y, to=T.FLOAT, out='y')
        net.output('y', None, T.FLOAT)
        m = net.model(ir=11 if opset > 21 else None)
        if self.op.startswith(sweep_others.MS): m.opset_import.append(helper.make_opsetid(sweep_others.MS, 1))
        return m

    def model(self):
        m = self.bare()
        try: m.graph.output[0].CopyFrom(onnx.shape_inference.infer_shapes(m).graph.output[0])
        except onnx.shape_inference.InferenceError: pass  # no model: skipped
        if not m.graph.output[0].type.tensor_type.HasField('shape'): state_shape(m)
        return m


def state_shape(m):
    """The shape of the output as ONNX Runtime has it, which the checker asks for and does not know itself."""
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.log_severity_level = 4
    try: y, = ort.InferenceSession(m.SerializeToString(), o, providers=['CPUExecutionProvider']).get_outputs()
    except Exception: return  # no model: skipped
    m.graph.output[0].CopyFrom(builder.value('y', y.shape, T.FLOAT))


def operators():
    """Names of the rows of ops.def that a model may call for, and of those with a slice relation elsewhere."""
    with open(os.path.join(ROOT, 'include', 'ops.def')) as f:
        return [o for o in re.findall(r'^OP\((\w+)', f.read(), re.M) if o not in NOT_OURS] + sweep_others.rows(ROOT)


def cases():
    for table in (CASES, OLD_CASES):
        for what, build in table.items():
            for dtype in TYPES:
                if (what, dtype) in UNROUNDED: continue
                opset = OLDER.get(what) or YOUNGEST.get(getattr(T, dtype), 24 if what in ('Attention', 'RMSNormalization', 'Swish') else OPSET)
                yield Case(what, build, dtype, opset)
    for what, (build, types, opset) in sweep_others.OTHERS.items():
        for dtype in types: yield Case(what, build, dtype, opset)
