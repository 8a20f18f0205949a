"""Random single-operator models for shapes.py: attributes drawn from small ranges, versions drawn from those that differ.

A case counts when ONNX Runtime runs it; then our output shape must be complete and equal. Where ONNX Runtime
refuses a case we may refuse it too (counted, not judged): a refusal of ours that ONNX Runtime does not share is an error.
"""
import collections, os, random, tempfile
import numpy as np, onnx
from onnx import helper, numpy_helper

F = np.float32


def node(op, inputs, version, n_out=1, **attrs):
    """inputs: arrays (constant operands), or ('x', array) for the graph input; None: omitted."""
    return op, inputs, version, n_out, {k: v for k, v in attrs.items() if v is not None}


def build(case):
    op, inputs, version, n_out, attrs = case
    names, inits, gin = [], [], []
    for k, a in enumerate(inputs):
        if a is None:
            names.append('')
        elif isinstance(a, tuple):  # the graph input
            names.append('x%d' % k)
            gin.append(helper.make_tensor_value_info('x%d' % k, helper.np_dtype_to_tensor_dtype(a[1].dtype), a[1].shape))
        else:
            names.append('c%d' % k)
            inits.append(numpy_helper.from_array(a, 'c%d' % k))
    outs = ['y%d' % k for k in range(n_out)]
    n = helper.make_node(op, names, outs, name='the_node', **attrs)
    g = helper.make_graph([n], 'g', gin, [helper.make_empty_tensor_value_info(o) for o in outs], inits)
    return helper.make_model(g, opset_imports=[helper.make_opsetid('', version)], ir_version=8)


def X(*dims, t=F):
    return ('x', np.zeros(dims, t))


def ints(*v):
    return np.array(v, np.int64)


def conv(r):
    n = r.choice([1, 2, 2, 3])
    g = r.choice([1, 1, 2, 3])
    k = [r.randint(1, 4) for _ in range(n)]
    mode = r.choice(['NOTSET', 'NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID'])
    return node('Conv', [X(r.randint(1, 2), g * 2, *[r.randint(1, 12) for _ in range(n)]), np.zeros([g * r.randint(1, 2), 2] + k, F)],
                r.choice([7, 11, 17]), group=g, strides=r.choice([None, [r.randint(1, 3) for _ in range(n)]]),
                dilations=r.choice([None, [r.randint(1, 3) for _ in range(n)]]) if mode in ('NOTSET', 'VALID') else None,
                pads=[r.randint(0, 3) for _ in range(2 * n)] if mode == 'NOTSET' and r.random() < .8 else None,
                auto_pad=mode, kernel_shape=r.choice([None, k]))


def conv_transpose(r):
    n = r.choice([1, 2, 2])
    k = [r.randint(1, 4) for _ in range(n)]
    s = [r.randint(1, 3) for _ in range(n)]
    d = [r.randint(1, 2) for _ in range(n)]
    x = [r.randint(1, 8) for _ in range(n)]
    mode = r.choice(['NOTSET', 'NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID'])
    natural = [(a - 1) * b + (c - 1) * e + 1 for a, b, c, e in zip(x, s, k, d)]
    g = r.choice([1, 1, 2])
    return node('ConvTranspose', [X(1, g * 2, *x), np.zeros([g * 2, r.randint(1, 3)] + k, F)], r.choice([7, 11, 17]), group=g,
                strides=s, dilations=d, auto_pad=mode,
                pads=[r.randint(0, 2) for _ in range(2 * n)] if mode == 'NOTSET' and r.random() < .7 else None,
                output_padding=r.choice([None, None, [r.randint(0, q - 1) for q in s]]),
                output_shape=r.choice([None, None, None, [max(1, q - r.randint(0, 2)) for q in natural]]))


