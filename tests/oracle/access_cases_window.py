"""Random instances of windowed and resampling operators for access_ops.py."""
import numpy as np
from access_ops import Case


def pick(rng, *items):
    return items[int(rng.integers(len(items)))]


def ints(rng, lo, hi, n):
    return rng.integers(lo, hi + 1, n).tolist()


def data(rng, shape, dtype=np.float32):
    if np.dtype(dtype).kind == 'f':
        return rng.standard_normal(shape).astype(dtype)
    i = np.iinfo(dtype)
    return rng.integers(max(i.min, -100), min(i.max, 200) + 1, shape).astype(dtype)


def spatial(rng, n, k, d, big=14):
    """Extents that hold the dilated kernel."""
    return [int((k[i] - 1) * d[i] + 1 + rng.integers(0, big)) for i in range(n)]


def padding(rng, a, n, most):
    """auto_pad or pads into attrs a; most[i]: largest pad of axis i."""
    mode = pick(rng, None, None, None, 'SAME_UPPER', 'SAME_LOWER', 'VALID', 'NOTSET')
    if mode:
        a['auto_pad'] = mode
    if mode in (None, 'NOTSET'):
        if rng.random() < .8:
            a['pads'] = [int(rng.integers(0, most[i % n] + 1)) for i in range(2 * n)]
    return mode


def conv_geometry(rng, dims=None):
    n = dims or pick(rng, 1, 2, 2, 2, 3)
    k, s, d = ints(rng, 1, 4, n), ints(rng, 1, 3, n), pick(rng, [1] * n, [1] * n, ints(rng, 1, 3, n))
    a = {}
    if rng.random() < .7 or max(s) == 1:
        a['strides'] = s
    else:
        s = [1] * n
    if max(d) > 1 or rng.random() < .3:
        a['dilations'] = d
    if rng.random() < .7:
        a['kernel_shape'] = k
    return n, k, s, d, a


def conv(rng):
    n, k, s, d, a = conv_geometry(rng)
    padding(rng, a, n, [(k[i] - 1) * d[i] + 1 + int(rng.integers(0, 3)) for i in range(n)])
    g = pick(rng, 1, 1, 2, 3)
    if g > 1:
        a['group'] = g
    cin, cout = int(rng.integers(1, 3)), g * int(rng.integers(1, 3))
    x = data(rng, [int(rng.integers(1, 4)), cin * g] + spatial(rng, n, k, d))
    ins = [(x, False), (data(rng, [cout, cin] + k), rng.random() < .7)]
    if rng.random() < .5:
        ins.append((data(rng, [cout]), True))
    return Case('Conv', pick(rng, 7, 11, 22), ins, a, tol=1e-5, cut={1: False, 0: True, 2: True})


def conv_integer(rng):
    n, k, s, d, a = conv_geometry(rng, 2)
    padding(rng, a, n, [k[i] + 1 for i in range(n)])
    x = data(rng, [2, 2] + spatial(rng, n, k, d), np.uint8)
    ins = [(x, False), (data(rng, [3, 2] + k, np.uint8), True)]
    if rng.random() < .7:
        ins.append((np.uint8(rng.integers(0, 255)), True))
    return Case('ConvInteger', 10, ins, a, cut={1: False, 2: True})


def qlinear_conv(rng):
    n, k, s, d, a = conv_geometry(rng, 2)
    padding(rng, a, n, [k[i] + 1 for i in range(n)])
    x = data(rng, [2, 2] + spatial(rng, n, k, d), np.uint8)
    per = rng.random() < .5
    ws = rng.uniform(.01, .05, [3] if per else []).astype(np.float32)
    ins = [(x, False), (np.float32(.04), True), (np.uint8(128), True), (data(rng, [3, 2] + k, np.int8), True), (ws, True),
           (np.zeros([3] if per else [], np.int8), True), (np.float32(.3), True), (np.uint8(120), True)]
    if rng.random() < .5:
        ins.append((data(rng, [3], np.int32), True))
    return Case('QLinearConv', 10, ins, a, cut={1: False, 2: True})


