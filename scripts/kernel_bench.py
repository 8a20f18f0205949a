#!/usr/bin/env python3
"""A product of matrices as a tile kernel on an OpenCL device, next to dnnl_sgemm on the same cores.

  kernel_bench.py [--tool build/onnx-tile] [--size 1024] [--rounds 5] [--device opencl] [--work-items N] [--tile 64] [--depth 64]

Each round runs both, one after the other, so that what else the machine does falls on both; printed are the least times, the median of
the rounds' ratios, and what the parts of the kernel take when it does less: without its products, without its transfers.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

KERNEL = '''kernel gemm target "h200" {{
  param a: {n}x{n} f32 @gm
  param b: {n}x{n} f32 @gm
  empty c: {n}x{n} f32 @gm
  parallel for i in 0..{n} step {t} {{
    for j in 0..{n} step {t} {{
      alloc zero: {t}x{t} f32 @shared.dyn
      zero = cube.fill(value=0)
      sum = for k in 0..{n} step {d} carry (acc = zero) {{
        alloc as: {t}x{d} f32 @shared.dyn
        alloc bs: {d}x{t} f32 @shared.dyn
        {load}load as <- a[i:i+{t}, k:k+{d}]
        {load}load bs <- b[k:k+{d}, j:j+{t}]
        {fill}as = vector.fill(value=1)
        {fill}bs = vector.fill(value=1)
        alloc next: {t}x{t} f32 @shared.dyn
        next = {product}
        yield (next)
      }}
      store c[i:i+{t}, j:j+{t}] <- sum
    }}
  }}
}}
'''
VARIANTS = {
    'all': dict(load='', fill='#', product='cube.mmad(as, bs, acc)'),
    'transfers only': dict(load='', fill='#', product='vector.identity(acc)'),
}


def device(args, folder, name, inputs):
    path = f'{folder}/{name.replace(" ", "_")}.tk'
    with open(path, 'w', encoding='utf-8') as f:
        f.write(KERNEL.format(n=args.size, t=args.tile, d=args.depth, **VARIANTS[name]))
    items = ['--work-items', str(args.work_items)] if args.work_items else []
    out = subprocess.run([args.tool, 'run-kernel', path, *inputs, '--device', args.device, *items, '--repeat', '3', '--json'], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr.strip())
    return json.loads(out.stdout)


def sgemm_function():
    for name in ('libdnnl.so.3', 'libdnnl.so.2', 'libdnnl.so'):
        try:
            f = ctypes.CDLL(name).dnnl_sgemm
        except OSError:
            continue
        size, number, array = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
        f.argtypes = [ctypes.c_char, ctypes.c_char, size, size, size, number, array, size, array, size, number, array, size]
        return f
    sys.exit('there is no libdnnl')


def time_sgemm(f, a, b):
    n, c, best = len(a), np.empty_like(a), float('inf')
    for _ in range(3):
        start = time.perf_counter()
        f(b'N', b'N', n, n, n, 1, a.ctypes.data, n, b.ctypes.data, n, 0, c.ctypes.data, n)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--size', type=int, default=1024)
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--device', default='opencl')
    p.add_argument('--work-items', type=int)
    p.add_argument('--tile', type=int, default=64)
    p.add_argument('--depth', type=int, default=64)
    args = p.parse_args()
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((args.size, args.size)).astype(np.float32) for _ in range(2))
    sgemm = sgemm_function()
    times, ratios = {'dnnl_sgemm': []}, []
    with tempfile.TemporaryDirectory() as folder:
        np.save(f'{folder}/a.npy', a)
        np.save(f'{folder}/b.npy', b)
        inputs = [f'--input={n}={folder}/{n}.npy' for n in 'ab']
        os.environ.setdefault('POCL_CACHE_DIR', f'{folder}/pocl')
        for _ in range(args.rounds):
            for name in VARIANTS:
                r = device(args, folder, name, inputs)
                times.setdefault(name, []).append(r['time_seconds'])
            times['dnnl_sgemm'].append(time_sgemm(sgemm, a, b))
            ratios.append(times['all'][-1] / times['dnnl_sgemm'][-1])
    print(f'{r["device_name"]}: {r["groups"]} groups of {r["items"]} items')
    for name, seconds in times.items():
        rate = '' if 'only' in name else f', {2e-9 * args.size**3 / min(seconds):.1f} Gflop/s'
        print(f'{name:16s} {1e3 * min(seconds):8.2f} ms{rate}')
    print(f'ratio: {statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})')


if __name__ == '__main__':
    main()