def pool(r):
    op = r.choice(['MaxPool', 'AveragePool', 'LpPool'])
    n = r.choice([1, 2, 2, 3])
    v = r.choice([10, 11, 12, 18, 19, 22])
    k = [r.randint(1, 4) for _ in range(n)]
    mode = r.choice(['NOTSET', 'NOTSET', 'NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID'])
    dil = op == 'MaxPool' or (op == 'AveragePool' and v >= 19) or (op == 'LpPool' and v >= 18)
    ceil = op != 'LpPool' or v >= 18
    d = r.choice([None, [r.randint(1, 3) for _ in range(n)]]) if dil else None
    gaps = 0 if mode.startswith('SAME') and d else 4  # likewise dilated windows with gaps between them under SAME_*
    x = [r.randint((q - 1) * e + 1, 13) for q, e in zip(k, d or [1] * n)]  # a window larger than its input is left open on purpose
    return node(op, [X(1, 2, *x)], v, r.choice([1, 2]) if op == 'MaxPool' else 1, kernel_shape=k,
                strides=r.choice([None, [r.randint(1, q + gaps) for q in k]]), auto_pad=mode, dilations=d,
                ceil_mode=r.choice([None, 0, 1]) if ceil else None,
                pads=[r.randint(0, k[i % n] - 1) for i in range(2 * n)] if mode == 'NOTSET' and r.random() < .8 else None)


def resize(r):
    v = r.choice([10, 11, 13, 18, 19])
    x = [1, r.randint(1, 3), r.randint(1, 9), r.randint(1, 9)]
    scales = [1.0, 1.0] + [r.choice([0.5, 0.7, 1 / 3, 1.0, 1.5, 2.0, 2.6, 0.3, 3.3]) for _ in range(2)]
    sizes = x[:2] + [r.randint(1, 20) for _ in range(2)]
    if v == 10:
        return node('Resize', [X(*x), np.array(scales, F)], v, mode=r.choice(['nearest', 'linear']))
    policy = r.choice([None, 'stretch', 'not_larger', 'not_smaller']) if v >= 18 else None
    plain = policy in (None, 'stretch')  # with a policy ONNX Runtime ignores negative axes: left open on purpose
    axes = r.choice([None, [2, 3], [3, 2]] + ([[-1], [-2, -1]] if plain else [])) if v >= 18 else None
    if axes:
        scales, sizes = [scales[a] for a in axes], [sizes[a] for a in axes]
    mode = r.choice(['nearest', 'linear', 'cubic'])
    if r.random() < .5:
        return node('Resize', [X(*x), None if v > 11 else np.zeros(0, F), np.array(scales, F)], v, mode=mode, axes=axes)
    return node('Resize', [X(*x), None if v > 11 else np.zeros(0, F), None if v > 11 else np.zeros(0, F), ints(*sizes)], v, mode=mode,
                axes=axes, keep_aspect_ratio_policy=policy)


def upsample(r):
    x, s = [1, 2, r.randint(1, 9), r.randint(1, 9)], [1.0, 1.0, r.choice([1.0, 1.5, 2.0, 2.3]), r.choice([1.0, 1.7, 3.0])]
    if r.random() < .5:
        return node('Upsample', [X(*x)], 7, scales=s, mode='nearest')
    return node('Upsample', [X(*x), np.array(s, F)], 9, mode='nearest')


def slice_(r):
    x = [r.randint(1, 7) for _ in range(r.randint(1, 4))]
    n = r.randint(1, len(x))
    axes = r.sample(range(len(x)), n)
    edge = [0, 1, 2, -1, -2, 100, -100, 2**63 - 1, -2**63 + 1, -2**63, 5]
    s, e = [r.choice(edge) for _ in axes], [r.choice(edge) for _ in axes]
    if r.random() < .3:
        return node('Slice', [X(*x)], r.choice([7, 9]), starts=s, ends=e, axes=axes)
    signed = [a - r.choice([0, len(x)]) for a in axes]
    step = [r.choice([1, 1, 2, -1, -2, 3, -100]) for _ in axes]
    return node('Slice', [X(*x), ints(*s), ints(*e), ints(*signed)] + ([ints(*step)] if r.random() < .7 else []), r.choice([11, 13]))


