"""The builders of random_graphs.py: each adds one operator, or a small block that belongs together, to a Graph.

A builder takes the graph, picks its operands among the values made so far, and either returns or raises Rejected. Builders
with a condition in BUILDERS are offered only where it holds (an opset, a kind of value).
"""
import numpy as np
from onnx import helper

from graph_gen import Rejected, rms

ANY, FLOAT, IMAGE, SEQUENCE, EXACT = 'any', 'float', 'image', 'sequence', 'exact'


def start(g):
    """Inputs: ranks 2 to 5, sizes that differ between axes, sometimes a second input that broadcasts."""
    kind = g.pick(['image', 'image', 'image', 'signal', 'volume', 'sequence', 'sequence', 'rows', 'any'])
    n = g.pick([1, 1, 1, 2, 3, 4])
    c = g.pick([1, 2, 3, 4, 6, 8])
    shape = {'image': [n, c, g.int(5, 40), g.int(5, 40)], 'signal': [n, c, g.int(6, 200)],
             'volume': [n, g.pick([1, 2, 4]), g.int(4, 12), g.int(4, 12), g.int(4, 12)],
             'sequence': [n, g.int(2, 60), g.pick([4, 8, 12, 16])], 'rows': [g.int(2, 80), g.int(2, 40)],
             'any': [g.int(1, 12) for _ in range(g.int(2, 5))]}[kind]
    g.kind = kind
    g.input(shape)
    if g.chance(0.35):
        small = [d if g.chance(0.6) else 1 for d in shape]
        g.input(small[g.int(0, len(shape) - 1):] if g.chance(0.3) else small)
    if g.chance(0.12):
        g.input(shape, g.pick(['i8', 'i4', 'u1']))


def some(g, kind=FLOAT, rank=None):
    """A value, mostly a recent one."""
    fits = {ANY: lambda v: True, FLOAT: lambda v: v.is_float, IMAGE: lambda v: v.is_float and 3 <= v.rank <= 5 and min(v.shape[2:]) > 1,
            SEQUENCE: lambda v: v.is_float and v.rank == 3 and v.shape[1] > 1, EXACT: lambda v: v.is_float and v.exact}[kind]
    values = [v for v in g.values if fits(v) and v.rank >= 1 and (rank is None or v.rank == rank)]
    if not values:
        raise Rejected('no operand')
    back = min(int(g.rng.geometric(0.45)) - 1, len(values) - 1)
    return values[-1 - back]


def f4(x):
    return np.asarray(x, 'f4')


# ---- windows ----

def spatial(g, v, k_max=5):
    n = v.rank - 2
    k = [g.int(1, min(k_max, v.shape[2 + i])) for i in range(n)]
    s = [g.pick([1, 1, 1, 2, 3]) for _ in range(n)]
    d = [g.pick([1, 1, 1, 2, 3]) for _ in range(n)]
    return k, s, d


