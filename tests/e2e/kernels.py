#!/usr/bin/env python3
"""The gallery of tile kernels: kernels.py TOOL ROOT SCRATCH [device | checker]

Each kernel of examples/kernels runs on seeded inputs and gives what NumPy computes in double precision, within the rounding of the types
that it computes in; it is planned, its planned text is planned to the same places and gives the same bytes.

device: each runs on an OpenCL device, in work-groups of several sizes, and gives what NumPy computes and what the interpreter gives.
checker: each runs under oclgrind, which finds no race, no access out of bounds and no read of what nobody wrote.
"""
import os
import re
import subprocess
import sys

import numpy as np

TOOL, ROOT, TMP = sys.argv[1:4]
MODE = sys.argv[4] if len(sys.argv) > 4 else ''
GALLERY = os.path.join(ROOT, 'examples', 'kernels')
MAPS = os.path.join(ROOT, 'reports', 'kernels')
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


def reducer_most(x):
    """The last tile reads zeros beyond the row."""
    return np.maximum(x.max(1, keepdims=True), 0) if x.shape[1] % 32 else x.max(1, keepdims=True)


def bf16(*shape):
    """Numbers of bfloat16 as the 16-bit integers that .npy files hold them in."""
    return (normal(*shape).view(np.uint32) >> 16).astype(np.uint16)