def pad(r):
    x = [r.randint(2, 6) for _ in range(r.randint(1, 4))]
    lo = -1 if r.random() < .3 else 0
    v = r.choice([7, 11, 13, 18, 19])
    if v == 18 and r.random() < .7:
        axes = r.sample(range(len(x)), r.randint(1, len(x)))
        p = [r.randint(lo, 3) for _ in range(2 * len(axes))]
        return node('Pad', [X(*x), ints(*p), None, ints(*[a - r.choice([0, len(x)]) for a in axes])], v)
    p = [r.randint(lo, 3) for _ in range(2 * len(x))]
    return node('Pad', [X(*x)], v, pads=p) if v == 7 else node('Pad', [X(*x), ints(*p)], v)


def reshape(r):
    x = [r.choice([1, 2, 3, 4, 6]) for _ in range(r.randint(1, 4))]
    if r.random() < .15:
        x[r.randrange(len(x))] = 0
    total, t = int(np.prod(x)), []
    while r.random() < .7 and len(t) < 4:
        t.append(r.choice([1, 2, 3, 0, 4, 6]))
    if r.random() < .8:
        t.insert(r.randint(0, len(t)), -1)
    elif total:
        t = [d for d in (2, 3, 1) if total % 6 == 0] + [total // 6 if total % 6 == 0 else total]
    return node('Reshape', [X(*x), ints(*t)], r.choice([7, 13, 14]) if 0 not in x else 14, allowzero=r.choice([None, 1]) if 0 in x else None)


def squeeze(r):
    x = [r.choice([1, 1, 2, 3]) for _ in range(r.randint(1, 5))]
    ones = [k for k, d in enumerate(x) if d == 1]
    axes = r.choice([None, r.sample(ones, r.randint(1, len(ones))) if ones else None])
    v = r.choice([7, 11, 13])
    if v < 13:
        return node('Squeeze', [X(*x)], v, axes=axes)
    return node('Squeeze', [X(*x)] + ([ints(*[a - len(x) for a in axes])] if axes else []), v)


def unsqueeze(r):
    x = [r.randint(1, 3) for _ in range(r.randint(0, 4))]
    n = r.randint(1, 3)
    axes = r.sample(range(len(x) + n), n)
    v = r.choice([7, 11, 13])
    return node('Unsqueeze', [X(*x)], v, axes=axes) if v < 13 else node('Unsqueeze', [X(*x), ints(*[a - r.choice([0, len(x) + n]) for a in axes])], v)


def reduce_(r):
    op = r.choice(['ReduceMean', 'ReduceSum', 'ReduceMax', 'ReduceL2', 'ReduceProd', 'ReduceLogSumExp'])
    x = [r.randint(1, 4) for _ in range(r.randint(1, 4))]
    axes = r.choice([None, r.sample(range(len(x)), r.randint(1, len(x)))])
    keep = r.choice([None, 0, 1])
    v = r.choice([11, 13, 18])
    new = v >= 18 or (op == 'ReduceSum' and v >= 13)
    if not new:
        return node(op, [X(*x)], v, axes=axes, keepdims=keep)
    noop = r.choice([None, 1])
    return node(op, [X(*x)] + ([ints(*[a - len(x) for a in axes])] if axes else []), v, keepdims=keep, noop_with_empty_axes=noop)


def matmul(r):
    a = [r.randint(2, 3) for _ in range(r.randint(1, 4))]
    b = [r.randint(2, 3) for _ in range(r.randint(1, 4))]
    b[-2 if len(b) > 1 else 0] = a[-1]
    for k in range(3, min(len(a), len(b)) + 1):
        b[-k] = r.choice([1, a[-k]])
    return node('MatMul', [X(*a), X(*b)], r.choice([9, 13]))


def broadcast(r):
    full = [r.randint(1, 4) for _ in range(r.randint(0, 4))]
    pick = lambda: [r.choice([1, d]) for d in full[r.randint(0, len(full)):]]
    op, t, n = r.choice([('Add', F, 2), ('Mul', F, 2), ('Max', F, 3), ('Less', F, 2), ('Pow', F, 2), ('And', np.bool_, 2), ('Sum', F, 3)])
    return node(op, [X(*pick(), t=t) for _ in range(n)], r.choice([8, 13]))


def gather(r):
    x = [r.randint(1, 4) for _ in range(r.randint(1, 3))]
    axis = r.randrange(len(x))
    i = np.zeros([r.randint(1, 3) for _ in range(r.randint(0, 2))], np.int64)
    return node('Gather', [X(*x), i], r.choice([7, 13]), axis=axis - (len(x) if r.random() < .3 else 0))


def split(r):
    x = [r.randint(2, 8), r.randint(2, 8)]
    axis = r.choice([0, 1])
    n = r.randint(1, 3)
    cut = sorted(r.randint(0, x[axis]) for _ in range(n - 1))
    sizes = [b - a for a, b in zip([0] + cut, cut + [x[axis]])]
    v = r.choice([7, 13, 18])
    if v == 7:
        return node('Split', [X(*x)], v, n, axis=axis, split=r.choice([None, sizes]))
    if v == 18 and r.random() < .6:
        return node('Split', [X(*x)], v, n, axis=axis, num_outputs=n)
    return node('Split', [X(*x), ints(*sizes)] if v == 18 or r.random() < .6 else [X(*x)], v, n, axis=axis)


def movers(r):
    x = [r.randint(1, 4) for _ in range(r.randint(1, 4))]
    pick = r.randrange(7)
    if pick == 0:
        return node('Transpose', [X(*x)], 13, perm=r.choice([None, r.sample(range(len(x)), len(x))]))
    if pick == 1:
        y = list(x)
        axis = r.randrange(len(x))
        y[axis] = r.randint(1, 5)
        return node('Concat', [X(*x), X(*y), X(*x)], r.choice([7, 13]), axis=axis)
    if pick == 2:
        return node('Tile', [X(*x), ints(*[r.randint(0, 3) for _ in x])], 13)
    if pick == 3:
        t = [r.choice([1, d]) for d in [2] * r.randint(0, 2) + x]
        return node('Expand', [X(*[r.choice([1, d]) for d in x]), ints(*t)], 13)
    if pick == 4:
        return node('Flatten', [X(*x)], r.choice([9, 13]), axis=r.choice([None, r.randint(0, len(x))]))
    if pick == 5:
        return node('Shape', [X(*x)], 15, start=r.choice([None, r.randint(-5, 5)]), end=r.choice([None, r.randint(-5, 5)]))
    return node('ArgMax', [X(*x)], 13, axis=r.randint(-len(x), len(x) - 1), keepdims=r.choice([None, 0]))


def dense(r):
    pick = r.randrange(4)
    a, b, c = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4)
    if pick == 0:
        ta, tb = r.choice([0, 1]), r.choice([0, 1])
        return node('Gemm', [X(*((b, a) if ta else (a, b))), X(*((c, b) if tb else (b, c)))], r.choice([7, 11, 13]), transA=ta, transB=tb)
    if pick == 1:
        eq, dims = r.choice([('ij,jk->ik', [(a, b), (b, c)]), ('bhid,bhjd->bhij', [(2, a, b, c), (2, a, 3, c)]), ('...ij,...jk', [(2, 1, a, b), (3, b, c)]),
                             ('ij->ji', [(a, b)]), ('i,i', [(a,), (a,)]), ('ii->i', [(a, a)]), ('b...d,dk->b...k', [(2, a, 3, b), (b, c)]), (' a b , b c -> a c ', [(a, b), (b, c)])])
        return node('Einsum', [X(*d) for d in dims], 12, equation=eq)
    if pick == 2:
        d = 2 if r.random() < .5 else 1
        return node('LSTM', [X(a, b, c), np.zeros((d, 20, c), F), np.zeros((d, 20, 5), F)], r.choice([7, 14]), 3, hidden_size=5,
                    direction='bidirectional' if d == 2 else r.choice(['forward', 'reverse']))
    return node('GRU', [X(a, b, c), np.zeros((1, 15, c), F), np.zeros((1, 15, 5), F)], 14, 2, hidden_size=5)


