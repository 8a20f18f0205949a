#!/usr/bin/env python3
"""Random networks, an input row after the other: what `onnx-tile geometry` says is read must be what rows of the output depend on.

  impulses.py [--tool build/onnx-tile] [--start S] [--seeds N] [-v]        impulses.py --seed S      one again

The networks of geometry.py of one input and without barriers. A row of the input is changed, and the rows of the output whose bits change are
noted, along each axis and for rows at the border and inside: each has to lie in the crop that the rule of docs/large.md gives. Over all rows, some has to
lie where crops end, at both sides, in most networks, or the halos would be larger than what is read. Closes with 'N inside, N barred, N not run;
N of N axes reach to the end'.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'models')]
import geometry  # noqa: E402
from builder import save  # noqa: E402
from passing import crop_rows  # noqa: E402
from seeds import parse  # noqa: E402

NEAR = 2  # alignments that crops may have beyond what is read


def rows_that_change(run, x, whole, axis, out_axis, row, rng):
    """Rows of the output, along out_axis, that are others when a row of the input is."""
    moved = x.copy()
    moved[(slice(None),) * axis + (row,)] += rng.normal(0, 50, np.take(x, row, axis).shape).astype(x.dtype)
    changed = (run(moved) != whole).any(tuple(k for k in range(whole.ndim) if k != out_axis))
    return np.flatnonzero(changed)


def axis_reaches(run, x, whole, a, rng):
    """Whether rows that change reach as far as the halos, at both sides. What is wrong as an exception."""
    extent, lo, hi = a['extent'], [], []
    for row in {0, 1, extent - 2, extent - 1, *(int(r) for r in rng.integers(0, extent, 24))}:
        found = rows_that_change(run, x, whole, a['input_axis'], a['axis'], row, rng)
        for o in found:
            begin, end = crop_rows(a, int(o), int(o) + 1, extent)
            if not begin <= row < end:
                raise AssertionError(f'row {row} of the input changes row {o} of the output, which reads [{begin}, {end}): {a}')
            if begin > 0:
                lo.append(row - begin)
            if end < extent:
                hi.append(end - 1 - row)
    return not lo or not hi or max(min(lo), min(hi)) <= NEAR * a['align']


def check(seed, tool, folder, verbose):
    """'inside', 'barred' or 'not run', and of each axis whether it reaches to the end."""
    g = geometry.Grower(seed)
    m = g.model()
    if len(m.graph.input) != 1:
        return 'not run', []
    rng = np.random.default_rng([seed, 41])
    x = rng.normal(0, 1, (1, m.graph.input[0].type.tensor_type.shape.dim[1].dim_value,
                          *[int(rng.integers(30, 50) if g.n > 2 else rng.integers(50, 90)) for _ in range(g.n)])).astype('f4')
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(m.SerializeToString(), options, providers=['CPUExecutionProvider'])
        whole = session.run(None, {'x': x})[0]
    except Exception as why:
        if verbose:
            print(seed, g.log, str(why)[:200])
        return 'not run', []
    path = save(m, os.path.join(folder, 'm.onnx'))
    said = subprocess.run([tool, 'geometry', path, '--json', f'--shape=x={",".join(map(str, x.shape))}'], capture_output=True, text=True, timeout=60)
    if said.returncode != 0:
        raise AssertionError(f'{g.log}: {said.stderr.strip()}')
    pair, = json.loads(said.stdout)['outputs'] or [{'barriers': True}]
    if pair['barriers']:
        return 'barred', []

    def run(v):
        return session.run(None, {'x': v})[0]
    try:
        return 'inside', [axis_reaches(run, x, whole, a, rng) for a in pair['axes']]
    except AssertionError as why:
        raise AssertionError(f'{g.log}: {why}') from None


def main():
    args, seeds = parse(__doc__, 100)
    count, wrong, reach = {'inside': 0, 'barred': 0, 'not run': 0}, 0, []
    ort.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            try:
                how, ends = check(seed, args.tool, folder, args.v)
                count[how] += 1
                reach += ends
            except Exception as why:
                wrong += 1
                print(f'seed {seed}: {type(why).__name__}: {str(why)[:900]}')
    print(', '.join(f'{n} {how}' for how, n in count.items()) + f'; {sum(reach)} of {len(reach)} axes reach to the end')
    enough = sum(reach) * 3 >= len(reach) * 2 or len(reach) < 10
    if not enough:
        print('too few reach to the end: the halos are too large')
    return wrong > 0 or not enough


if __name__ == '__main__':
    sys.exit(main())
