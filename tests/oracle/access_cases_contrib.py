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


CASES = {f'contrib_{f.__name__}': f for f in [gelu, qlinear_binary, qlinear_concat, fused_conv, fused_matmul, skip_norm]}