def others(r):
    x = [r.randint(2, 5) for _ in range(r.randint(2, 4))]
    pick = r.randrange(8)
    if pick == 0:
        return node('TopK', [X(*x), ints(2)], r.choice([10, 11]), 2, axis=r.randint(-len(x), len(x) - 1))
    if pick == 1:
        return node('OneHot', [X(*x, t=np.int64), ints(6), np.zeros(2, F)], 11, axis=r.randint(-len(x) - 1, len(x)))
    if pick == 2:
        b = r.choice([2, 3])
        return node('DepthToSpace', [X(1, b * b * 2, x[0], x[1])], 13, blocksize=b, mode=r.choice(['DCR', 'CRD']))
    if pick == 3:
        return node('SpaceToDepth', [X(1, 2, x[0] * 2, x[1] * 2)], 13, blocksize=2)
    if pick == 4:
        return node('LayerNormalization', [X(*x), np.zeros(x[-1], F)], 17, r.choice([1, 3]))
    if pick == 5:
        i = np.zeros([r.randint(1, 3), r.randint(1, len(x))], np.int64)
        return node('GatherND', [X(*x), i], 13)
    if pick == 6:
        return node('QuantizeLinear', [X(*x), np.float32(1), np.array(0, r.choice([np.int8, np.uint8]))], 13)
    q, kv, d, s, t = 4, r.choice([1, 2, 4]), r.randint(1, 4), r.randint(1, 4), r.randint(1, 4)
    if r.random() < .5:
        return node('Attention', [X(2, q, s, d), X(2, kv, t, d), X(2, kv, t, d + 1)], 23)
    return node('Attention', [X(2, s, q * d), X(2, t, kv * d), X(2, t, kv * 2)], 23, q_num_heads=q, kv_num_heads=kv)


