"""Random instances of operators that are cut along a batch for access_ops.py."""
import numpy as np
from access_cases_point import data, ints, only, pick, shape_of, yes
from access_ops import Case


def gather_elements(rng):
    s = shape_of(rng, 1, 4, 5)
    axis = int(rng.integers(-len(s), len(s)))
    q = [int(rng.integers(1, e + 1)) for e in s]
    q[axis] = int(rng.integers(1, 7))
    index = rng.integers(-s[axis], s[axis], q)
    return Case('GatherElements', 13, [(data(rng, s), rng.random() < .3), (index, rng.random() < .3)], {'axis': axis}, cut=yes(len(s)))


def scatter_elements(rng):
    s = shape_of(rng, 1, 4, 5)
    axis = int(rng.integers(-len(s), len(s)))
    q = list(s)
    q[axis] = int(rng.integers(1, s[axis] + 1))
    index = rng.permuted(np.broadcast_to(np.arange(s[axis]).reshape([-1 if a == axis % len(s) else 1 for a in range(len(s))]), s),
                         axis=axis).take(np.arange(q[axis]), axis=axis)
    attrs, opset = {'axis': axis}, pick(rng, 13, 18)
    if opset == 18:
        attrs['reduction'] = pick(rng, 'none', 'add', 'max')
    return Case('ScatterElements', opset, [(data(rng, s), False), (index, False), (data(rng, q), False)], attrs,
                cut={a: a != axis % len(s) for a in range(len(s))})