def tensor_memory(a):
    f = {k: (v.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for k, v in a.items()}
    return {'d': f['a'] @ f['b'], 'h': f['a'] @ f['b']}


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
    'reducer': (lambda: {'x': normal(32, 200)}, lambda a: {'sums': a['x'].sum(1, keepdims=True), 'most': reducer_most(a['x'])}, 1e-6),
    'auto_tile': (lambda: {'x': normal(1000, 96), 'scale': normal(96)}, lambda a: {'y': a['x'] * a['scale']}, 1e-7),
    'tensor_memory': (lambda: {'a': bf16(128, 64), 'b': bf16(64, 32)}, tensor_memory, 1e-6),
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
    _, function, tolerance = CASES[name]
    path, planned = f'{GALLERY}/{name}.tk', f'{TMP}/{name}.planned.tk'
    inputs = make_inputs(name)
    if not run(path, inputs, f'{TMP}/{name}') or not tool('plan-memory', path, '-o', planned, '-q'):
        return
    compare(name, f'{TMP}/{name}', function(inputs if name == 'tensor_memory' else wide(inputs)), tolerance)
    if not run(planned, inputs, f'{TMP}/{name}.again', '--trace', f'{TMP}/t.json'):
        return
    if not tool('plan-memory', path, '--svg', f'{TMP}/map.svg', '-q'):
        return
    if os.environ.get('UPDATE_MAPS'):
        os.makedirs(MAPS, exist_ok=True)
        os.replace(f'{TMP}/map.svg', f'{MAPS}/{name}.svg')
    elif open(f'{TMP}/map.svg').read() != open(f'{MAPS}/{name}.svg').read():
        problems.append(f'{MAPS}/{name}.svg is another map: UPDATE_MAPS=1 draws it anew')
    for f in sorted(os.listdir(f'{TMP}/{name}')):
        if open(f'{TMP}/{name}/{f}', 'rb').read() != open(f'{TMP}/{name}.again/{f}', 'rb').read():
            problems.append(f'{name}: the planned kernel gives other bytes in {f}')


def check_rules():
    """tests/rules: each kernel breaks the rule that it is named after, or shows it ("# ok: COMMAND"); its last lines say with which command, and
    what is said. docs/kernels/rules.md names each."""
    docs = open(f'{ROOT}/docs/kernels/rules.md', encoding='utf-8').read()
    told = set(re.findall(r'`([a-z-]+)`', ' '.join(re.findall(r'^\| [a-z ]+ \| (.*) \|$', docs, re.M))))
    np.save(f'{TMP}/x.npy', normal(64, 64))
    np.save(f'{TMP}/y.npy', normal(16))
    names = sorted(os.listdir(f'{ROOT}/tests/rules'))
    for f in names:
        path = f'{ROOT}/tests/rules/{f}'
        command, says = (line[2:] for line in open(path, encoding='utf-8').read().splitlines()[-2:])
        holds = command.startswith('ok: ')
        command = command.removeprefix('ok: ')
        args = [*command.split()[:1], path, *command.split()[1:]]
        if args[0] == 'run-kernel':
            text = open(path, encoding='utf-8').read()
            args += [f'--input={k}={TMP}/{k}.npy' for k, w in (('x', 'param x'), ('y', 'empty y')) if w in text]
        r = subprocess.run([TOOL, *args], capture_output=True, text=True)
        if holds and (r.returncode != 0 or says not in r.stdout):
            problems.append(f'{f}: exit {r.returncode}, "{r.stdout.strip()}{r.stderr.strip()}", not "{says}"')
        if not holds and (r.returncode not in (1, 3) or says not in r.stderr or f'{f}:' not in r.stderr):
            problems.append(f'{f}: exit {r.returncode}, "{r.stderr.strip()}", not "{says}"')
        if f.removesuffix('.tk') not in told:
            problems.append(f'docs/kernels/rules.md does not name {f}')
    return len(names)


def make_inputs(name):
    inputs = CASES[name][0]()
    for k, v in inputs.items():
        np.save(f'{TMP}/{k}.npy', v)
    return inputs


def check_device(name):
    """Interpreter and device: each within the tolerance of NumPy, and twice that of each other."""
    _, function, tolerance = CASES[name]
    path, inputs = f'{GALLERY}/{name}.tk', make_inputs(name)
    want = function(inputs if name == 'tensor_memory' else wide(inputs))
    if not run(path, inputs, f'{TMP}/{name}'):
        return
    for items in ('1', '40'):
        if items == '1':    # as pocl compiles fast: its optimisations take most of the time, and are looked at in groups of 40
            os.environ['POCL_EXTRA_BUILD_FLAGS'] = '-cl-opt-disable'
        else:
            os.environ.pop('POCL_EXTRA_BUILD_FLAGS', None)
        out = f'{TMP}/{name}.{items}'
        if not run(path, inputs, out, '--device', 'opencl', '--work-items', items):
            return
        compare(f'{name} in groups of {items}', out, want, tolerance)
        compare(f'{name} in groups of {items}, against the interpreter', out, {k: np.load(f'{TMP}/{name}/{k}.npy').astype(np.float64) for k in want},
                2 * tolerance)


def check_checker(name):
    """Without the compiler's optimisations, which read ahead where no statement does."""
    inputs = make_inputs(name)
    args = [f'--input={k}={TMP}/{k}.npy' for k in inputs]
    command = ['oclgrind', '--data-races', '--uninitialized', '--build-options', '-cl-opt-disable', TOOL, 'run-kernel', f'{GALLERY}/{name}.tk', *args, '-q',
               '--device', 'opencl', '--work-items', '6']
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode != 0 or r.stdout or r.stderr:
        problems.append(f'{name}: exit {r.returncode}: {(r.stdout + r.stderr).strip()[:1500]}')


if MODE:
    for case in CASES:
        (check_device if MODE == 'device' else check_checker)(case)
    print('\n'.join(problems) or f'{len(CASES)} kernels: {"as NumPy and the interpreter compute" if MODE == "device" else "no race, nothing out of bounds"}')
    sys.exit(bool(problems))

found = sorted(f[:-3] for f in os.listdir(GALLERY) if f.endswith('.tk'))
if found != sorted(CASES):
    problems.append(f'kernels without a case, or the other way round: {sorted(set(found) ^ set(CASES))}')
for case in CASES:
    check(case)
rules = check_rules()
print('\n'.join(problems) or f'{len(CASES)} kernels: as NumPy computes; {rules} rules')
sys.exit(bool(problems))