def contents(r):
    """Constant operands only: the contents of the result must be known, and right."""
    x = [r.randint(1, 4) for _ in range(r.randint(1, 3))]
    arr = lambda *d, lo=-9, hi=9: np.array([r.randint(lo, hi) for _ in range(int(np.prod(d)))], np.int64).reshape(d)
    part = lambda: [r.choice([1, d]) for d in x[r.randint(0, len(x)):]]
    axis = r.randrange(len(x))
    pick = r.randrange(16)
    if pick < 3:
        return node(r.choice(['Add', 'Sub', 'Mul', 'Min', 'Max', 'Equal', 'Less', 'Greater', 'LessOrEqual']), [arr(*x), arr(*part())], 13)
    if pick == 3:
        return node(r.choice(['Div', 'Mod']), [arr(*x), arr(*part(), lo=1)], 13)
    if pick == 4:
        return node('Mod', [arr(*x), -arr(*part(), lo=1)], 13, fmod=r.choice([None, 1]))
    if pick == 5:
        return node('Where', [arr(*part(), lo=0, hi=1).astype(bool), arr(*x), arr(*part())], 9)
    if pick == 6:
        return node('Gather', [arr(*x), arr(*part(), lo=-x[axis], hi=x[axis] - 1)], 13, axis=axis)
    if pick == 7:
        return node('Transpose', [arr(*x)], 13, perm=r.sample(range(len(x)), len(x)))
    if pick == 8:
        y = list(x)
        y[axis] = 2
        return node('Concat', [arr(*x), arr(*y), arr(*x)], 13, axis=axis)
    if pick == 9:
        return node('Tile', [arr(*x), ints(*[r.randint(1, 3) for _ in x])], 13)
    if pick == 10:
        return node('Expand', [arr(*[r.choice([1, d]) for d in x]), ints(*x)], 13)
    if pick == 11:
        step = r.choice([1, 2, -1, -2])
        return node('Slice', [arr(*x), ints(r.randint(-5, 5)), ints(r.randint(-5, 5)), ints(axis), ints(step)], 13)
    if pick == 12:
        return node(r.choice(['ReduceProd', 'ReduceMax', 'ReduceMin']), [arr(*x)], 13, keepdims=r.choice([0, 1]))
    if pick == 13:
        return node('Split', [arr(6, *x)], 13, 3, axis=0)
    if pick == 14:
        q = r.randint(1, len(x))
        idx = np.array([[r.randint(-d, d - 1) for d in x[:q]]], np.int64)
        return node('ScatterND', [arr(*x), idx, arr(1, *x[q:])], 13)
    return node('Range', [np.int64(r.randint(-9, 9)), np.int64(r.randint(-9, 9)), np.int64(r.choice([-3, -1, 1, 2]))], 11)


