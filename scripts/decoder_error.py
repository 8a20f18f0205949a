#!/usr/bin/env python3
"""How far a model and its tiled twin are from float64, in ONNX Runtime.

  decoder_error.py MODEL TILED [--seed N]

The model is evaluated in float64 node by node, by numpy: convolutions as sums of products of shifted inputs with the kernel's taps (BLAS, float64), the
rest by its definition. A value goes when its last reader has run; needs memory for about four of the largest values in float64. Printed: largest
and root mean square distance of each output from that, in parts of its range. Operators: those of image decoders; another one ends the
script with its name.
"""
import argparse, math, sys
import numpy as np, onnx, onnxruntime as ort
from onnx import numpy_helper as NH

ROWS = 32  # of a convolution's output at a time: bounds what lies beside its operands


def conv(x, w, b, at):
    n, c, height, width = x.shape
    k, s, p = w.shape[2:], at.get('strides', [1, 1]), at.get('pads', [0, 0, 0, 0])
    assert n == 1 and at.get('group', 1) == 1 and set(at.get('dilations', [1, 1])) == {1} and at.get('auto_pad', b'NOTSET') == b'NOTSET'
    h, v = (height + p[0] + p[2] - k[0]) // s[0] + 1, (width + p[1] + p[3] - k[1]) // s[1] + 1
    y = np.empty((1, w.shape[0], h, v))
    for top in range(0, h, ROWS):
        rows = min(ROWS, h - top)
        first, count = top * s[0] - p[0], (rows - 1) * s[0] + k[0]
        part = np.zeros((c, count, width + p[1] + p[3]))
        lo, hi = max(0, first), min(height, first + count)
        part[:, lo - first:hi - first, p[1]:p[1] + width] = x[0, :, lo:hi]
        out = np.zeros((w.shape[0], rows * v))
        for i in range(k[0]):
            for j in range(k[1]):
                seen = part[:, i:i + (rows - 1) * s[0] + 1:s[0], j:j + (v - 1) * s[1] + 1:s[1]]
                out += w[:, :, i, j] @ np.ascontiguousarray(seen).reshape(c, -1)
        y[0, :, top:top + rows] = out.reshape(-1, rows, v)
    if b is not None: y += b.reshape(1, -1, 1, 1)
    return y


def instance_norm(x, scale, bias, epsilon):
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            part = x[n, c]
            part -= part.mean()
            part *= scale[c] / math.sqrt(np.square(part).mean() + epsilon)
            part += bias[c]
    return x


def resize(x, scales, at):
    assert at.get('mode') == b'nearest' and at.get('nearest_mode') == b'floor' and at.get('coordinate_transformation_mode') == b'asymmetric'
    for axis, s in enumerate(scales):
        assert s == int(s)
        if s != 1: x = np.repeat(x, int(s), axis)
    return x


def in_place(op, x, *others):
    """x is read no more."""
    return {'Add': np.add, 'Mul': np.multiply}[op](x, *others, out=x) if np.broadcast_shapes(x.shape, others[0].shape) == x.shape else None


def sigmoid(x):
    y = np.negative(x)
    np.exp(y, out=y)
    y += 1
    return np.divide(1, y, out=y)


def softmax(x, axis):
    y = x - x.max(axis, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis, keepdims=True)
    return y


def evaluate(model, feeds):
    """Outputs of the model in float64, by name."""
    wide = lambda a: a.astype('f8') if a.dtype == np.float32 else a
    here = {i.name: wide(NH.to_array(i)) for i in model.graph.initializer}
    here.update({k: wide(v) for k, v in feeds.items()})
    last = {o.name: math.inf for o in model.graph.output}
    for p, n in enumerate(model.graph.node):
        for v in n.input: last[v] = max(last.get(v, 0), p)
    for p, n in enumerate(model.graph.node):
        at = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        x = [here.get(v) for v in n.input]
        dies = [last[v] == p and here[v].base is None if v else False for v in n.input]
        op, y = n.op_type, None
        if op == 'Conv': y = conv(x[0], x[1], x[2] if len(x) > 2 else None, at)
        elif op in ('Add', 'Mul'):
            if dies[0] and n.input[0] != n.input[1]: y = in_place(op, x[0], x[1])
            if y is None: y = x[0] + x[1] if op == 'Add' else x[0] * x[1]
        elif op == 'Sigmoid': y = sigmoid(x[0])
        elif op == 'Reshape': y = x[0].reshape([x[0].shape[k] if d == 0 else d for k, d in enumerate(x[1])])
        elif op == 'InstanceNormalization': y = instance_norm(x[0].copy(), x[1], x[2], at.get('epsilon', 1e-5))
        elif op == 'MatMul': y = x[0] @ x[1]
        elif op == 'Softmax': y = softmax(x[0], at.get('axis', -1))
        elif op == 'Transpose': y = x[0].transpose(at['perm'])
        elif op == 'Resize': y = resize(x[0], x[2], at)
        elif op == 'Constant': y = wide(NH.to_array(at['value']))
        else: sys.exit(f'decoder_error.py: no float64 for {op} {n.name}')
        here[n.output[0]] = y
        for v in n.input:
            if last.get(v) == p: here.pop(v, None)
        del x, y
    return {o.name: here[o.name] for o in model.graph.output}


def run(path, feeds):
    so = ort.SessionOptions()
    so.intra_op_num_threads = 1
    so.log_severity_level = 3
    s = ort.InferenceSession(path, so, providers=['CPUExecutionProvider'])
    return dict(zip([o.name for o in s.get_outputs()], s.run(None, feeds)))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('model'); ap.add_argument('tiled'); ap.add_argument('--seed', type=int, default=0)
    a = ap.parse_args()
    m = onnx.load(a.model)
    rng = np.random.default_rng(a.seed)
    feeds = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype('f4')
             for i in m.graph.input if i.name not in {w.name for w in m.graph.initializer}}
    true = evaluate(m, feeds)
    for name, path in (('untiled', a.model), ('tiled', a.tiled)):
        for k, y in run(path, feeds).items():
            off, span = np.abs(y - true[k]), true[k].max() - true[k].min()
            print(f'{name:8s} {k}: largest {off.max() / span:.2e}, root mean square {math.sqrt(np.square(off).mean()) / span:.2e} of the range')


if __name__ == '__main__':
    main()
