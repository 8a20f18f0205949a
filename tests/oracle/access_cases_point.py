"""Random instances of element-wise, normalising, reducing, multiplying, quantising and moving operators for access_ops.py."""
import numpy as np
from access_ops import Case
from access_cases_window import data, ints, pick


def shape_of(rng, lo=1, hi=4, most=7):
    return ints(rng, 1, most, int(rng.integers(lo, hi + 1)))


def broadcast_to(rng, shape):
    """A shape that broadcasts to the given one."""
    own = list(shape[int(rng.integers(0, len(shape) + 1)):])
    return [1 if rng.random() < .3 else e for e in own]


def yes(rank):
    return {a: True for a in range(rank)}


def only(rank, free):
    return {a: a in free for a in range(rank)}


# ---- element-wise ----

UNARY = ['Relu', 'Sigmoid', 'Tanh', 'Exp', 'Abs', 'Neg', 'Erf', 'Softplus', 'Elu', 'LeakyRelu', 'HardSigmoid', 'Sqrt',
         'Ceil', 'Identity', 'Selu', 'HardSwish', 'Sign', 'Cos']


def unary(rng):
    s = shape_of(rng)
    return Case(pick(rng, *UNARY), 14, [(np.abs(data(rng, s)), False)], tol=1e-6, cut=yes(len(s)))


def binary(rng):
    s = shape_of(rng)
    a, b = s, broadcast_to(rng, s)
    op = pick(rng, 'Add', 'Sub', 'Mul', 'Max', 'Less', 'Min', 'PRelu', 'Equal')
    if op != 'PRelu' and rng.random() < .5:
        a, b = b, a
    return Case(op, 13, [(data(rng, a), False), (data(rng, b), rng.random() < .5)], cut=yes(len(s)))


def variadic(rng):
    s = shape_of(rng)
    ins = [(data(rng, s), False)] + [(data(rng, broadcast_to(rng, s)), False) for _ in range(int(rng.integers(1, 4)))]
    rng.shuffle(ins)
    return Case(pick(rng, 'Sum', 'Max', 'Mean', 'Min'), 13, ins, tol=1e-6, cut=yes(len(s)))


def where(rng):
    s = shape_of(rng)
    ins = [(rng.random(broadcast_to(rng, s)) < .5, False), (data(rng, s), False), (data(rng, broadcast_to(rng, s)), True)]
    return Case('Where', 16, ins, cut=yes(len(s)))


def clip(rng):
    s = shape_of(rng)
    lo = None if rng.random() < .3 else (np.float32(-.5), True)
    return Case('Clip', 13, [(data(rng, s), False), lo, (np.float32(.5), rng.random() < .5)], cut=yes(len(s)))


def cast(rng):
    s = shape_of(rng)
    return Case('Cast', 13, [(data(rng, s), False)], {'to': pick(rng, 6, 7, 9, 11)}, cut=yes(len(s)))


def dropout(rng):
    s = shape_of(rng)
    return Case('Dropout', 13, [(data(rng, s), False), (np.float32(.3), True)], n_out=2, cut=yes(len(s)))


# ---- normalisations ----

def batch_norm(rng):
    s = shape_of(rng, 2, 5, 5)
    c = s[1]
    ins = [(data(rng, s), False)] + [(data(rng, [c]), True) for _ in range(3)] + [(np.abs(data(rng, [c])) + .1, True)]
    return Case('BatchNormalization', pick(rng, 9, 15), ins, tol=1e-5, cut=yes(len(s)))


def instance_norm(rng):
    s = shape_of(rng, 3, 5, 5)
    ins = [(data(rng, s), False), (data(rng, [s[1]]), True), (data(rng, [s[1]]), False)]
    return Case('InstanceNormalization', pick(rng, 7, 22), ins, tol=1e-5, cut=only(len(s), [0, 1]))