def images(r):
    """Operators on images that are not in ops.def."""
    n, c, h, w = [r.randint(1, 4) for _ in range(2)] + [r.randint(3, 9) for _ in range(2)]
    op = r.choice(['DeformConv', 'MaxRoiPool', 'Col2Im', 'AffineGrid', 'CenterCropPad'])
    if op == 'DeformConv':
        k, stride, pad = r.randint(1, 3), r.randint(1, 2), r.randint(0, 1)
        oh, ow = [(e + 2 * pad - k) // stride + 1 for e in (h, w)]
        return node(op, [X(n, c, h, w), np.zeros((5, c, k, k), F), X(n, 2 * k * k, oh, ow)], 19, strides=[stride] * 2, pads=[pad] * 4)
    if op == 'MaxRoiPool':
        return node(op, [X(n, c, h, w), X(r.randint(1, 5), 5)], 1, pooled_shape=[r.randint(1, 3), r.randint(1, 3)])
    if op == 'Col2Im':
        block = [r.randint(1, 3), r.randint(1, 3)]
        positions = (h - block[0] + 1) * (w - block[1] + 1)
        return node(op, [X(n, c * block[0] * block[1], positions), ints(h, w), ints(*block)], 18)
    if op == 'AffineGrid':
        axes = r.choice([2, 3])
        return node(op, [X(n, axes, axes + 1), ints(n, c, *[r.randint(1, 5) for _ in range(axes)])], 20, align_corners=r.randint(0, 1))
    axes = r.choice([None, [2, 3], [-1], [1, -2]])
    return node(op, [X(n, c, h, w), ints(*[r.randint(1, 9) for _ in (axes or range(4))])], 18, axes=axes)


def losses(r):
    n, c, h = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4)
    op, reduction = r.choice(['NegativeLogLikelihoodLoss', 'SoftmaxCrossEntropyLoss']), r.choice(['none', 'sum', 'mean', None])
    n_out = r.randint(1, 2) if op[0] == 'S' else 1
    return node(op, [X(n, c, h), X(n, h, t=np.int64)], 13, n_out, reduction=reduction)


FAMILIES = dict(contents=contents, conv=conv, conv_transpose=conv_transpose, pool=pool, resize=resize, upsample=upsample, slice=slice_, pad=pad, reshape=reshape,
                squeeze=squeeze, unsqueeze=unsqueeze, reduce=reduce_, matmul=matmul, broadcast=broadcast, gather=gather, split=split,
                movers=movers, dense=dense, others=others, images=images, losses=losses)


def describe(case):
    op, inputs, version, n_out, attrs = case
    show = [None if a is None else list(a[1].shape) if isinstance(a, tuple) else a.tolist() if a.size < 9 else list(a.shape) for a in inputs]
    return '%s-%d %s %s' % (op, version, show, attrs)


