"""Random instances of operators of domain com.microsoft for access_ops.py."""
import numpy as np
from access_cases_point import broadcast_to, data, ints, only, pick, shape_of, yes
from access_ops import Case
from onnx import TensorProto


def case(op, *args, **more):
    return Case('com.microsoft::' + op, 17, *args, **more)


def gelu(rng):
    op, s = pick(rng, 'Gelu', 'QuickGelu', 'FastGelu', 'BiasGelu'), shape_of(rng, 1, 4, 6)
    bias = op == 'BiasGelu' or (op == 'FastGelu' and rng.random() < .5)
    return case(op, [(data(rng, s), False)] + ([(data(rng, s[-1:]), True)] if bias else []), tol=1e-5, cut=yes(len(s)))


def quantised(rng, s, const=False):
    return [(data(rng, s, np.uint8), const), (np.float32(rng.uniform(.01, .1)), True), (np.uint8(rng.integers(90, 140)), True)]


def qlinear_binary(rng):
    s = shape_of(rng, 1, 4, 5)
    ins = quantised(rng, s) + quantised(rng, broadcast_to(rng, s), rng.random() < .3)
    return case(pick(rng, 'QLinearAdd', 'QLinearMul'), ins + [(np.float32(.2), True), (np.uint8(100), True)])


def qlinear_concat(rng):
    s = shape_of(rng, 1, 4, 4)
    axis, ins = int(rng.integers(0, len(s))), [(np.float32(.07), True), (np.uint8(120), True)]
    for _ in range(int(rng.integers(1, 5))):
        s[axis] = int(rng.integers(1, 5))
        ins += quantised(rng, s)
    return case('QLinearConcat', ins, {'axis': axis}, cut=yes(len(s)), out_type=TensorProto.UINT8)


