#!/usr/bin/env python3
"""The gallery of tile kernels: kernels.py TOOL ROOT SCRATCH

Each kernel of examples/kernels runs on seeded inputs and gives what NumPy computes in double precision, within the rounding of the types
that it computes in; it is planned, its planned text is planned to the same places and gives the same bytes.
"""
import os
import subprocess
import sys

import numpy as np

TOOL, ROOT, TMP = sys.argv[1:4]
GALLERY = os.path.join(ROOT, 'examples', 'kernels')
rng = np.random.default_rng(int(os.environ.get('OT_SEED', '7')))
problems = []


def conv2d(x, w, pad, stride=1):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kh, kw = w.shape[2:]
    oh, ow = (x.shape[2] - kh) // stride + 1, (x.shape[3] - kw) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], oh, ow))
    for i in range(kh):
        for j in range(kw):
            y += np.einsum('nchw,mc->nmhw', x[:, :, i:i + stride * oh:stride, j:j + stride * ow:stride], w[:, :, i, j])
    return y


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def wide(a):
    return {k: v.astype(np.float64) for k, v in a.items()}


def gemm(a):
    return {'c': a['a'] @ a['b']}


def conv_pool(a):
    y = np.maximum(conv2d(a['x'], a['weights'], 1) + a['bias'][:, None, None], 0)
    return {'y': y.reshape(1, 16, 8, 2, 12, 2).max((3, 5))}


def two_stages(a):
    c = a['x'] @ a['w']
    return {'y': np.clip(c, -128, 127), 't': c.T}


def attention(a):
    return {'out': softmax(a['q'] @ a['k'].T / np.sqrt(32)) @ a['v']}


# kernel: (inputs, function, tolerance relative to the largest value)
CASES = {
    'gemm': (lambda: {'a': normal(96, 128, dtype=np.float16), 'b': normal(128, 64, dtype=np.float16)}, gemm, 2e-3),
    'softmax': (lambda: {'x': 5 * normal(64, 200)}, lambda a: {'y': softmax(a['x'])}, 1e-6),
    'flash_attention': (lambda: {'q': 3 * normal(64, 32), 'k': normal(128, 32), 'v': normal(128, 32)}, attention, 2e-6),
    'conv_pool': (lambda: {'x': normal(1, 8, 16, 24), 'weights': normal(16, 8, 3, 3), 'bias': normal(16)}, conv_pool, 1e-6),
    'conv_im2col': (lambda: {'x': normal(1, 4, 10, 12), 'weights': normal(8, 36)},
                    lambda a: {'y': conv2d(a['x'], a['weights'].reshape(8, 4, 3, 3), 1)}, 1e-6),
    'workspace': (lambda: {'x': rng.integers(-9, 9, (32, 48)).astype(np.int8), 'w': rng.integers(-9, 9, (48, 64)).astype(np.int8)},
                  two_stages, 0),
    'double_buffer': (lambda: {'x': normal(8, 256)}, lambda a: {'y': a['x'] ** 2}, 1e-7),
}


def tool(*args):
    r = subprocess.run([TOOL, *args], capture_output=True, text=True)
    if r.returncode != 0:
        problems.append(f'{" ".join(args)}: exit {r.returncode}: {r.stderr.strip()}')
    return r.returncode == 0


def run(path, inputs, out, *more):
    args = [f'--input={k}={TMP}/{k}.npy' for k in inputs]
    return tool('run-kernel', path, *args, '--output-dir', out, '-q', *more)


def compare(name, out, want, tolerance):
    for k, w in want.items():
        got = np.load(f'{out}/{k}.npy').astype(np.float64)
        error = np.abs(got.reshape(w.shape) - w).max() / max(1e-30, np.abs(w).max())
        if not error <= tolerance:
            problems.append(f'{name}: {k} is off by {error:.2e} of the largest value, {tolerance:.0e} is allowed')


def check(name):
    make, function, tolerance = CASES[name]
    path, planned = f'{GALLERY}/{name}.tk', f'{TMP}/{name}.planned.tk'
    inputs = make()
    for k, v in inputs.items():
        np.save(f'{TMP}/{k}.npy', v)
    if not run(path, inputs, f'{TMP}/{name}') or not tool('plan-memory', path, '-o', planned, '-q'):
        return
    compare(name, f'{TMP}/{name}', function(wide(inputs)), tolerance)
    if not run(planned, inputs, f'{TMP}/{name}.again', '--trace', f'{TMP}/t.json'):
        return
    for f in sorted(os.listdir(f'{TMP}/{name}')):
        if open(f'{TMP}/{name}/{f}', 'rb').read() != open(f'{TMP}/{name}.again/{f}', 'rb').read():
            problems.append(f'{name}: the planned kernel gives other bytes in {f}')


found = sorted(f[:-3] for f in os.listdir(GALLERY) if f.endswith('.tk'))
if found != sorted(CASES):
    problems.append(f'kernels without a case, or the other way round: {sorted(set(found) ^ set(CASES))}')
for case in CASES:
    check(case)
print('\n'.join(problems) or f'{len(CASES)} kernels: as NumPy computes')
sys.exit(bool(problems))