def pool(op):
    def make(rng):
        n, k, s, d, a = conv_geometry(rng)
        a['kernel_shape'] = k
        opset = {'MaxPool': pick(rng, 7, 8, 10, 12, 22), 'AveragePool': pick(rng, 7, 10, 11, 19, 22),
                 'LpPool': pick(rng, 7, 11, 18, 22)}[op]
        if opset < {'MaxPool': 10, 'AveragePool': 19, 'LpPool': 18}[op]:
            a.pop('dilations', None)
            d = [1] * n
        padding(rng, a, n, [k[i] - 1 for i in range(n)])
        if opset >= {'MaxPool': 10, 'AveragePool': 10, 'LpPool': 18}[op] and rng.random() < .6:
            a['ceil_mode'] = 1
        if op == 'AveragePool' and opset >= 7 and rng.random() < .5:
            a['count_include_pad'] = 1
        if op == 'LpPool':
            a['p'] = pick(rng, 1, 2, 3)
        dtype = np.uint8 if op == 'MaxPool' and opset >= 12 and rng.random() < .2 else np.float32
        x = data(rng, [int(rng.integers(1, 4)), int(rng.integers(1, 4))] + spatial(rng, n, k, d), dtype)
        return Case(op, opset, [(x, False)], a, tol=0 if op == 'MaxPool' else 1e-5, cut={})
    return make


def maxpool_indices(rng):
    x = data(rng, [2, 3, 9, 8])
    return Case('MaxPool', 12, [(x, False)], {'kernel_shape': [2, 2]}, n_out=2, cut={0: False, 1: False, 2: False, 3: False})


def global_pool(rng):
    op = pick(rng, 'GlobalAveragePool', 'GlobalMaxPool', 'GlobalLpPool')
    x = data(rng, [3, 4, 5, 6][:pick(rng, 3, 4)])
    return Case(op, 22, [(x, False)], tol=1e-6, cut={0: True, 1: True})


def conv_transpose(rng):
    n, k, s, d, a = conv_geometry(rng)
    x = [int(rng.integers(2, 8)) for _ in range(n)]
    op = [0] * n
    if rng.random() < .5:
        op = [int(rng.integers(0, max(s[i], d[i]))) for i in range(n)]
        a['output_padding'] = op
    form = pick(rng, 'pads', 'pads', 'shape', 'auto', 'both')
    full = [(x[i] - 1) * s[i] + op[i] + (k[i] - 1) * d[i] + 1 for i in range(n)]
    if form == 'pads' and rng.random() < .8:
        a['pads'] = [int(rng.integers(0, (k[i % n] - 1) * d[i % n] + 2)) for i in range(2 * n)]
    if form in ('shape', 'both'):
        a['output_shape'] = [int(max(1, f - rng.integers(0, 4))) for f in full]
    if form in ('auto', 'both'):
        a['auto_pad'] = pick(rng, 'SAME_UPPER', 'SAME_LOWER', 'VALID')
    g = pick(rng, 1, 1, 2)
    if g > 1:
        a['group'] = g
    cin, cout = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    ins = [(data(rng, [2, cin * g] + x), False), (data(rng, [cin * g, cout] + k), True)]
    if rng.random() < .5:
        ins.append((data(rng, [cout * g]), True))
    return Case('ConvTranspose', pick(rng, 7, 11, 22), ins, a, tol=1e-5, cut={1: False})