def layer_norm(rng):
    s = shape_of(rng, 2, 4, 6)
    axis = int(rng.integers(1, len(s)))
    ins = [(data(rng, s), False), (data(rng, s[axis:]), True)]
    if rng.random() < .7:
        ins.append((data(rng, s[axis:]), True))
    a = {'axis': axis if rng.random() < .5 else axis - len(s)}
    return Case('LayerNormalization', 17, ins, a, n_out=pick(rng, 1, 3), tol=1e-5, cut=only(len(s), range(axis)))


def rms_norm(rng):
    s = shape_of(rng, 2, 4, 6)
    axis = int(rng.integers(1, len(s)))
    return Case('RMSNormalization', 23, [(data(rng, s), False), (data(rng, s[axis:]), True)], {'axis': axis}, tol=1e-5,
                cut=only(len(s), range(axis)))


def group_norm(rng):
    s = [int(rng.integers(2, 5)), 2 * int(rng.integers(1, 4)), 3, 4]
    return Case('GroupNormalization', 21, [(data(rng, s), False), (data(rng, [s[1]]), True), (data(rng, [s[1]]), True)],
                {'num_groups': pick(rng, 1, 2)}, tol=1e-5, cut=only(4, [0]))


def lp_norm(rng):
    s = shape_of(rng, 2, 4, 6)
    axis = int(rng.integers(0, len(s)))
    return Case('LpNormalization', pick(rng, 7, 22), [(data(rng, s), False)], {'axis': axis, 'p': pick(rng, 1, 2)}, tol=1e-5,
                cut={a: a != axis for a in range(len(s))})


def mvn(rng):
    s = [int(rng.integers(2, 4)) for _ in range(4)]
    axes = pick(rng, [0, 2, 3], [1, 2, 3], [2, 3])
    return Case('MeanVarianceNormalization', 13, [(data(rng, s), False)], {'axes': axes}, tol=1e-4,
                cut={a: a not in axes for a in range(4)})


def lrn(rng):
    s = ints(rng, 2, 6, 4)
    return Case('LRN', 13, [(data(rng, s), False)], {'size': 3}, tol=1e-5, cut=only(4, [0, 2, 3]))


def softmax(rng):
    s = shape_of(rng, 1, 4, 6)
    opset = pick(rng, 11, 13)
    axis = int(rng.integers(-len(s), len(s)))
    at = axis % len(s)
    free = [a for a in range(len(s)) if (a < at if opset < 13 else a != at)]
    name = pick(rng, 'Softmax', 'LogSoftmax', 'Hardmax')
    return Case(name, opset, [(data(rng, s), False)], {'axis': axis}, tol=1e-5, cut=only(len(s), free))


# ---- reductions ----

def reduce(rng):
    s = shape_of(rng, 2, 4, 6)
    axes = [a for a in range(len(s)) if rng.random() < .5][:len(s) - 1] or [0]
    keep = int(rng.integers(0, 2))
    op = pick(rng, 'ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceL2', 'ReduceLogSumExp', 'ReduceSumSquare', 'ReduceMin')
    opset = pick(rng, 11, 18)
    given = [a - len(s) if rng.random() < .3 else a for a in axes]
    ins, attrs = [(data(rng, s), False)], {'keepdims': keep}
    if opset == 18:
        ins.append((np.array(given, np.int64), True))
    else:
        attrs['axes'] = given
    kept = [a in axes for a in range(len(s)) if keep or a not in axes]
    return Case(op, opset, ins, attrs, tol=1e-5, cut={k: not gone for k, gone in enumerate(kept)})


def arg_max(rng):
    s = shape_of(rng, 2, 4, 6)
    axis, keep = int(rng.integers(-len(s), len(s))), int(rng.integers(0, 2))
    free = {a: True for a in range(len(s) - 1)} if not keep else {a: a != axis % len(s) for a in range(len(s))}
    return Case(pick(rng, 'ArgMax', 'ArgMin'), 13, [(data(rng, s), False)], {'axis': axis, 'keepdims': keep}, cut=free)