def fused_conv(rng):
    c, oc, n, h, k = *ints(rng, 1, 5, 3), int(rng.integers(6, 13)), pick(rng, 1, 3)
    stride, pads = int(rng.integers(1, 3)), ints(rng, 0, 1, 4)
    ins = [(data(rng, [n, c, h, 9]), False), (data(rng, [oc, c, k, k]), True), (data(rng, [oc]), True)]
    if rng.random() < .5:
        oh, ow = ((e + pads[a] + pads[2 + a] - k) // stride + 1 for a, e in enumerate((h, 9)))
        ins.append((data(rng, [n, oc, oh, ow]), False))
    attrs = {'pads': pads, 'strides': [stride] * 2, 'kernel_shape': [k] * 2}
    attrs.update(pick(rng, {'activation': 'Relu'}, {'activation': 'LeakyRelu', 'activation_params': [.1]}))
    return case('FusedConv', ins, attrs, tol=1e-5)


def fused_matmul(rng):
    b, (m, k, n) = ints(rng, 1, 3, int(rng.integers(0, 3))), ints(rng, 1, 6, 3)
    ta, tb = int(rng.integers(0, 2)), int(rng.integers(0, 2))
    left, right = b + ([k, m] if ta else [m, k]), (b if rng.random() < .6 else []) + ([n, k] if tb else [k, n])
    return case('FusedMatMul', [(data(rng, left), False), (data(rng, right), False)], {'transA': ta, 'transB': tb, 'alpha': .5}, tol=1e-5,
                cut=yes(len(b) + 2))


def skip_norm(rng):
    b, r, h = ints(rng, 1, 5, 2) + [8]
    ins = [(data(rng, [b, r, h]), False), (data(rng, [b, r, h]), False), (data(rng, [h]), True)]
    op = pick(rng, 'SkipLayerNormalization', 'SkipSimplifiedLayerNormalization')
    if op == 'SkipLayerNormalization':
        ins += [(data(rng, [h]), True)] + ([(data(rng, [h]), True)] if rng.random() < .5 else [])
    outputs = pick(rng, ['o0'], ['o0', '', '', 'o3'])
    return case(op, ins, {'epsilon': 1e-5}, n_out=len(outputs), outputs=outputs, tol=1e-5, cut=only(3, [0, 1]))


def number(v): return np.array(v), True


def quantised_one(rng):
    op, s = pick(rng, 'QLinearLeakyRelu', 'QLinearSigmoid', 'QLinearSoftmax'), shape_of(rng, 1, 4, 6)
    attrs, cut = {'alpha': .2} if op == 'QLinearLeakyRelu' else {}, yes(len(s))
    if op == 'QLinearSoftmax':
        axis, opset = int(rng.integers(-len(s), len(s))), pick(rng, 12, 13)
        attrs = {'axis': axis, 'opset': opset}
        cut = {a: a != axis % len(s) if opset == 13 else a < axis % len(s) for a in range(len(s))}
    ins = quantised(rng, s) + [number(np.float32(1 / 256)), number(np.uint8(0))]
    return case(op, ins, attrs, cut=cut, out_type=TensorProto.UINT8)


def quantised_pool(rng):
    c, n, h, k = *ints(rng, 1, 5, 2), int(rng.integers(6, 13)), pick(rng, 1, 3)
    ins = quantised(rng, [n, c, h, 9]) + [number(np.float32(.05)), number(np.uint8(100))]
    if rng.random() < .3: return case('QLinearGlobalAveragePool', ins, cut=only(4, [0, 1]), out_type=TensorProto.UINT8)
    attrs = {'pads': ints(rng, 0, k // 2, 4), 'strides': ints(rng, 1, 2, 2), 'kernel_shape': [k] * 2, 'ceil_mode': int(rng.integers(0, 2)),
             'count_include_pad': int(rng.integers(0, 2))}
    return case('QLinearAveragePool', ins, attrs, tol=1 / 255, out_type=TensorProto.UINT8)


def quantise(rng):
    s = shape_of(rng, 1, 4, 6)
    scale = [number(np.float32(.02)), number(np.uint16(30000))]
    if rng.random() < .5: return case('DequantizeLinear', [(rng.integers(0, 60000, s).astype('u2'), False)] + scale, cut=yes(len(s)), out_type=TensorProto.FLOAT)
    return case('QuantizeLinear', [(data(rng, s), False)] + scale, cut=yes(len(s)), out_type=TensorProto.UINT16)


def simplified_norm(rng):
    s = shape_of(rng, 2, 4, 6)
    axis = int(rng.integers(1, len(s)))
    ins = [(data(rng, s), False), (data(rng, s[axis:]), True)]
    return Case('SimplifiedLayerNormalization', 17, ins, {'axis': axis, 'epsilon': 1e-5, 'stash_type': 1}, tol=1e-5, cut=only(len(s), range(axis)))


def packed_attention(rng):
    b, rows, heads, each, wide = *ints(rng, 1, 4, 2), *ints(rng, 1, 3, 1), *ints(rng, 2, 4, 1), 6
    ins = [(data(rng, [b, rows, wide]), False), (data(rng, [wide, 3 * heads * each]), True), (data(rng, [3 * heads * each]), True)]
    mask = pick(rng, None, [b], [b, rows], [b, rows, rows])
    if mask: ins.append((rng.integers(1, rows + 1, mask).astype('i4') if mask == [b] else rng.integers(0, 2, mask).astype('i4'), False))
    if rng.random() < .3: ins += [None] * (5 - len(ins)) + [(data(rng, [pick(rng, 1, b), heads, rows, rows]), False)]
    attrs = {'num_heads': heads, 'unidirectional': int(rng.integers(0, 2))}
    return case('Attention', ins, attrs, tol=1e-5, cut=only(3, [0]))


def quantised_attention(rng):
    b, rows, heads, each, wide = *ints(rng, 1, 4, 2), *ints(rng, 1, 3, 1), *ints(rng, 2, 4, 1), 8
    ins = [(data(rng, [b, rows, wide], np.uint8), False), (data(rng, [wide, 3 * heads * each], np.uint8), True),
           (data(rng, [3 * heads * each]), True), number(np.float32(.01)), number(np.float32(.02)),
           (rng.integers(1, rows + 1, [b]).astype('i4'), False), number(np.uint8(120)), number(np.uint8(130))]
    return case('QAttention', ins, {'num_heads': heads}, tol=1e-5, cut=only(3, [0]), out_type=TensorProto.FLOAT)


def many_heads(rng):
    b, q, kv, heads, each = *ints(rng, 1, 4, 3), *ints(rng, 1, 3, 1), *ints(rng, 2, 4, 1)
    wide, causal = heads * each, int(rng.random() < .3)
    if causal: kv = q
    ins = [(data(rng, [b, r, wide]), False) for r in (q, kv, kv)] + [pick(rng, None, (data(rng, [3 * wide]), True))]
    mask = pick(rng, None, [b], [b, kv], [b, q, kv])
    ins.append((rng.integers(1, kv + 1, mask).astype('i4') if mask == [b] else rng.integers(0, 2, mask).astype('i4'), False) if mask else None)
    if rng.random() < .3: ins.append((data(rng, [pick(rng, 1, b), pick(rng, 1, heads), q, kv]), False))
    return case('MultiHeadAttention', ins, {'num_heads': heads, 'unidirectional': causal}, tol=1e-5,
                cut={0: True, 1: not causal and mask != [b], 2: False})


def grouped_heads(rng):
    b, rows, groups, each, times = *ints(rng, 1, 4, 2), *ints(rng, 1, 2, 1), 8, int(rng.integers(1, 3))
    past = int(rng.integers(0, 3))
    ins = [(data(rng, [b, rows, groups * times * each]), False)] + [(data(rng, [b, rows, groups * each]), False) for _ in range(2)]
    ins += [(data(rng, [b, groups, past, each]), False) for _ in range(2)] if past and rows == 1 else [None, None]
    total = rows + (past if rows == 1 else 0)
    ins += [(np.full([b], total - 1, 'i4'), False), (np.array(total, 'i4'), True)]
    return case('GroupQueryAttention', ins, {'num_heads': groups * times, 'kv_num_heads': groups}, n_out=3, outputs=['o0', 'o1', 'o2'], tol=1e-5,
                cut={0: True, 1: False, 2: False})


def embeddings(rng):
    b, rows, wide, words = *ints(rng, 1, 5, 2), 8, 11
    ids = [(rng.integers(0, n, [b, rows]).astype('i4'), False) for n in (words, 2)]
    tables = [(data(rng, [n, wide]), True) for n in (words, 7, 2)]
    ins = ids + tables + [(data(rng, [wide]), True) for _ in range(2)]
    mask, placed = rng.random() < .3, rng.random() < .5
    ins.append((rng.integers(0, 2, [b, rows]).astype('i4'), False) if mask else None)
    ins.append((rng.integers(0, 7, [pick(rng, 1, b), rows]).astype('i4'), False) if placed else None)
    outputs = ['o0', 'o1'] if mask else ['o0', '', 'o2']
    types = [TensorProto.FLOAT, TensorProto.INT32, TensorProto.FLOAT]
    return case('EmbedLayerNormalization', ins, {'epsilon': 1e-5}, n_out=len(outputs), outputs=outputs, tol=1e-5,
                cut={0: True, 1: placed and not mask, 2: False}, out_type=types[:len(outputs)])


def rotary(rng):
    b, rows, heads, each = *ints(rng, 1, 4, 2), *ints(rng, 1, 3, 1), 8
    four, placed = rng.random() < .5, rng.random() < .6
    x = [b, heads, rows, each] if four else [b, rows, heads * each]
    at = rng.integers(0, 9, [b, rows]) if placed else np.array([int(rng.integers(0, 4))])
    ins = [(data(rng, x), False), (at.astype('i8'), False)] + [(data(rng, [9, each // 2]), True) for _ in range(2)]
    attrs = {} if four else {'num_heads': heads, 'rotary_embedding_dim': 0}
    rank = len(x)
    return case('RotaryEmbedding', ins, attrs, tol=1e-5, cut={a: a < rank - 2 or (a == rank - 2 and placed) for a in range(rank)})


def rows_product(rng):
    op = pick(rng, 'MatMulNBits', 'MatMulIntegerToFloat', 'QGemm')
    m, k, n = ints(rng, 1, 6, 3)
    if op == 'QGemm':
        ta, tb = int(rng.integers(0, 2)), int(rng.integers(0, 2))
        ins = [(data(rng, [k, m] if ta else [m, k], np.uint8), False), number(np.float32(.02)), number(np.uint8(120)),
               (data(rng, [n, k] if tb else [k, n], np.uint8), True), number(np.float32(.03)), number(np.uint8(130)),
               (rng.integers(-99, 99, pick(rng, [n], [m, n], [1, n])).astype('i4'), True)]
        return case(op, ins, {'transA': ta, 'transB': tb}, tol=1e-5, cut=only(2, [0]), out_type=TensorProto.FLOAT)
    b = ints(rng, 1, 4, int(rng.integers(0, 3)))
    if op == 'MatMulIntegerToFloat':
        ins = [(data(rng, b + [m, k], np.uint8), False), (data(rng, [k, n], np.uint8), True), number(np.float32(.02)),
               (rng.uniform(.01, .1, [n]).astype('f4'), True), number(np.uint8(120)), number(np.uint8(120)), (data(rng, [n]), True)]
        return case(op, ins, tol=1e-5, cut=only(len(b) + 2, range(len(b) + 1)), out_type=TensorProto.FLOAT)
    k = 32
    ins = [(data(rng, b + [m, k]), False), (rng.integers(0, 256, [n, 1, 16]).astype('u1'), True), (data(rng, [n]), True)]
    return case(op, ins, {'K': k, 'N': n, 'bits': 4, 'block_size': 32}, tol=1e-5, cut=only(len(b) + 2, range(len(b) + 1)))


CASES = {f'contrib_{f.__name__}': f for f in [
    gelu, qlinear_binary, qlinear_concat, fused_conv, fused_matmul, skip_norm, quantised_one, quantised_pool, quantise, simplified_norm,
    packed_attention, quantised_attention, many_heads, grouped_heads, embeddings, rotary, rows_product]}