def resize(rng):
    mode = pick(rng, 'nearest', 'linear', 'cubic')
    op, opset = pick(rng, ('Resize', 10), ('Resize', 11), ('Resize', 13), ('Resize', 18), ('Resize', 19), ('Upsample', 7),
                     ('Upsample', 9))
    legacy = op == 'Upsample' or opset == 10
    if legacy and mode == 'cubic':
        mode = 'linear'
    e = ints(rng, 2, 24, 2)
    if rng.random() < .4:
        e = [(v + 11) // 12 * 12 for v in e]
    x = data(rng, [pick(rng, 1, 2), 3] + e)
    sc = [pick(rng, 2.0, 2.0, 3.0, 1.0, 1.5, 4.0, 0.5, 1 / 3, 2 / 3, 0.75, 1.25, 5 / 3, 7.0, 0.6, 1.7) for _ in range(2)]
    if op == 'Upsample':
        sc = [max(1.0, s) for s in sc]
    scales = np.array([1, 1] + sc, np.float32)
    a = {'mode': mode}
    if op == 'Upsample' and opset == 7:
        a['scales'] = [float(v) for v in scales]
        return Case(op, opset, [(x, False)], a, tol=2e-5, cut={0: True, 1: True})
    if legacy:
        return Case(op, opset, [(x, False), (scales, True)], a, tol=2e-5, cut={0: True, 1: True})
    a['coordinate_transformation_mode'] = ct = pick(
        rng, 'half_pixel', 'asymmetric', 'pytorch_half_pixel', 'align_corners', 'tf_half_pixel_for_nn', 'half_pixel_symmetric')
    if ct == 'half_pixel_symmetric' and opset < 19 or ct == 'tf_half_pixel_for_nn' and opset > 11:
        a['coordinate_transformation_mode'] = ct = 'half_pixel'
    if mode == 'nearest':
        a['nearest_mode'] = pick(rng, 'round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil')
    if mode == 'cubic' and rng.random() < .3:
        a['exclude_outside'] = 1
    if opset >= 18 and mode != 'nearest' and rng.random() < .15:
        a['antialias'] = 1
    sizes = np.array(list(x.shape[:2]) + [max(1, int(e[i] * sc[i])) for i in range(2)], np.int64)
    if opset >= 18 and rng.random() < .4:
        a['axes'] = pick(rng, [2, 3], [3, 2], [-1, -2])
        order = [v % 4 for v in a['axes']]
        scales, sizes = scales[order], sizes[order]
    roi = None if opset >= 13 else (np.zeros(0, np.float32), True)
    if rng.random() < .5:
        ins = [(x, False), roi, (scales, True)]
    else:
        ins = [(x, False), roi, None if opset >= 13 else (np.zeros(0, np.float32), True), (sizes, True)]
    dtype_tol = 0 if mode == 'nearest' else 2e-5
    return Case(op, opset, ins, a, tol=dtype_tol, cut={0: True, 1: True})


def resize_common(rng):
    """The forms that models really use must be cut."""
    mode, ct, nm = pick(rng, ('nearest', 'asymmetric', 'floor'), ('nearest', 'half_pixel', 'round_prefer_floor'),
                        ('linear', 'half_pixel', None), ('linear', 'pytorch_half_pixel', None), ('cubic', 'half_pixel', None))
    f = pick(rng, 2, 3, 4)
    e = ints(rng, 5, 40, 2)
    x = data(rng, [1, 3] + e)
    a = {'mode': mode, 'coordinate_transformation_mode': ct}
    if nm:
        a['nearest_mode'] = nm
    if rng.random() < .5:
        ins = [(x, False), None, (np.array([1, 1, f, f], np.float32), True)]
    else:
        ins = [(x, False), None, None, (np.array([1, 3, e[0] * f, e[1] * f], np.int64), True)]
    return Case('Resize', 13, ins, a, tol=0 if nm else 2e-5, cut={0: True, 1: True, 2: True, 3: True})


def pad(rng):
    opset = pick(rng, 9, 11, 13, 18, 19, 21)
    mode = pick(rng, 'constant', 'constant', 'edge', 'reflect', 'wrap' if opset >= 19 else 'constant')
    rank = pick(rng, 2, 4)
    shape = ints(rng, 2, 9, rank)
    limit = [v - 1 if mode == 'reflect' else v if mode == 'wrap' else v + 3 for v in shape]
    low = -1 if mode == 'constant' and rng.random() < .3 else 0
    pads = [int(rng.integers(low, limit[i % rank] + 1)) for i in range(2 * rank)]
    for i in range(rank):
        if rng.random() < .4:
            pads[i] = pads[i + rank] = 0
        if shape[i] + min(pads[i], 0) + min(pads[i + rank], 0) < 1:
            pads[i] = 0
    a = {'mode': mode}
    x = data(rng, shape)
    if opset < 11:
        a['pads'] = pads
        if mode == 'constant':
            a['value'] = 1.5
        return Case('Pad', opset, [(x, False)], a)
    ins = [(x, False), (np.array(pads, np.int64), True)]
    if mode == 'constant' and rng.random() < .6:
        ins.append((np.float32(2.25), bool(rng.random() < .5)))
    if opset >= 18 and rng.random() < .4:
        axes = rng.permutation(rank)[:int(rng.integers(1, rank + 1))]
        ins[1] = (np.array([pads[i] for i in axes] + [pads[i + rank] for i in axes], np.int64), True)
        ins += [None] * (3 - len(ins)) + [(np.array([v - rank if rng.random() < .3 else v for v in axes], np.int64), True)]
    return Case('Pad', opset, ins, a)


def slice_(rng):
    opset = pick(rng, 9, 10, 11, 13)
    rank = pick(rng, 1, 3, 4)
    shape = ints(rng, 3, 12, rank)
    n = int(rng.integers(1, rank + 1))
    axes = rng.permutation(rank)[:n]
    x = data(rng, shape)
    starts, ends, steps = [], [], []
    cut = {}
    for ax in axes:
        e = shape[ax]
        st = 1 if opset < 10 else pick(rng, 1, 1, 2, 3, -1, -2)
        lo, hi = sorted(rng.choice(e + 1, 2, replace=False).tolist())
        if st < 0:
            lo, hi = min(hi, e - 1), lo - 1
            hi = pick(rng, hi - e if hi >= 0 else -e - 5, hi if hi >= 0 else -2 ** 31)
        else:
            lo = pick(rng, lo, lo - e)
            hi = pick(rng, hi, hi - e if hi < e else 2 ** 31 - 1)
        starts.append(lo), ends.append(hi), steps.append(st)
        cut[int(ax)] = st > 0
    if opset < 10:
        a = {'starts': starts, 'ends': ends}
        if axes.tolist() != list(range(n)) or rng.random() < .5:
            a['axes'] = axes.tolist()
        return Case('Slice', opset, [(x, False)], a, cut=cut)
    dt = pick(rng, np.int64, np.int32)
    neg = [v - rank if opset >= 11 and rng.random() < .3 else v for v in axes]
    ins = [(x, False)] + [(np.array(v, dt), True) for v in (starts, ends, neg, steps)]
    if max(steps) == 1 == min(steps) and rng.random() < .5:
        ins.pop()
    return Case('Slice', opset, ins, cut=cut)


def depth_to_space(rng):
    b = pick(rng, 2, 3)
    x = data(rng, [2, b * b * 2] + ints(rng, 1, 6, 2))
    a = {'blocksize': b, 'mode': pick(rng, 'DCR', 'CRD')}
    return Case('DepthToSpace', 13, [(x, False)], a, cut={0: True, 1: False, 2: True, 3: True})


def space_to_depth(rng):
    b = pick(rng, 2, 3)
    x = data(rng, [2, 2] + [b * v for v in ints(rng, 2, 6, 2)])
    return Case('SpaceToDepth', 13, [(x, False)], {'blocksize': b}, cut={0: True, 1: False, 2: True, 3: True})


CASES = {'Conv': conv, 'ConvInteger': conv_integer, 'QLinearConv': qlinear_conv, 'MaxPool': pool('MaxPool'),
         'AveragePool': pool('AveragePool'), 'LpPool': pool('LpPool'), 'MaxPool_indices_refused': maxpool_indices,
         'GlobalPool': global_pool, 'ConvTranspose': conv_transpose, 'Resize': resize, 'Resize_common': resize_common,
         'Pad': pad, 'Slice': slice_, 'DepthToSpace': depth_to_space, 'SpaceToDepth': space_to_depth}
