#!/usr/bin/env python3
"""Random networks, step by step: what `--emit step` writes must give all rows of the whole model, the first and the last ones too.

  steps.py [--tool build/onnx-tile] [--start S] [--seeds N] [-v]        steps.py --seed S      one again

Networks are those of geometry.py: convolutions, pools, Resize in all modes, ConvTranspose, Pad, Slice, shuffles, skips, of one to
three axes. One axis of each is cut, in as few rows as can be or in some more, for an odd number of rows. Every element must be equal
in its bits, or by 3e-6 of the largest value, where the kernels that ONNX Runtime has for few rows add up in another order. Closes with
'N equal, N rounded, N refused, N not run'.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models')]
from builder import save  # noqa: E402
from geometry import BARRIERS, Grower  # noqa: E402
from seeds import parse  # noqa: E402
from stepping import OtherRows, compare, session  # noqa: E402

ROUNDING = 3e-6


def written(tool, model, out, axis, shapes):
    return subprocess.run([tool, model, '-o', out, '--emit', 'step', '--axis', axis, '--json', *shapes], capture_output=True, text=True)


def check(seed, tool, folder, verbose):
    """'equal', 'rounded', 'refused' or 'not run'; AssertionError: wrong rows."""
    rng = np.random.default_rng([seed, 31])
    grower = Grower(seed)
    model, out = save(grower.model(), os.path.join(folder, 'm.onnx')), os.path.join(folder, 'step.onnx')
    names = ['h', 'w', 'd'][:grower.n]
    cut, size = int(rng.integers(grower.n)), {n: int(rng.integers(20, 40)) for n in names}
    size[names[cut]] = int(rng.integers(40, 100))
    shapes = []
    for i in session(model).get_inputs() if runs(model) else []:
        shapes += ['--shape', i.name + '=' + ','.join(str(size.get(d, d)) for d in i.shape)]
    if not shapes:
        return 'not run'
    said = written(tool, model, out, f'x:{2 + cut}', shapes)
    if said.returncode == 1 and said.stderr.count('\n') == 1 and not os.path.exists(out):
        if verbose:
            print(seed, grower.log, said.stderr.strip())
        return 'refused'
    if said.returncode:
        raise AssertionError(f'{grower.log}: exit {said.returncode}: {said.stderr.strip()}')
    if set(grower.log) & set(BARRIERS[:2]):
        raise AssertionError(f'{grower.log}: not refused')
    if rng.random() < .5:
        os.remove(out)
        rows = json.loads(said.stdout)['align'] * int(rng.integers(2, 9))
        said = written(tool, model, out, f'x:{2 + cut}={rows}', shapes)
        if said.returncode:
            raise AssertionError(f'{grower.log}, {rows} rows: exit {said.returncode}: {said.stderr.strip()}')
    try:
        most, about = compare(model, out, size, seed)
    except OtherRows:
        most = np.inf
    if most > ROUNDING:  # ONNX Runtime makes Pad a part of the MaxPool behind it, which then pads otherwise
        most, about = compare(model, out, size, seed, plain=True)
    if verbose:
        print(seed, grower.log, size, about['rows'], most)
    if most > ROUNDING:
        raise AssertionError(f'{grower.log} {size}, axis {2 + cut}, {about["rows"]} rows: {most:.1e} off')
    return 'equal' if most == 0 else 'rounded'


def runs(model):
    """ONNX Runtime takes the whole model: some random ones have a Resize that it does not."""
    try:
        return session(model) is not None
    except Exception:  # of a type that ONNX Runtime does not export
        return False


def main():
    a, seeds = parse(__doc__, 100)
    counts, bad = collections.Counter(), 0
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                counts[check(seed, a.tool, folder, a.v)] += 1
            except AssertionError as e:
                print(f'seed {seed}: {e}')
                bad += 1
    print(', '.join(f'{counts[k]} {k}' for k in ('equal', 'rounded', 'refused', 'not run')))
    sys.exit(bad > 0 or counts['equal'] + counts['rounded'] < len(seeds) // 2)


if __name__ == '__main__':
    main()