def padding(g, k, d, attrs):
    how = g.rng.random()
    if how < 0.25 and max(d) == 1:
        attrs['auto_pad'] = g.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID'])
    elif how < 0.9:
        reach = [(kk - 1) * dd for kk, dd in zip(k, d)]
        attrs['pads'] = [g.int(0, r) for r in reach] + [g.int(0, r) for r in reach] if g.chance(0.4) else [(r + 1) // 2 for r in reach] * 2
    return attrs


def conv(g):
    v = some(g, IMAGE)
    if v.dtype != np.float32:
        raise Rejected('type')
    k, s, d = spatial(g, v)
    cin = v.shape[1]
    group = g.pick([q for q in (1, 1, 2, 3, 4, 6, 8, cin) if cin % q == 0])
    cout = group * g.pick([1, 2, 3]) if group > 1 else g.pick([1, 2, 3, 4, 6, 8])
    attrs = padding(g, k, d, dict(group=group, strides=s, dilations=d, kernel_shape=k if g.chance(0.7) else None))
    w = g.weight(cout, cin // group, *k)
    b = g.const(f4(g.rng.standard_normal(cout) * 0.1)) if g.chance(0.7) else None
    return g.op('Conv', [v, w, b], exact=False, **attrs)


def conv_transpose(g):
    v = some(g, IMAGE)
    if v.dtype != np.float32:
        raise Rejected('type')
    n = v.rank - 2
    k = [g.int(1, 4) for _ in range(n)]
    s = [g.pick([1, 2, 2, 3]) for _ in range(n)]
    d = [g.pick([1, 1, 1, 2]) for _ in range(n)]
    group = g.pick([q for q in (1, 1, 2, v.shape[1]) if v.shape[1] % q == 0])
    w = g.weight(v.shape[1], g.pick([1, 2, 3]), *k, scale=1.4)
    attrs = dict(strides=s, dilations=d, group=group)
    how = g.rng.random()
    if how < 0.15:
        attrs['auto_pad'] = g.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID'])
    elif how < 0.8:
        attrs['pads'] = [g.int(0, (kk - 1) * dd) for kk, dd in zip(k, d)] * 2
        if g.chance(0.4):
            attrs['output_padding'] = [g.int(0, max(ss, dd) - 1) for ss, dd in zip(s, d)]
    return g.op('ConvTranspose', [v, w, g.const(f4(g.rng.standard_normal(w.shape[1] * group) * 0.1)) if g.chance(0.5) else None],
                exact=False, **attrs)


def pool(g):
    v = some(g, IMAGE)
    kind = g.pick(['MaxPool', 'MaxPool', 'AveragePool', 'AveragePool', 'LpPool'])
    if v.dtype != np.float32:
        raise Rejected('type')
    k, s, d = spatial(g, v, 4)
    attrs = dict(kernel_shape=k, strides=s)
    if kind == 'MaxPool' and g.opset >= 10 and g.chance(0.3) or kind == 'AveragePool' and g.opset >= 19 and g.chance(0.3):
        attrs['dilations'] = d
    else:
        d = [1] * len(k)
    how = g.rng.random()
    if how < 0.2 and max(d) == 1:
        attrs['auto_pad'] = g.pick(['SAME_UPPER', 'SAME_LOWER', 'VALID'])
    elif how < 0.8:
        attrs['pads'] = [g.int(0, (kk - 1) * dd // 2) for kk, dd in zip(k, d)] * 2
    if kind != 'LpPool' and g.opset >= 10 and 'auto_pad' not in attrs and g.chance(0.35):
        attrs['ceil_mode'] = 1
    if kind == 'AveragePool' and g.chance(0.4):
        attrs['count_include_pad'] = 1
    if kind == 'LpPool':
        attrs['p'] = g.pick([1, 2])
    if kind == 'MaxPool' and g.opset >= 8 and g.chance(0.06) and v.exact:
        return g.op(kind, [v], n_out=2, **attrs)
    out = g.op(kind, [v], exact=kind == 'MaxPool', **attrs)
    if 'ceil_mode' in attrs:
        pads = attrs.get('pads', [0] * (2 * len(k)))
        for i in range(len(k)):
            room = v.shape[2 + i] + pads[i] + pads[len(k) + i] - (k[i] - 1) * d[i] - 1
            if -(-room // s[i]) + 1 != out.shape[2 + i]:
                raise Rejected('ONNX Runtime infers another extent than it makes; found.py has such pools')
    return out


def global_pool(g):
    return g.op(g.pick(['GlobalAveragePool', 'GlobalMaxPool']), [some(g, IMAGE)], exact=False)


def squeeze_excite(g):
    v = some(g, IMAGE)
    c = v.shape[1]
    p = g.op('GlobalAveragePool', [v], exact=False)
    w = g.weight(c, c, *[1] * (v.rank - 2), scale=2.0)
    a = g.op('Sigmoid', [g.op('Conv', [p, w], exact=False)], exact=False)
    return g.op('Mul', [v, a])


# ---- normalisation ----

def well_spread(a, axes):
    """Normalising over `axes` must not blow rounding up."""
    a = a.astype('f8')
    spread = a.std(axis=axes)
    if spread.min() < 0.02 * max(rms(a), 1e-9):
        raise Rejected('a group is almost constant')


def batch_norm(g):
    v = some(g, IMAGE if g.chance(0.8) else FLOAT)
    if v.rank < 2 or v.dtype != np.float32:
        raise Rejected('rank')
    c = v.shape[1]
    stats = [g.const(f4(x)) for x in (g.rng.uniform(0.5, 1.5, c), g.rng.normal(size=c) * 0.2, g.rng.normal(size=c) * 0.2,
                                      g.rng.uniform(0.5, 1.5, c))]
    return g.op('BatchNormalization', [v] + stats, exact=False, epsilon=1e-5)


def instance_norm(g):
    v = some(g, IMAGE)
    well_spread(v.array, tuple(range(2, v.rank)))
    c = v.shape[1]
    return g.op('InstanceNormalization', [v, g.const(f4(g.rng.uniform(0.5, 1.5, c))), g.const(f4(g.rng.normal(size=c) * 0.2))], exact=False)


def layer_norm(g):
    v = some(g)
    axis = g.pick([-1, -1, g.int(-v.rank, v.rank - 1)])
    at = axis % v.rank
    well_spread(v.array, tuple(range(at, v.rank)))
    shape = v.shape[at:]
    kind = 'RMSNormalization' if g.opset >= 23 and g.chance(0.5) else 'LayerNormalization'
    ops = [v, g.const(f4(g.rng.uniform(0.5, 1.5, shape)))]
    if kind == 'LayerNormalization' and g.chance(0.7):
        ops.append(g.const(f4(g.rng.normal(size=shape) * 0.2)))
    return g.op(kind, ops, exact=False, axis=axis)


def decomposed_layer_norm(g):
    v = some(g, SEQUENCE)
    well_spread(v.array, (2,))
    mean = reduce_over(g, 'ReduceMean', v, [-1], 1)
    d = g.op('Sub', [v, mean], exact=False)
    var = reduce_over(g, 'ReduceMean', g.op('Mul', [d, d]), [-1], 1)
    std = g.op('Sqrt', [g.op('Add', [var, g.const(f4(1e-5))])])
    h = g.op('Mul', [g.op('Div', [d, std]), g.const(f4(g.rng.uniform(0.5, 1.5, v.shape[2])))])
    return g.op('Add', [h, g.const(f4(g.rng.normal(size=v.shape[2])))])


def group_norm(g):
    v = some(g, IMAGE)
    c = v.shape[1]
    groups = g.pick([q for q in (1, 2, 3, 4) if c % q == 0])
    well_spread(v.array.reshape(v.shape[0], groups, -1), (2,))
    n = c if g.opset >= 21 else groups
    return g.op('GroupNormalization', [v, g.const(f4(g.rng.uniform(0.5, 1.5, n))), g.const(f4(g.rng.normal(size=n) * 0.2))], exact=False,
                num_groups=groups)


def other_norm(g):
    v = some(g)
    kind = g.pick(['LRN', 'LpNormalization', 'MeanVarianceNormalization'])
    if kind == 'LRN':
        if v.rank < 3:
            raise Rejected('rank')
        return g.op('LRN', [v], exact=False, size=g.pick([1, 3, 5]), alpha=0.01, beta=0.75, bias=1.0)
    if kind == 'LpNormalization':
        axis = g.int(-v.rank, v.rank - 1)
        if np.abs(v.array).sum(axis=axis).min() < 0.01:
            raise Rejected('almost zero')
        return g.op(kind, [v], exact=False, axis=axis, p=g.pick([1, 2]))
    if g.opset < 9 or v.rank != 4:
        raise Rejected('rank')
    well_spread(v.array, (0, 2, 3))
    return g.op(kind, [v], exact=False)


def softmax(g):
    v = some(g)
    return g.op(g.pick(['Softmax', 'Softmax', 'LogSoftmax']), [v], exact=False, axis=g.pick([None, -1, 1, g.int(0, v.rank - 1)]))


# ---- element-wise ----

PLAIN = {'Relu': 7, 'LeakyRelu': 7, 'Abs': 7, 'Neg': 7, 'Identity': 7, 'ThresholdedRelu': 10, 'HardSigmoid': 7, 'HardSwish': 14,
         'Shrink': 9, 'Softsign': 7}
CURVES = {'Sigmoid': 7, 'Tanh': 7, 'Erf': 9, 'Elu': 7, 'Selu': 7, 'Celu': 12, 'Softplus': 7, 'Gelu': 20, 'Mish': 18, 'Sin': 7, 'Cos': 7,
          'Atan': 7, 'Asinh': 9}


def unary(g):
    table = PLAIN if g.chance(0.6) else CURVES
    kinds = [k for k, since in table.items() if g.opset >= since]
    kind = g.pick(kinds)
    jumps = kind in ('ThresholdedRelu', 'Shrink')
    return g.op(kind, [some(g, EXACT if jumps else FLOAT)], exact=table is PLAIN)


def positive(g):
    """Operators that need room around zero: on |x| + 0.5."""
    h = g.op('Add', [g.op('Abs', [some(g)]), g.const(f4(0.5))]) if g.chance(0.9) else some(g)
    if h.array.min() < 0.4:
        raise Rejected('near zero')
    kind = g.pick(['Log', 'Sqrt', 'Reciprocal', 'Pow', 'Exp'])
    if kind == 'Pow':
        return g.op('Pow', [h, g.const(f4(g.pick([0.5, 2, 3, -1, 1.7])))], exact=False)
    if kind == 'Exp':
        h = g.op('Tanh', [h], exact=False)
    return g.op(kind, [h], exact=False)


def broadcast(g, v):
    """Something that broadcasts against v: a value, or a constant."""
    if g.chance(0.5):
        others = [w for w in g.values if w is not v and w.dtype == v.dtype and fits_broadcast(v.shape, w.shape)]
        if others:
            return g.pick(others[-6:])
    shape = [d if g.chance(0.5) else 1 for d in v.shape]
    if g.chance(0.5):
        shape = shape[g.int(0, v.rank):]
    return g.const(g.rng.standard_normal(shape).astype(v.dtype))


def fits_broadcast(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1]))


def binary(g):
    v = some(g)
    kind = g.pick(['Add', 'Add', 'Add', 'Mul', 'Mul', 'Sub', 'Div', 'PRelu', 'Max', 'Min'])
    if kind == 'PRelu':
        shape = [1] * v.rank
        at = g.int(0, v.rank - 1)
        shape[at] = v.shape[at]
        return g.op('PRelu', [v, g.const(g.rng.uniform(0.05, 0.5, shape[g.int(0, at):]).astype(v.dtype))])
    w = broadcast(g, v)
    if kind == 'Div':
        if np.abs(w.array).min() < 0.3:
            w = g.op('Add', [g.op('Abs', [w]), g.const(np.asarray(0.5, v.dtype))]) if not w.const else \
                g.const((np.abs(w.array) + 0.5).astype(v.dtype))
    if kind in ('Max', 'Min') and g.opset < 8 and v.shape != w.shape:
        raise Rejected('no broadcasting')
    ops = [v, w] if g.chance(0.75) or kind == 'Div' else [w, v]
    out = g.op(kind, ops)
    if kind in ('Add', 'Sub') and rms(out.array) < 0.05 * max(rms(v.array), rms(w.array)):
        raise Rejected('cancels')
    return out


def several(g):
    v = some(g)
    same = [w for w in g.values if w.shape == v.shape and w.dtype == v.dtype]
    ops = [g.pick(same) for _ in range(g.int(1, 4))]
    return g.op(g.pick(['Sum', 'Mean', 'Max', 'Min']), ops, exact=False)


def clip(g):
    v = some(g)
    if g.opset < 11:
        return g.op('Clip', [v], min=-1.0, max=g.pick([0.5, 6.0]))
    lo, hi = g.const(np.asarray(-0.5, v.dtype), plain=True), g.const(np.asarray(1.5, v.dtype), plain=True)
    return g.op('Clip', [v, lo if g.chance(0.8) else None, hi])


def swish(g):
    v = some(g)
    return g.op('Mul', [v, g.op('Sigmoid', [v], exact=False)])


def where(g):
    v = some(g, EXACT)
    w = broadcast(g, v)
    kind = g.pick(['Greater', 'Less'] + (['GreaterOrEqual', 'LessOrEqual'] if g.opset >= 12 else []))
    if not w.exact:
        raise Rejected('jumps')
    mask = g.op(kind, [v, w])
    if g.chance(0.3):
        mask = g.op('Not', [mask])
    if g.chance(0.2):
        return mask
    a = some(g)
    if a.dtype != v.dtype or not fits_broadcast(a.shape, mask.shape):
        a = v
    return g.op('Where', [mask, a, broadcast(g, a)])


def round_it(g):
    return g.op(g.pick(['Ceil', 'Floor', 'Sign'] + (['Round'] if g.opset >= 11 else [])), [some(g, EXACT)])


def cast(g):
    v = some(g, EXACT)
    h = g.op('Mul', [v, g.const(np.asarray(10, v.dtype))])
    i = g.op('Cast', [h], to=g.pick([6, 7, 3]))
    return i if g.chance(0.2) else g.op('Cast', [i], to=1)


def cast_double(g):
    v = some(g)
    return g.op('Cast', [v], to=11 if v.dtype == np.float32 else 1)


def integer_work(g):
    ints = [v for v in g.values if v.dtype.kind in 'iu' and v.dtype.itemsize >= 4]
    if not ints:
        raise Rejected('no integers')
    v = g.pick(ints)
    w = g.const(g.rng.integers(1, 7, v.shape[g.int(0, v.rank):]).astype(v.dtype))
    h = g.op(g.pick(['Add', 'Mul', 'Sub']), [v, w])
    return g.op('Cast', [h], to=1) if g.chance(0.5) else h


# ---- reductions ----

AXES_INPUT = {'ReduceSum': 13}


def reduce_over(g, kind, v, axes, keep, exact=False):
    if axes is None or g.opset < AXES_INPUT.get(kind, 18):
        return g.op(kind, [v], exact=exact, axes=axes, keepdims=keep)
    return g.op(kind, [v, g.ints(axes)], exact=exact, keepdims=keep)


def reduce(g):
    v = some(g)
    kind = g.pick(['ReduceMean', 'ReduceMean', 'ReduceSum', 'ReduceMax', 'ReduceMin', 'ReduceL1', 'ReduceL2', 'ReduceSumSquare', 'ReduceLogSumExp'])
    n = g.pick([1, 1, 1, 2])
    axes = sorted(g.rng.choice(v.rank, min(n, v.rank), replace=False).tolist())
    if g.chance(0.4):
        axes = [a - v.rank for a in axes]
    if g.chance(0.05):
        axes = None
    out = reduce_over(g, kind, v, axes, g.pick([0, 1]), exact=kind in ('ReduceMax', 'ReduceMin'))
    if kind in ('ReduceMean', 'ReduceSum') and rms(out.array) < 0.005 * rms(v.array):
        raise Rejected('cancels')
    return out


def arg(g):
    v = some(g, EXACT)
    out = g.op(g.pick(['ArgMax', 'ArgMin']), [v], axis=g.int(0, v.rank - 1), keepdims=g.pick([0, 1]))
    return g.op('Cast', [out], to=1) if g.chance(0.5) else out


def cumsum(g):
    v = some(g)
    if g.opset < 11:
        raise Rejected('opset')
    return g.op('CumSum', [v, g.ints(g.int(0, v.rank - 1))], exact=False, reverse=g.pick([0, 1]), exclusive=g.pick([0, 0, 1]))


# ---- matrix products ----

def linear(g):
    v = some(g)
    if v.rank < 2:
        raise Rejected('rank')
    k, n = v.shape[-1], g.pick([1, 3, 4, 8, 16])
    w = g.const((g.rng.standard_normal((k, n)) / np.sqrt(k)).astype(v.dtype))
    if v.rank == 2 and g.chance(0.6):
        trans_b = g.pick([0, 1])
        if trans_b:
            w = g.const(np.ascontiguousarray(w.array.T))
        bias = g.const(g.rng.standard_normal(g.pick([(n,), (1, n), (1,)])).astype(v.dtype)) if g.chance(0.7) or g.opset < 11 else None
        return g.op('Gemm', [v, w, bias], exact=False, transB=trans_b, alpha=g.pick([None, 0.5]), beta=g.pick([None, 2.0]))
    h = g.op('MatMul', [v, w], exact=False)
    if g.chance(0.7):
        h = g.op('Add', [h, g.const(g.rng.standard_normal(n).astype(v.dtype))])
    return h


def transposed(g, v, perm):
    return g.op('Transpose', [v], perm=perm)


def product(g):
    """Two activations."""
    v = some(g)
    if v.rank < 2 or v.shape[-1] * v.shape[-2] < 4:
        raise Rejected('rank')
    perm = list(range(v.rank))
    perm[-1], perm[-2] = perm[-2], perm[-1]
    t = transposed(g, v, perm)
    scale = g.const(np.asarray(1 / np.sqrt(v.shape[-1]), v.dtype))
    return g.op('Mul', [g.op('MatMul', [v, t], exact=False), scale])


def attention(g):
    """Multi-head attention written out, on a sequence."""
    v = some(g, SEQUENCE)
    b, s, d = v.shape
    if d % 4 or v.dtype != np.float32:
        raise Rejected('width')
    heads = g.pick([1, 2, 4])
    q, k, w = (g.op('MatMul', [v, g.weight(d, d, scale=1.0)], exact=False) for _ in range(3))
    split = g.ints([g.pick([0, b]), g.pick([-1, s]), heads, d // heads])
    q, w = (transposed(g, g.op('Reshape', [x, split]), [0, 2, 1, 3]) for x in (q, w))
    k = transposed(g, g.op('Reshape', [k, split]), [0, 2, 3, 1])
    scores = g.op('Mul', [g.op('MatMul', [q, k], exact=False), g.const(f4(1 / np.sqrt(d // heads)))])
    if g.chance(0.3):
        scores = g.op('Add', [scores, g.const(f4(np.triu(np.full((s, s), -9.0), 1)))])
    p = g.op('Softmax', [scores], exact=False, axis=3)
    o = transposed(g, g.op('MatMul', [p, w], exact=False), [0, 2, 1, 3])
    o = g.op('Reshape', [o, g.ints([b, s, d])])
    o = g.op('MatMul', [o, g.weight(d, d)], exact=False)
    return g.op('Add', [o, v]) if g.chance(0.7) else o


def attention_op(g):
    v = some(g, SEQUENCE)
    b, s, d = v.shape
    if d % 4 or v.dtype != np.float32:
        raise Rejected('width')
    q, k, w = (g.op('MatMul', [v, g.weight(d, d)], exact=False) for _ in range(3))
    heads = g.pick([1, 2, 4])
    return g.op('Attention', [q, k, w], exact=False, q_num_heads=heads, kv_num_heads=heads, is_causal=g.pick([0, 0, 1]))


def feed_forward(g):
    v = some(g, SEQUENCE)
    if v.dtype != np.float32:
        raise Rejected('type')
    d = v.shape[-1]
    h = g.op('MatMul', [v, g.weight(d, 2 * d)], exact=False)
    h = g.op('Mul', [g.op('Mul', [h, g.const(f4(0.5))]), g.op('Add', [g.op('Tanh', [h], exact=False), g.const(f4(1))])])
    h = g.op('MatMul', [h, g.weight(2 * d, d)], exact=False)
    return g.op('Add', [h, v])


def einsum(g):
    v = some(g)
    if v.rank < 2 or v.rank > 4:
        raise Rejected('rank')
    ins = 'abcd'[:v.rank]
    w = g.const((g.rng.standard_normal((v.shape[-1], g.pick([2, 5]))) / np.sqrt(v.shape[-1])).astype(v.dtype))
    return g.op('Einsum', [v, w], exact=False, equation=f'{ins},{ins[-1]}z->{ins[:-1]}z')


# ---- movement ----

def transpose(g):
    v = some(g, ANY)
    return transposed(g, v, g.rng.permutation(v.rank).tolist() if g.chance(0.9) else None)


def nhwc_block(g):
    """Transpose to channels last, work, transpose back."""
    v = some(g, IMAGE)
    r = v.rank
    h = transposed(g, v, [0] + list(range(2, r)) + [1])
    h = g.op('Mul', [h, g.const(f4(g.rng.uniform(0.5, 1.5, v.shape[1])).astype(v.dtype))])
    if g.chance(0.5):
        h = g.op('MatMul', [h, g.const((g.rng.standard_normal((v.shape[1],) * 2) / np.sqrt(v.shape[1])).astype(v.dtype))], exact=False)
    return transposed(g, h, [0, r - 1] + list(range(1, r - 1)))


def factors(g, n, parts):
    out = []
    for _ in range(parts - 1):
        q = g.pick([d for d in range(1, n + 1) if n % d == 0])
        out.append(q)
        n //= q
    return out + [n]


def reshape(g):
    v = some(g, ANY)
    how = g.rng.random()
    if how < 0.35 and v.rank >= 2:                           # merge neighbours
        at = g.int(0, v.rank - 2)
        to = list(v.shape[:at]) + [v.shape[at] * v.shape[at + 1]] + list(v.shape[at + 2:])
    elif how < 0.7 and v.rank <= 4:                          # split one
        at = g.int(0, v.rank - 1)
        to = list(v.shape[:at]) + factors(g, v.shape[at], 2) + list(v.shape[at + 1:])
    else:
        to = factors(g, v.array.size, g.int(1, 4))
    if g.chance(0.4):
        at = g.int(0, len(to) - 1)
        to[at] = -1
    elif g.chance(0.3):
        for at in range(min(len(to), v.rank)):
            if to[at] == v.shape[at]:
                to[at] = 0
    return g.op('Reshape', [v, g.ints(to)])


def reshape_by_shape(g):
    """Shape arithmetic: keep axis 0 of the running shape, flatten the rest."""
    v = some(g)
    s = g.op('Shape', [v])
    if g.chance(0.5):
        first = g.op('Gather', [s, g.ints([0])], axis=0)
    elif g.opset >= 10:
        first = g.op('Slice', [s, g.ints([0]), g.ints([1]), g.ints([0])])
    else:
        first = g.op('Slice', [s], starts=[0], ends=[1], axes=[0])
    to = g.op('Concat', [first, g.ints([-1])], axis=0)
    return g.op('Reshape', [v, to])


def squeeze(g):
    v = some(g, ANY)
    ones = [k for k, d in enumerate(v.shape) if d == 1]
    if ones and v.rank > 2 and g.chance(0.7):
        axes = [g.pick(ones)]
        return g.op('Squeeze', [v], axes=axes) if g.opset < 13 else g.op('Squeeze', [v, g.ints(axes)])
    if v.rank >= 5:
        raise Rejected('rank')
    axes = [g.int(0, v.rank)]
    return g.op('Unsqueeze', [v], axes=axes) if g.opset < 13 else g.op('Unsqueeze', [v, g.ints(axes)])


def flatten(g):
    v = some(g)
    return g.op('Flatten', [v], axis=g.int(0, v.rank))


def expand(g):
    v = some(g)
    ones = [k for k, d in enumerate(v.shape) if d == 1]
    to = list(v.shape)
    if ones:
        to[g.pick(ones)] = g.int(2, 6)
    elif v.rank < 5:
        to = [g.int(1, 3)] + to
    return g.op('Expand', [v, g.ints(to)])


def concat(g):
    v = some(g, ANY)
    axis = g.int(0, v.rank - 1)
    rest = lambda w: w.shape[:axis] + w.shape[axis + 1:]
    fits = [w for w in g.values if w.rank == v.rank and w.dtype == v.dtype and rest(w) == rest(v)]
    ops = [v] + [g.pick(fits) for _ in range(g.int(0, 2))]
    if g.chance(0.2):
        shape = list(v.shape)
        shape[axis] = g.int(1, 3)
        ops.append(g.const(g.rng.integers(0, 5, shape).astype(v.dtype)))
    g.rng.shuffle(ops)
    return g.op('Concat', ops, axis=axis if g.chance(0.7) else axis - v.rank if g.opset >= 11 else axis)


def split(g):
    """Split, some work on one part, and sometimes back together."""
    v = some(g)
    axes = [k for k, d in enumerate(v.shape) if d >= 2]
    if not axes:
        raise Rejected('nothing to split')
    axis = g.pick(axes)
    n = g.pick([q for q in (2, 3) if v.shape[axis] >= q])
    parts = [v.shape[axis] // n] * n
    parts[-1] += v.shape[axis] - sum(parts)
    if len(set(parts)) == 1 and g.chance(0.5):
        outs = g.op('Split', [v], n_out=n, axis=axis, **({'num_outputs': n} if g.opset >= 18 else {}))
    elif g.opset < 13:
        outs = g.op('Split', [v], n_out=n, axis=axis, split=parts)
    else:
        outs = g.op('Split', [v, g.ints(parts)], n_out=n, axis=axis)
    a, b = outs[0], outs[1]
    a = g.op('Relu', [a])
    if g.chance(0.6):
        return g.op('Concat', [b, a] + ([outs[2]] if n > 2 else []), axis=axis)
    return a


def slice_(g):
    v = some(g, ANY)
    axes = sorted(g.rng.choice(v.rank, g.pick([1, 1, min(2, v.rank)]), replace=False).tolist())
    starts, ends, steps = [], [], []
    for a in axes:
        d = v.shape[a]
        lo = g.int(0, d - 1)
        hi = g.int(lo + 1, d)
        step = g.pick([1, 1, 1, 2, 3]) if g.opset >= 10 else 1
        if g.opset >= 10 and g.chance(0.12):
            lo, hi, step = hi - 1, lo - 1 if lo > 0 else -d - 1, -step
        elif g.chance(0.3):
            lo -= d
        if g.chance(0.2) and step > 0:
            hi = 2 ** 31 - 1
        starts.append(lo), ends.append(hi), steps.append(step)
    if g.opset < 10:
        return g.op('Slice', [v], starts=starts, ends=ends, axes=axes)
    return g.op('Slice', [v, g.ints(starts), g.ints(ends), g.ints(axes), g.ints(steps) if set(steps) != {1} or g.chance(0.5) else None])


def pad(g):
    v = some(g)
    mode = g.pick(['constant', 'constant', 'reflect', 'edge'] + (['wrap'] if g.opset >= 19 else []))
    pads = [[0, 0] for _ in v.shape]
    for a in g.rng.choice(v.rank, g.pick([1, 2]), replace=False) if v.rank > 1 else [0]:
        room = min(v.shape[a] - 1, 4) if mode != 'constant' else 4
        pads[a] = [g.int(0, room), g.int(0, room)]
        if mode == 'constant' and g.chance(0.15) and v.shape[a] > 3:
            pads[a][g.int(0, 1)] = -1
    flat = [p[0] for p in pads] + [p[1] for p in pads]
    value = float(g.pick([0, 0, 1.5]))
    if g.opset < 11:
        return g.op('Pad', [v], pads=flat, mode=mode, value=value)
    return g.op('Pad', [v, g.ints(flat), g.const(np.asarray(value, v.dtype), plain=True) if mode == 'constant' and g.chance(0.6) else None], mode=mode)


def resize(g):
    v = some(g, IMAGE)
    if v.dtype != np.float32:
        raise Rejected('type')
    scales = [1.0, 1.0] + [float(g.pick([1, 2, 2, 3, 0.5, 1.5, 0.75])) for _ in v.shape[2:]]
    g.uneven_resize |= any(d * s != int(d * s) for d, s in zip(v.shape, scales))
    mode = g.pick(['nearest', 'linear', 'linear'] + (['cubic'] if g.opset >= 11 and v.rank == 4 else []))
    if mode == 'linear' and v.rank not in (4, 5):
        mode = 'nearest'
    if g.opset < 9:
        scales = [max(s, 1.0) for s in scales]
        return g.op('Upsample', [v], exact=mode == 'nearest', mode=mode, scales=scales)
    if g.opset < 11:
        kind = 'Upsample' if g.opset < 10 else 'Resize'
        if kind == 'Upsample':
            scales = [max(s, 1.0) for s in scales]
        return g.op(kind, [v, g.const(f4(scales), plain=True)], exact=mode == 'nearest', mode=mode)
    coord = ['half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel'] + (['half_pixel_symmetric'] if g.opset >= 19 else [])
    attrs = dict(mode=mode, coordinate_transformation_mode=g.pick(coord))
    if mode == 'nearest':
        attrs['nearest_mode'] = g.pick(['floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil'])
    if mode == 'cubic':
        attrs['cubic_coeff_a'] = g.pick([-0.75, -0.5])
        attrs['exclude_outside'] = g.pick([0, 0, 1])
    if g.opset >= 18 and mode != 'nearest' and g.chance(0.3):
        attrs['antialias'] = 1
    roi = g.const(np.zeros(0, 'f4'), plain=True) if g.opset < 13 else None
    corners = attrs['coordinate_transformation_mode'] == 'align_corners'
    if corners or g.chance(0.4):
        sizes = list(v.shape[:2]) + [max(1, int(d * s)) for d, s in zip(v.shape[2:], scales[2:])]
        if corners:
            sizes[2:] = [g.pick([d, 8 * (a - 1) + 1, g.int(1, 3 * a)]) if v.rank == 4 else d for a, d in zip(v.shape[2:], sizes[2:])]
        empty = g.const(np.zeros(0, 'f4'), plain=True) if g.opset < 13 else None
        return g.op('Resize', [v, roi, empty, g.ints(sizes)], exact=mode == 'nearest', **attrs)
    return g.op('Resize', [v, roi, g.const(f4(scales), plain=True)], exact=mode == 'nearest', **attrs)


def resize_to_peer(g):
    """Resize to another value's size, by shape arithmetic; then join it (a U-net's skip)."""
    v, w = some(g, IMAGE, 4), some(g, IMAGE, 4)
    if g.opset < 11 or v.dtype != np.float32 or v.shape[0] != w.shape[0]:
        raise Rejected('opset')
    size = g.op('Slice', [g.op('Shape', [w]), g.ints([2]), g.ints([4]), g.ints([0])])
    to = g.op('Concat', [g.ints(list(v.shape[:2])), size], axis=0)
    empty = g.const(np.zeros(0, 'f4'), plain=True) if g.opset < 13 else None
    h = g.op('Resize', [v, empty, empty, to], mode=g.pick(['nearest', 'linear']), exact=False,
             coordinate_transformation_mode=g.pick(['half_pixel', 'asymmetric']))
    return g.op('Concat', [h, w], axis=1) if w.dtype == h.dtype else h


def blocks(g):
    v = some(g, IMAGE, 4)
    b = g.pick([2, 2, 3])
    n, c, h, w = v.shape
    if g.chance(0.5) and c % (b * b) == 0:
        return g.op('DepthToSpace', [v], blocksize=b, mode=g.pick([None, 'DCR', 'CRD']) if g.opset >= 11 else None)
    if h % b or w % b:
        raise Rejected('size')
    return g.op('SpaceToDepth', [v], blocksize=b)


def pixel_shuffle(g):
    v = some(g, IMAGE, 4)
    n, c, h, w = v.shape
    b = 2
    if c % 4:
        raise Rejected('channels')
    x = g.op('Reshape', [v, g.ints([n, c // 4, b, b, h, w])])
    x = transposed(g, x, [0, 1, 4, 2, 5, 3])
    return g.op('Reshape', [x, g.ints([n, c // 4, h * b, w * b])])


def gather(g):
    v = some(g, ANY)
    axis = g.int(0, v.rank - 1)
    shape = g.pick([(), (g.int(1, 5),), (2, 2)])
    if len(shape) + v.rank - 1 > 5 or len(shape) + v.rank - 1 < 1:
        raise Rejected('rank')
    idx = g.rng.integers(-v.shape[axis] if g.opset >= 11 else 0, v.shape[axis], shape)
    return g.op('Gather', [v, g.const(np.asarray(idx, g.pick(['i8', 'i4'])))], axis=axis)


def embed(g):
    ints = [v for v in g.values if v.dtype.kind == 'i' and v.dtype.itemsize >= 4 and v.rank <= 3 and 0 <= v.array.min() and v.array.max() < 64]
    if not ints:
        raise Rejected('no indices')
    return g.op('Gather', [g.const(f4(g.rng.standard_normal((64, g.pick([4, 8]))))), g.pick(ints)], axis=0)


def tile(g):
    v = some(g, ANY)
    return g.op('Tile', [v, g.ints([g.pick([1, 1, 2, 3]) for _ in v.shape])])


def user_if(g):
    """The model's own If: it stays as it is, and what it captures must stay whole."""
    v = some(g)
    if v.rank > 4 or v.dtype != np.float32:
        raise Rejected('type')
    cond = g.op('Cast', [g.op('ReduceMax', [some(g, EXACT)], keepdims=0)], to=9) if g.chance(0.5) else g.const(np.array(g.chance(0.5)))
    if cond.rank:
        raise Rejected('condition')
    branch = []
    for kind in ('Relu', 'Neg'):
        out = g.fresh('branch')
        branch.append(helper.make_graph([helper.make_node(kind, [v.name], [out])], out + '_body', [],
                                        [helper.make_tensor_value_info(out, 1, v.shape)]))
    return g.op('If', [cond], captures=[v], then_branch=branch[0], else_branch=branch[1])


# ---- quantised ----

def qdq(g, v):
    scale = g.const(f4(g.pick([0.02, 0.05, 0.1])), plain=True)
    z = g.const(np.asarray(g.int(100, 150), 'u1'), plain=True)
    return g.op('DequantizeLinear', [g.op('QuantizeLinear', [v, scale, z]), scale, z], exact=True)


def fake_quant(g):
    return qdq(g, some(g, EXACT))


def quant_conv(g):
    """DQ(weights), QDQ(activations), Conv: what a quantiser emits."""
    v = some(g, EXACT)
    if v.rank != 4 or v.dtype != np.float32:
        raise Rejected('rank')
    x = qdq(g, v)
    c, m, k = v.shape[1], g.pick([2, 4]), g.pick([1, 3])
    if k > min(v.shape[2:]):
        raise Rejected('small')
    q = g.const(g.rng.integers(-60, 60, (m, c, k, k)).astype('i1'))
    per_axis = g.opset >= 13 and g.chance(0.5)
    s = g.const(f4(g.rng.uniform(0.005, 0.02, m if per_axis else ())), plain=True)
    z = g.const(np.zeros(m if per_axis else (), 'i1'), plain=True)
    w = g.op('DequantizeLinear', [q, s, z], axis=0 if per_axis else None)
    return g.op('Conv', [x, w], exact=False, pads=[k // 2] * 4, strides=g.pick([[1, 1], [2, 2]]))


def integer_conv(g):
    v = some(g, EXACT)
    if v.rank != 4 or v.dtype != np.float32:
        raise Rejected('rank')
    q = g.op('QuantizeLinear', [v, g.const(f4(0.05), plain=True), g.const(np.asarray(128, 'u1'), plain=True)])
    c, m, k = v.shape[1], g.pick([2, 4]), g.pick([1, 3])
    zero = g.const(np.asarray(128, 'u1'), plain=True)
    pads = g.pick([None, [k // 2] * 4])
    if g.chance(0.5):
        w = g.const(g.rng.integers(0, 255, (m, c, k, k)).astype('u1'))
        h = g.op('ConvInteger', [q, w, zero if g.chance(0.7) else None], exact=True, pads=pads)
        return g.op('Mul', [g.op('Cast', [h], to=1), g.const(f4(0.0001))])
    w = g.const(g.rng.integers(-60, 60, (m, c, k, k)).astype('i1'))
    h = g.op('QLinearConv', [q, g.const(f4(0.05), plain=True), zero, w, g.const(f4(0.01), plain=True),
                             g.const(np.asarray(0, 'i1'), plain=True), g.const(f4(0.1), plain=True), zero], exact=True, pads=pads)
    return g.op('DequantizeLinear', [h, g.const(f4(0.1), plain=True), zero])


def integer_matmul(g):
    v = some(g, EXACT)
    if v.rank < 2 or v.dtype != np.float32:
        raise Rejected('rank')
    zero = g.const(np.asarray(128, 'u1'), plain=True)
    q = g.op('QuantizeLinear', [v, g.const(f4(0.05), plain=True), zero])
    w = g.const(g.rng.integers(0, 255, (v.shape[-1], g.pick([3, 8]))).astype('u1'))
    return g.op('Mul', [g.op('Cast', [g.op('MatMulInteger', [q, w, zero], exact=True)], to=1), g.const(f4(0.0001))])


# name: (weight, first opset, builder)
BUILDERS = {f.__name__.strip('_'): (w, since, f) for w, since, f in [
    (9, 7, conv), (3, 7, conv_transpose), (5, 7, pool), (1, 7, global_pool), (1, 7, squeeze_excite), (3, 7, batch_norm),
    (2, 7, instance_norm), (2, 17, layer_norm), (1, 7, decomposed_layer_norm), (1, 18, group_norm), (1, 7, other_norm), (3, 7, softmax),
    (8, 7, unary), (2, 7, positive), (7, 7, binary), (2, 7, several), (2, 7, clip), (2, 7, swish), (1, 9, where), (1, 7, round_it),
    (1, 7, cast), (0.5, 7, cast_double), (1.5, 7, integer_work), (3, 7, reduce), (1, 7, arg), (1, 11, cumsum), (4, 7, linear),
    (1, 7, product), (3, 7, attention), (2, 23, attention_op), (2, 7, feed_forward), (1, 12, einsum), (3, 7, transpose),
    (1, 7, nhwc_block), (3, 7, reshape), (1, 7, reshape_by_shape), (2, 7, squeeze), (1, 7, flatten), (1, 8, expand), (4, 7, concat),
    (3, 7, split), (3, 7, slice_), (3, 7, pad), (4, 7, resize), (1, 11, resize_to_peer), (2, 7, blocks), (1, 7, pixel_shuffle),
    (2, 7, gather), (1, 7, embed), (0.7, 7, user_if), (1, 7, tile), (0.5, 10, fake_quant), (0.7, 10, quant_conv), (0.7, 10, integer_conv),
    (0.5, 10, integer_matmul)]}


def choose(g):
    fits = [(k, w, f) for k, (w, since, f) in BUILDERS.items() if g.opset >= since]
    p = np.array([w for _, w, _ in fits], 'f8')
    k = int(g.rng.choice(len(fits), p=p / p.sum()))
    return fits[k][0], fits[k][2]