def cum_sum(rng):
    s = shape_of(rng, 2, 4, 6)
    axis = int(rng.integers(-len(s), len(s)))
    attrs = {'reverse': int(rng.integers(0, 2)), 'exclusive': int(rng.integers(0, 2))}
    return Case('CumSum', 14, [(data(rng, s), False), (np.int64(axis), True)], attrs, tol=1e-5,
                cut={a: a != axis % len(s) for a in range(len(s))})


# ---- products ----

def matmul_shapes(rng):
    ra, rb = ints(rng, 1, 4, 2)
    if ra == 1 and rb == 1:
        ra = 2
    batch, (m, k, n) = ints(rng, 1, 4, 2), ints(rng, 1, 6, 3)
    lead = lambda r: [e if rng.random() < .7 else 1 for e in batch[4 - r:]] if r > 2 else []
    a = [k] if ra == 1 else lead(ra) + [m, k]
    b = [k] if rb == 1 else lead(rb) + [k, n]
    return a, b


def matmul(rng):
    a, b = matmul_shapes(rng)
    rank = np.matmul(np.zeros(a), np.zeros(b)).ndim
    return Case('MatMul', 13, [(data(rng, a), False), (data(rng, b), rng.random() < .5)], tol=1e-5, cut=yes(rank))


def matmul_integer(rng):
    m, k, n = ints(rng, 2, 6, 3)
    ins = [(data(rng, [m, k], np.uint8), False), (data(rng, [k, n], np.uint8), True)]
    if rng.random() < .7:
        ins += [(np.uint8(3), True), (data(rng, [n], np.uint8) if rng.random() < .5 else np.uint8(7), True)]
    return Case('MatMulInteger', 10, ins, cut=yes(2))


def qlinear_matmul(rng):
    m, k, n = ints(rng, 2, 6, 3)
    per = rng.random() < .5
    b_scale = np.abs(data(rng, [n])) * .01 + .001 if per else np.float32(.02)
    b_zero = np.full([n], 3, np.uint8) if per else np.uint8(3)
    ins = [(data(rng, [m, k], np.uint8), False), (np.float32(.05), True), (np.uint8(100), True),
           (data(rng, [k, n], np.uint8), True), (b_scale, True), (b_zero, True), (np.float32(.3), True), (np.uint8(9), True)]
    return Case('QLinearMatMul', 10, ins, cut=yes(2))


def gemm(rng):
    m, k, n = ints(rng, 1, 7, 3)
    ta, tb = int(rng.integers(0, 2)), int(rng.integers(0, 2))
    ins = [(data(rng, [k, m] if ta else [m, k]), False), (data(rng, [n, k] if tb else [k, n]), rng.random() < .5)]
    c = pick(rng, None, [], [n], [1, n], [m, 1], [m, n], [1], [1, 1])
    if c is not None:
        ins.append((data(rng, c), True))
    return Case('Gemm', 13, ins, {'transA': ta, 'transB': tb, 'alpha': .5, 'beta': 2.}, tol=1e-5, cut=yes(2))


def einsum(rng):
    e = dict(zip('bhqkdn', ints(rng, 1, 5, 6)))
    eq = pick(rng, 'bhqd,bhkd->bhqk', 'bqhd,bkhd->bhqk', 'bqd,dn->bqn', 'qd,d->q', 'bq,kd->dkqb', 'qd, dn', 'bhq->qb')
    left = eq.split('->')[0].replace(' ', '').split(',')
    ins = [(data(rng, [e[c] for c in t]), False) for t in left]
    rank = len(eq.split('->')[1]) if '->' in eq else 2
    return Case('Einsum', 12, ins, {'equation': eq}, tol=1e-5, cut=yes(rank))


