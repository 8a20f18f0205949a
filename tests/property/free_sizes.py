#!/usr/bin/env python3
"""Random image networks with free dimensions: one tiled file must give what the original gives, at every size.

  free_sizes.py [--tool build/onnx-tile] [--start S] [--seeds N] [--keep DIR] [-v]        free_sizes.py --seed S      one again

Each seed makes a network as streams.py does, frees its batch, its spatial extents or all of them, tiles it for a design size
(--keep-dynamic --design ..., with --force every second time), and runs original and result in ONNX Runtime at sizes that have nothing to do
with the design: odd ones, such of a few rows, several samples, large ones. Every output must have the original's shape and be within
1e-5 of its largest value; a size that the original refuses, the result must refuse as well. What the file states of free dimensions must
still be free in the result. Closes with 'N passed, N failed; N regions; N sizes, N refused by both'.
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from streams import Net, session


def free_up(model, net):
    """Free dimensions: of the input as names, of outputs and values inside by leaving them out. Returns which axes are free."""
    rank = net.rank + 2
    axes = net.pick([[0], [2], list(range(2, rank)), list(range(2, rank)), [0] + list(range(2, rank)), [0] + list(range(2, rank)), [rank - 1]])
    for value in list(model.graph.input) + list(model.graph.output):
        for k, d in enumerate(value.type.tensor_type.shape.dim):
            if value.name != 'x' or k in axes:
                d.Clear()
                if value.name == 'x':
                    d.dim_param = f'd{k}'
    return axes


def sizes(net, axes, batch):
    """Shapes of x: the design first."""
    shape = [batch] + net.shape['x']
    yield list(shape)
    for kind in range(6):
        s = list(shape)
        for k in axes:
            if k == 0:
                s[k] = int(net.rng.integers(1, 9))
            elif kind < 2:
                s[k] = int(net.rng.integers(1, 16))
            elif kind < 5:
                s[k] = int(net.rng.integers(16, 70 if k == 2 else 20))
            else:
                s[k] = int(net.rng.integers(80, 200) if k == 2 else net.rng.integers(8, 20))
        yield s


def run(s, names, feeds):
    try:
        return s.run(names, feeds), ''
    except Exception as e:  # noqa: BLE001 onnxruntime has no base class of its own
        return None, str(e)


def compare(want, got, names):
    for name, a, b in zip(names, want, got):
        if a.shape != b.shape:
            return f'output {name} is {b.shape}, not {a.shape}'
        if a.size and not np.abs(a - b).max() <= 1e-5 * max(1, np.abs(a).max()):
            return f'output {name} differs by {np.abs(a - b).max()}'
    return ''


def check(tool, seed, keep):
    """(what went wrong or '', regions, sizes run, sizes refused by both)."""
    net = Net(seed).grow(4 + seed % 14)
    if not any(v != 'x' for v in net.live):
        return '', 0, 0, 0
    model = net.model()
    axes = free_up(model, net)
    batch = int(net.rng.integers(2, 9)) if 0 in axes else 1
    folder = os.path.join(keep, f'free_{seed}')
    os.makedirs(folder, exist_ok=True)
    original, tiled = os.path.join(folder, 'model.onnx'), os.path.join(folder, 'tiled.onnx')
    onnx.save(model, original)
    shapes = list(sizes(net, axes, batch))
    command = [tool, original, '-o', tiled, '--target', 'cpu-generic', '--l2', net.pick(['4K', '16K', '64K']), '-q', '--keep-dynamic', '--design',
               'x=' + ','.join(map(str, shapes[0])), '--goal', 'memory', '--max-slowdown', '1000'] + ['--force'] * (seed % 2)
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        return f'{shlex.join(command)}: exit {p.returncode}: {p.stderr.strip()[-300:]}', 0, 0, 0
    onnx.checker.check_model(tiled, full_check=True)
    written = onnx.load(tiled)
    for k, d in enumerate(written.graph.input[0].type.tensor_type.shape.dim):
        if k in axes and not d.dim_param:
            return f'axis {k} of x is no longer free: {shlex.join(command)}', 0, 0, 0
    names, ran, refused = [o.name for o in model.graph.output], 0, 0
    regions = str(written).count('name: "tile/r') and len({w.split('/')[1] for w in str(written).split('"') if w.startswith('tile/r')})
    for optimise in (False, True) if regions else ():
        a, b = session(original, optimise), session(tiled, optimise)
        for k, shape in enumerate(shapes):
            feeds = {'x': np.random.default_rng([seed, k]).standard_normal(shape).astype('f4')}
            (want, no), (got, neither) = run(a, names, feeds), run(b, names, feeds)
            ran += 1
            refused += want is None and got is None
            why = compare(want, got, names) if want is not None and got is not None else ''
            if (want is None) != (got is None):
                why = f'only one refuses: {no or neither}'
            if why:
                return f'at {shape}{"" if optimise else " (no optimisation)"}: {why}: {shlex.join(command)}', regions, ran, refused
    subprocess.run(['rm', '-r', folder], check=True)
    return '', regions, ran, refused


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--start', type=int, default=1)
    p.add_argument('--seeds', type=int, default=100)
    p.add_argument('--seed', type=int)
    p.add_argument('--keep')
    p.add_argument('-v', action='store_true')
    o = p.parse_args()
    keep = o.keep or tempfile.mkdtemp()
    failed = 0
    totals = [0, 0, 0]
    seeds = [o.seed] if o.seed is not None else range(o.start, o.start + o.seeds)
    for seed in seeds:
        why, *counts = check(os.path.abspath(o.tool), seed, keep)
        totals = [a + b for a, b in zip(totals, counts)]
        failed += why != ''
        if why or o.v:
            print(f'seed {seed}: {why or "ok"}, {counts[0]} regions', flush=True)
    print(f'free sizes: {len(seeds) - failed} passed, {failed} failed; {totals[0]} regions; {totals[1]} sizes, {totals[2]} refused by both')
    return 1 if failed or 2 * totals[0] < len(seeds) else 0


if __name__ == '__main__':
    sys.exit(main())