def judge(case, tool, path, dump, check_onnx, check_ort):
    """'same', 'both refuse', 'they refuse' or a complaint."""
    model = build(case)
    onnx.save(model, path)
    found, why = dump(tool, path, {})
    bad = []
    state, ran = check_ort(model, found or {}, {}, {}, bad)
    if not ran:
        return 'both refuse' if found is None else 'they refuse'
    if found is None:
        return 'refused: ' + why
    if bad:
        return bad[0][1]
    open_ = [o for o in model.graph.node[0].output if not found[o].full()]
    if open_:
        return 'left open: %s %s' % (open_[0], found[open_[0]].dims)
    constant = not model.graph.input and found['y0'].dtype in ('int64', 'bool')
    return 'contents unknown' if constant and found['y0'].known is None else 'same'


EXTREMES = [0, -1, 1, 2, 3, 17, 2**31 - 1, 2**31, -2**31, 2**40, 2**48, 2**62, 2**63 - 1, -2**63]


def mutate(case, r):
    """The same case with some numbers replaced by extremes."""
    op, inputs, version, n_out, attrs = case
    inputs, attrs = list(inputs), dict(attrs)
    for k, a in enumerate(inputs):
        if isinstance(a, np.ndarray) and a.dtype == np.int64 and a.size and r.random() < .5:
            a = a.copy().reshape(-1)
            a[r.randrange(a.size)] = r.choice(EXTREMES)
            inputs[k] = a.reshape(inputs[k].shape)
        elif r.random() < .05:
            inputs[k] = None
    for name, v in attrs.items():
        if r.random() < .5 and isinstance(v, list) and all(isinstance(x, int) for x in v):
            v = [r.choice(EXTREMES) if r.random() < .5 else x for x in v]
            attrs[name] = v if r.random() < .8 else v + [1]
        elif r.random() < .5 and isinstance(v, int):
            attrs[name] = r.choice(EXTREMES)
    return op, inputs, r.choice([version, version, 7, 13, 24]), n_out, attrs


def hostile(args, dump):
    """Extreme numbers everywhere: the tool must end with status 0 or 1 (run it on a sanitizer build)."""
    wrong, seen = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'm.onnx')
        for name, make in FAMILIES.items():
            r = random.Random('%d hostile %s' % (args.seed, name))
            for _ in range(args.n):
                case = mutate(make(r), r)
                model = build(case)
                for i in model.graph.input:
                    for d in i.type.tensor_type.shape.dim:
                        if r.random() < .3:
                            d.dim_value = r.choice(EXTREMES)
                        elif r.random() < .1:
                            d.dim_param = 'n'
                with open(path, 'wb') as f:
                    f.write(model.SerializeToString())
                found, why = dump(args.tool, path, {})
                status = '0' if found is not None else why.split(':')[0]
                seen[status] += 1
                if status not in ('0', '1') or 'runtime error' in why:
                    wrong += 1
                    print('  %s\n    %s' % (describe(case), why[:600]))
    print('hostile: statuses %s, %d wrong' % (dict(seen), wrong))
    return wrong


def sweep(args, dump, check_onnx, check_ort):
    wrong = 0
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'm.onnx')
        for name, make in FAMILIES.items():
            if args.only and args.only != name:
                continue
            r, seen = random.Random('%d %s' % (args.seed, name)), collections.Counter()
            for _ in range(args.n):
                case = make(r)
                verdict = judge(case, args.tool, path, dump, check_onnx, check_ort)
                known = verdict in ('same', 'both refuse', 'they refuse')
                seen[verdict if known else 'WRONG'] += 1
                if not known:
                    wrong += 1
                    print('  %s\n    %s' % (describe(case), verdict))
            print('%-16s %s' % (name, dict(seen)))
            if seen['same'] == 0:
                wrong += 1
                print('  no case of this family ran')
    print('sweep: %d disagreements' % wrong)
    return wrong
