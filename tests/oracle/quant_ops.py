"""Quantized operators of com.microsoft, by the tool's references and its fast kernels, against ONNX Runtime.

    quant_ops.py --tool build/onnx-tile [--seed S] [--n N]     random shapes, scales and attributes, one operator at a time

ONNX Runtime's kernels round and look up tables in their own ways: an integer result may be its neighbour, one in ten of them; floats
are equal within 1e-5 of the largest. Exit status 1 when anything disagrees.
"""
import argparse, os, subprocess, sys, tempfile
import numpy as np, onnx, onnxruntime as ort
from onnx import helper as h, numpy_helper as nh, TensorProto as T

ort.set_default_logger_severity(4)


class Case:
    """One node: inputs are fed, scales and zero points are constants."""

    def __init__(self, rng, op, signed):
        self.rng, self.op, self.signed, self.ins, self.inits, self.feeds, self.attrs = rng, op, signed, [], [], {}, {}
        self.dtype = np.int8 if signed else np.uint8

    def constant(self, a):
        self.inits.append(nh.from_array(np.asarray(a), f'c{len(self.inits)}'))
        self.ins.append(self.inits[-1].name)

    def quantizer(self, lo=0.01, hi=0.05):
        low = -128 if self.signed else 0
        self.constant(np.float32(self.rng.uniform(lo, hi)))
        self.constant(self.dtype(low + self.rng.integers(60, 190)))

    def tensor(self, *dims):
        low = -128 if self.signed else 0
        name = f'x{len(self.feeds)}'
        self.feeds[name] = self.rng.integers(low, low + 256, dims).astype(self.dtype)
        self.ins.append(name)

    def model(self):
        kind = T.INT8 if self.signed else T.UINT8
        y = T.FLOAT if self.op == 'QGemm' and len(self.ins) < 8 else kind
        g = h.make_graph([h.make_node(self.op, self.ins, ['y'], domain='com.microsoft', **self.attrs)], 'g',
                         [h.make_tensor_value_info(n, kind, a.shape) for n, a in self.feeds.items()],
                         [h.make_tensor_value_info('y', y, None)], self.inits)
        m = h.make_model(g, opset_imports=[h.make_opsetid('', 17), h.make_opsetid('com.microsoft', 1)])
        m.ir_version = 8
        return m


def make(rng, op):
    c = Case(rng, op, bool(rng.integers(2)))
    n, ch, hh, w = rng.integers(1, 3), rng.integers(1, 40), rng.integers(4, 14), rng.integers(4, 14)
    if op in ('QLinearAdd', 'QLinearMul'):
        other = [(n, ch, hh, w), (ch, 1, 1), (n, ch, 1, 1), (1,)][rng.integers(4)]
        c.tensor(n, ch, hh, w), c.quantizer(), c.tensor(*other), c.quantizer(), c.quantizer()
    elif op == 'QLinearConcat':
        c.quantizer()
        for k in range(rng.integers(1, 4)):
            c.tensor(n, rng.integers(1, 9), hh, w), c.quantizer()
        c.attrs = {'axis': 1}
    elif op == 'QGemm':
        k, columns, ta, tb = rng.integers(1, 40), rng.integers(1, 30), int(rng.integers(2)), int(rng.integers(2))
        c.tensor(*((k, hh) if ta else (hh, k))), c.quantizer()
        c.tensor(*((columns, k) if tb else (k, columns))), c.quantizer()
        c.constant(rng.integers(-20000, 20000, columns).astype(np.int32))
        c.attrs = {'transA': ta, 'transB': tb, 'alpha': float(rng.uniform(0.5, 2))}
        if rng.integers(2):
            c.quantizer(0.1, 0.5)
    else:
        c.tensor(n, ch, hh, w), c.quantizer(), c.quantizer()
    if op == 'QLinearLeakyRelu':
        c.attrs = {'alpha': float(rng.uniform(0, 0.9))}
    if op == 'QLinearAveragePool':
        c.attrs = {'kernel_shape': [3, 2], 'strides': [int(rng.integers(1, 3)), 1], 'pads': [1, 0, 1, 1],
                   'count_include_pad': int(rng.integers(2))}
    return c


def check(tool, c, what, tmp):
    path, args = os.path.join(tmp, 'm.onnx'), []
    onnx.save(c.model(), path)
    want = ort.InferenceSession(path).run(None, c.feeds)[0]
    for name, a in c.feeds.items():
        np.save(os.path.join(tmp, name + '.npy'), a)
        args += ['--input', f'{name}={tmp}/{name}.npy']
    for extra in ([], ['--reference']):
        r = subprocess.run([tool, 'run', path, '--output-dir', tmp, *args, *extra], capture_output=True, text=True)
        if r.returncode:
            return f'{what} {extra}: {r.stderr.strip()}'
        got = np.load(os.path.join(tmp, '0.npy'))
        if got.shape != want.shape or got.dtype != want.dtype:
            return f'{what} {extra}: {got.dtype}{got.shape}, not {want.dtype}{want.shape}'
        off = np.abs(got.astype(np.float64) - want.astype(np.float64))
        if want.dtype == np.float32:
            bad = off.max(initial=0) > 1e-5 * max(np.abs(want).max(initial=0), 1e-3)
        else:
            bad = off.max(initial=0) > 1 or (off > 0).sum() > 2 + off.size / 10
        if bad:
            return f'{what} {extra}: off by {off.max()}, {(off > 0).sum()} of {off.size} ({c.attrs})'
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--tool', required=True)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--n', type=int, default=4)
    a = p.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as tmp:
        for op in ('QLinearAdd', 'QLinearMul', 'QLinearSigmoid', 'QLinearLeakyRelu', 'QLinearGlobalAveragePool',
                   'QLinearAveragePool', 'QLinearConcat', 'QGemm'):
            for k in range(a.n):
                what = f'{op} seed {a.seed + k}'
                why = check(a.tool, make(np.random.default_rng([a.seed + k, len(op)]), op), what, tmp)
                if why:
                    failures += 1
                    print(why)
    print('seeds', a.seed, 'to', a.seed + a.n - 1, '-', failures, 'failures')
    sys.exit(failures > 0)


main()