def gather_nd(rng):
    batch, indexed, rest, more = int(rng.integers(0, 3)), int(rng.integers(1, 3)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
    b, k, r, m = (ints(rng, 1, 4, n) for n in (batch, indexed, rest, more))
    index = np.stack([rng.integers(-e, e, b + m) for e in k], axis=-1)
    return Case('GatherND', 13, [(data(rng, b + k + r), False), (index, rng.random() < .3)], {'batch_dims': batch}, cut=yes(batch + more + rest))


def scatter_nd(rng):
    indexed, rest = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    k, r = ints(rng, 2, 4, indexed), ints(rng, 1, 5, rest)
    places = rng.permutation(int(np.prod(k)))[:int(rng.integers(1, 4))]
    index = np.stack(np.unravel_index(places, k), axis=-1)
    return Case('ScatterND', 13, [(data(rng, k + r), False), (index, False), (data(rng, [len(places)] + r), False)],
                cut={a: a >= indexed for a in range(indexed + rest)})


def top_k(rng):
    s = shape_of(rng, 1, 4, 6)
    axis = int(rng.integers(-len(s), len(s)))
    opset = pick(rng, 10, 11)
    attrs = {'axis': axis}
    if opset == 11:
        attrs['largest'] = int(rng.integers(0, 2))
    ins = [(data(rng, s), False), (np.array([int(rng.integers(1, s[axis] + 1))], np.int64), True)]
    return Case('TopK', opset, ins, attrs, n_out=2, out_index=int(rng.integers(0, 2)), cut={a: a != axis % len(s) for a in range(len(s))})


def one_hot(rng):
    s = shape_of(rng, 1, 3, 5)
    axis, depth = int(rng.integers(-len(s) - 1, len(s) + 1)), int(rng.integers(1, 6))
    ins = [(rng.integers(-depth, depth + 1, s), False), (np.int64(depth), True), (np.array([0, 1], np.float32), True)]
    return Case('OneHot', 11, ins, {'axis': axis}, cut={a: a != axis % (len(s) + 1) for a in range(len(s) + 1)})


def grid_sample(rng):
    opset = pick(rng, 16, 20)
    volume = opset == 20 and rng.random() < .3
    n, c = ints(rng, 1, 3, 2)
    image, rows = ints(rng, 1, 6, 3 if volume else 2), ints(rng, 1, 5, 3 if volume else 2)
    modes = {16: ('bilinear', 'nearest', 'bicubic'), 20: ('linear', 'nearest') if volume else ('linear', 'nearest', 'cubic')}[opset]
    attrs = {'mode': pick(rng, *modes), 'padding_mode': pick(rng, 'zeros', 'border', 'reflection'), 'align_corners': int(rng.integers(0, 2))}
    grid = rng.uniform(-1.3, 1.3, [n] + rows + [len(rows)]).astype(np.float32)
    return Case('GridSample', opset, [(data(rng, [n, c] + image), False), (grid, rng.random() < .4)], attrs, tol=1e-5, cut=yes(2 + len(rows)))


def deform_conv(rng):
    n, c, oc = ints(rng, 1, 4, 3)
    h, w, k = ints(rng, 5, 8, 1)[0], 6, pick(rng, 1, 3)
    oh, ow = h + 2 * (k // 2) - k + 1, w + 2 * (k // 2) - k + 1
    ins = [(data(rng, [n, c, h, w]), False), (data(rng, [oc, c, k, k]), True), (data(rng, [n, 2 * k * k, oh, ow]), False)]
    if rng.random() < .6:
        ins += [(data(rng, [oc]), True), (data(rng, [n, k * k, oh, ow]), False)]
    return Case('DeformConv', 19, ins, {'pads': [k // 2] * 4, 'kernel_shape': [k, k]}, tol=1e-5, cut=only(4, [0]))


def roi_align(rng):
    n, c, r = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    at = rng.uniform(0, 6, [r, 2])
    rois = np.concatenate([at, at + rng.uniform(.5, 5, [r, 2])], axis=1).astype(np.float32)
    attrs = {'output_height': 2, 'output_width': 3, **pick(rng, {'mode': 'avg', 'sampling_ratio': 2}, {'mode': 'avg'}, {'mode': 'max', 'sampling_ratio': 1})}
    return Case('RoiAlign', pick(rng, 10, 16), [(data(rng, [n, c, 8, 9]), False), (rois, False), (rng.integers(0, n, r), rng.random() < .5)], attrs,
                tol=1e-5, cut=only(4, [0, 1]))


def recurrent(rng):
    t, b, i, h = ints(rng, 1, 5, 4)
    op = pick(rng, 'LSTM', 'GRU', 'RNN')
    gates, both = {'LSTM': 4, 'GRU': 3, 'RNN': 1}[op], rng.random() < .4
    d = 2 if both else 1
    ins = [(data(rng, [t, b, i]), False), (data(rng, [d, gates * h, i]), True), (data(rng, [d, gates * h, h]), True)]
    if rng.random() < .7:
        ins.append((data(rng, [d, 2 * gates * h]), True))
        ins.append((rng.integers(1, t + 1, b).astype(np.int32), False) if rng.random() < .5 else None)
        if rng.random() < .6:
            ins += [(data(rng, [d, b, h]), False) for _ in range(2 if op == 'LSTM' else 1)]
    out = int(rng.integers(0, 3 if op == 'LSTM' else 2))
    return Case(op, 14, ins, {'hidden_size': h, 'direction': 'bidirectional' if both else 'forward'}, n_out=3 if op == 'LSTM' else 2, tol=1e-5,
                out_index=out, cut=only(4, [2]) if out == 0 else only(3, [1]))


def reverse_sequence(rng):
    s, first = ints(rng, 1, 5, 4), int(rng.integers(0, 2))
    attrs = {'batch_axis': first, 'time_axis': 1 - first}
    lengths = rng.integers(1, s[1 - first] + 1, s[first])
    return Case('ReverseSequence', 10, [(data(rng, s), False), (lengths, False)], attrs, cut={a: a != 1 - first for a in range(4)})


def trilu(rng):
    s = shape_of(rng, 2, 4, 5)
    ins = [(data(rng, s), False)] + ([(np.int64(rng.integers(-3, 4)), True)] if rng.random() < .6 else [])
    return Case('Trilu', 14, ins, {'upper': int(rng.integers(0, 2))}, cut={a: a < len(s) - 2 for a in range(len(s))})


def det(rng):
    s = shape_of(rng, 1, 2, 4) + [3, 3]
    return Case('Det', 11, [(data(rng, s), False)], tol=1e-5, cut=yes(len(s) - 2))


CASES = {f.__name__: f for f in [
    gather_elements, scatter_elements, gather_nd, scatter_nd, top_k, one_hot, grid_sample, deform_conv, roi_align, recurrent, reverse_sequence,
    trilu, det]}
