"""Random instances of standard operators without a row in ops.def for access_ops.py."""
import numpy as np
from access_cases_point import data, ints, only, pick, shape_of, yes
from access_ops import Case
from onnx import TensorProto


def dft(rng):
    s, opset = ints(rng, 1, 4, int(rng.integers(1, 3))) + [8, pick(rng, 1, 2)], pick(rng, 17, 20)
    axis = int(rng.integers(1 if opset == 17 else 0, len(s) - 1))
    ins = [(data(rng, s), False)] + ([None, (np.int64(pick(rng, axis, axis - len(s))), True)] if opset == 20 else [])
    attrs = {'onesided': int(s[-1] == 1 and rng.random() < .5)}
    return Case('DFT', opset, ins, {**attrs, 'axis': axis} if opset == 17 else attrs, tol=1e-5,
                cut={a: a not in (axis, len(s) - 1) for a in range(len(s))})


def stft(rng):
    b, size, step, frames = int(rng.integers(1, 4)), 8, int(rng.integers(1, 6)), int(rng.integers(1, 6))
    samples = (frames - 1) * step + size + int(rng.integers(0, step))
    ins = [(data(rng, [b, samples, 1]), False), (np.int64(step), True), (data(rng, [size]), True) if rng.random() < .6 else None]
    if ins[2] is None or rng.random() < .5: ins.append((np.int64(size), True))
    return Case('STFT', 17, ins, {'onesided': 1}, tol=1e-5, cut=only(4, [0, 1]))


def col2im(rng):
    b, c, k, h, w = *ints(rng, 1, 4, 2), *ints(rng, 1, 3, 1), *ints(rng, 3, 6, 2)
    pads = k // 2
    places = (h + 2 * pads - k + 1) * (w + 2 * pads - k + 1)
    ins = [(data(rng, [b, c * k * k, places]), False), (np.array([h, w]), True), (np.array([k, k]), True)]
    return Case('Col2Im', 18, ins, {'pads': [pads] * 4}, tol=1e-5, cut=only(4, [0, 1]))


def center_crop_pad(rng):
    s = shape_of(rng, 2, 4, 6)
    axes = sorted(rng.choice(len(s), int(rng.integers(1, len(s))), replace=False).tolist())
    ins = [(data(rng, s), False), (np.array(ints(rng, 1, 8, len(axes))), True)]
    return Case('CenterCropPad', 18, ins, {'axes': [pick(rng, a, a - len(s)) for a in axes]}, cut={a: a not in axes for a in range(len(s))})


def rotary_standard(rng):
    b, rows, heads, half = *ints(rng, 1, 4, 2), *ints(rng, 1, 3, 1), 4
    four, placed = rng.random() < .5, rng.random() < .5
    x = [b, heads, rows, 2 * half] if four else [b, rows, heads * 2 * half]
    angles = [(data(rng, [9, half] if placed else [b, rows, half]), False) for _ in range(2)]
    ins = [(data(rng, x), False)] + angles + ([(rng.integers(0, 9, [b, rows]), False)] if placed else [])
    return Case('RotaryEmbedding', 23, ins, {} if four else {'num_heads': heads}, tol=1e-5, cut=only(len(x), range(len(x) - 1)))


def tensor_scatter(rng):
    b, heads, longest, wide, rows = *ints(rng, 1, 4, 2), int(rng.integers(4, 7)), *ints(rng, 1, 4, 1), int(rng.integers(1, 4))
    ins = [(data(rng, [b, heads, longest, wide]), False), (data(rng, [b, heads, rows, wide]), False)]
    if rng.random() < .7: ins.append((rng.integers(0, longest - rows + 1, [b]), False))
    return Case('TensorScatter', 24, ins, {'mode': 'linear', 'axis': -2}, cut=only(4, [0, 1, 3]))


def max_roi_pool(rng):
    b, c, rois = ints(rng, 1, 4, 3)
    at = rng.uniform(0, 4, [rois, 2])
    boxes = np.concatenate([rng.integers(0, b, [rois, 1]), at, at + rng.uniform(1, 4, [rois, 2])], axis=1).astype('f4')
    return Case('MaxRoiPool', 11, [(data(rng, [b, c, 9, 9]), False), (boxes, False)], {'pooled_shape': [2, 2]}, cut=only(4, [0, 1]))


def losses(rng):
    b, classes, rest = *ints(rng, 1, 4, 2), ints(rng, 1, 4, int(rng.integers(0, 3)))
    op, none = pick(rng, 'NegativeLogLikelihoodLoss', 'SoftmaxCrossEntropyLoss'), rng.random() < .8
    ins = [(data(rng, [b, classes] + rest), False), (rng.integers(0, classes, [b] + rest), False)]
    if rng.random() < .5: ins.append((data(rng, [classes]), True))
    two = op[0] == 'S' and rng.random() < .5
    k = int(two and rng.random() < .5)
    rank = len(rest) + 1 + k
    cut = {a: none and not (k and a == 1) for a in range(rank)} if none else {a: False for a in range(rank * k)}
    return Case(op, 13, ins, {'reduction': 'none' if none else pick(rng, 'sum', 'mean')}, n_out=1 + two, out_index=k, tol=1e-5, cut=cut)


CASES = {f.__name__: f for f in [dft, stft, col2im, center_crop_pad, rotary_standard, tensor_scatter, max_roi_pool, losses]}