def einsum_covered(rng):
    """An ellipsis, over operands of several ranks, one or both of them broadcasting; diagonals."""
    m, k, n = ints(rng, 1, 5, 3)
    if rng.random() < .3:
        eq, cut = pick(rng, ('iij->ij', {0: False, 1: True}), ('bii->bi', {0: True, 1: False}), ('bkii', {0: True, 1: True}))
        s = {'iij->ij': [m, m, n], 'bii->bi': [n, m, m], 'bkii': [n, k, m, m]}[eq]
        return Case('Einsum', 12, [(data(rng, s), False)], {'equation': eq}, tol=1e-5, cut=cut)
    covered = ints(rng, 1, 4, int(rng.integers(1, 3)))
    eq, right = pick(rng, ('...ij,...jk->...ik', 'both'), ('...ij,jk->...ik', 'none'), ('i...j, ...jk->ik...', 'less'), ('...ij,...jk', 'ones'))
    other = {'both': covered, 'none': [], 'less': covered[1:], 'ones': [pick(rng, 1, e) for e in covered]}[right]
    left = [m] + covered + [k] if eq[0] == 'i' else covered + [m, k]
    return Case('Einsum', 12, [(data(rng, left), False), (data(rng, other + [k, n]), False)], {'equation': eq}, tol=1e-5,
                cut=yes(len(covered) + 2))


def attention(rng):
    b, h, q, kv, d, v = (int(i) for i in rng.integers(1, 5, 6))
    groups, causal, rank = pick(rng, 1, 1, 2), int(rng.random() < .25), pick(rng, 3, 4)
    h *= groups
    kh = h // groups
    mk = lambda n, s, w: [b, n, s, w] if rank == 4 else [b, s, n * w]
    ins = [(data(rng, mk(h, q, d)), False), (data(rng, mk(kh, kv, d)), False), (data(rng, mk(kh, kv, v)), False)]
    if rng.random() < .6:
        ins.append((data(rng, pick(rng, [q, kv], [1, kv], [1, q, kv], [b, 1, q, kv], [b, h, q, kv], [1, h, 1, kv])), False))
    attrs = {'is_causal': causal} if causal else {}
    if rank == 3:
        attrs.update(q_num_heads=h, kv_num_heads=kh)
    cut = {0: True, 2: not causal} if rank == 4 else {0: True, 1: not causal, 2: False}
    if rank == 4:
        cut.update({1: h == kh or h == 1, 3: False})
    masked_heads = len(ins) == 4 and ins[3][0].ndim == 3
    if masked_heads and rank == 4:
        cut.pop(1)
    return Case('Attention', 23, ins, attrs, tol=1e-5, cut=cut)


# ---- quantisation ----

def quantize(rng):
    s = shape_of(rng, 2, 4, 6)
    axis, per, down = int(rng.integers(-len(s), len(s))), rng.random() < .6, rng.random() < .5
    n = [s[axis]] if per else []
    scale, zero = (np.abs(data(rng, n)) * .01 + .01).astype(np.float32), np.asarray(rng.integers(0, 200, n), np.uint8)
    x = data(rng, s) if down else data(rng, s, np.uint8)
    ins = [(x, False), (scale, True)] + ([(zero, True)] if rng.random() < .8 or down else [])
    return Case('QuantizeLinear' if down else 'DequantizeLinear', 13, ins, {'axis': axis}, cut=yes(len(s)))


def quantize_blocked_refused(rng):
    scale = np.abs(data(rng, [2, 3])) * .01 + .01
    return Case('QuantizeLinear', 21, [(data(rng, [4, 3]), False), (scale.astype(np.float32), True)],
                {'axis': 0, 'block_size': 2}, cut=only(2, []))


# ---- movement ----

def transpose(rng):
    s = shape_of(rng, 2, 5, 5)
    perm = rng.permutation(len(s)).tolist()
    return Case('Transpose', 13, [(data(rng, s), False)], {'perm': perm} if rng.random() < .8 else {}, cut=yes(len(s)))


def regroup(rng, factors):
    out, i = [], 0
    while i < len(factors):
        n = int(rng.integers(1, 3))
        out.append(int(np.prod(factors[i:i + n])))
        i += n
        if rng.random() < .2:
            out.append(1)
    return out


def reshape(rng):
    f = ints(rng, 2, 4, int(rng.integers(2, 5)))
    s, t = regroup(rng, f), regroup(rng, f if rng.random() < .5 else f[::-1])
    lead = lambda d, a: int(np.prod(d[:a]))
    cut = {a: any(s[i] > 1 and lead(s, i) == lead(t, a) for i in range(len(s))) for a in range(len(t)) if t[a] > 1}
    stated = list(t)
    if rng.random() < .5:
        stated[int(rng.integers(0, len(t)))] = -1
    return Case('Reshape', pick(rng, 7, 13, 14), [(data(rng, s), False), (np.array(stated, np.int64), True)], cut=cut)


def flatten(rng):
    s = shape_of(rng, 1, 4, 5)
    axis = int(rng.integers(0, len(s) + 1))
    return Case('Flatten', 13, [(data(rng, s), False)], {'axis': axis}, cut=yes(2))


def squeeze(rng):
    s = [1 if rng.random() < .4 else e for e in ints(rng, 2, 5, 4)]
    ones = [a for a in range(4) if s[a] == 1]
    opset = pick(rng, 11, 13)
    ins, attrs = [(data(rng, s), False)], {}
    if ones and rng.random() < .5:
        if opset == 13:
            ins.append((np.array(ones, np.int64), True))
        else:
            attrs['axes'] = ones
    return Case('Squeeze', opset, ins, attrs, cut=yes(4 - len(ones)))


def unsqueeze(rng):
    s = ints(rng, 2, 5, 3)
    axes = pick(rng, [0], [1, 3], [-1], [4, 0])
    opset = pick(rng, 11, 13)
    if opset == 13:
        return Case('Unsqueeze', 13, [(data(rng, s), False), (np.array(axes, np.int64), True)])
    return Case('Unsqueeze', 11, [(data(rng, s), False)], {'axes': axes})


def expand(rng):
    t = shape_of(rng, 1, 4, 5)
    s = broadcast_to(rng, t)
    return Case('Expand', 13, [(data(rng, s), False), (np.array(t, np.int64), True)], cut=yes(len(t)))


def tile(rng):
    s = shape_of(rng, 1, 4, 4)
    r = ints(rng, 1, 3, len(s))
    return Case('Tile', 13, [(data(rng, s), False), (np.array(r, np.int64), True)], cut=yes(len(s)))


def concat(rng):
    s = shape_of(rng, 1, 4, 4)
    axis = int(rng.integers(-len(s), len(s)))
    ins = []
    for _ in range(int(rng.integers(1, 5))):
        s[axis] = int(rng.integers(1, 5))
        ins.append((data(rng, s), rng.random() < .3))
    return Case('Concat', 13, ins, {'axis': axis}, cut=yes(len(s)))


def split(rng):
    s = shape_of(rng, 2, 4, 5)
    axis = int(rng.integers(-len(s), len(s)))
    parts = ints(rng, 1, 3, int(rng.integers(2, 4)))
    s[axis] = sum(parts)
    opset = pick(rng, 11, 13)
    ins, attrs = [(data(rng, s), False)], {'axis': axis}
    if opset == 13:
        ins.append((np.array(parts, np.int64), True))
    else:
        attrs['split'] = parts
    return Case('Split', opset, ins, attrs, n_out=len(parts), out_index=int(rng.integers(0, len(parts))),
                cut={a: a != axis % len(s) for a in range(len(s))})


def gather(rng):
    s = shape_of(rng, 1, 4, 5)
    axis = int(rng.integers(-len(s), len(s)))
    q = ints(rng, 1, 4, int(rng.integers(0, 3)))
    index = rng.integers(-s[axis], s[axis], q)
    return Case('Gather', 13, [(data(rng, s), rng.random() < .3), (index, rng.random() < .5)], {'axis': axis},
                cut=yes(len(s) - 1 + len(q)))


CASES = {f.__name__: f for f in [
    unary, binary, variadic, where, clip, cast, dropout, batch_norm, instance_norm, layer_norm, rms_norm, group_norm,
    lp_norm, mvn, lrn, softmax, reduce, arg_max, cum_sum, matmul, matmul_integer, qlinear_matmul, gemm, einsum, einsum_covered, attention,
    quantize, quantize_blocked_refused, transpose, reshape, flatten, squeeze, unsqueeze, expand, tile, concat, split, gather]}
