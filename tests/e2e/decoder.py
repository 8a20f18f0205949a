"""A decoder, untiled and tiled: growth told, outputs. decoder.py MODEL TILED RESULTS MOST"""
import json
import sys

import numpy as np
import onnx

from checks import input_extents, outputs

path, tiled, results, most = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3])), float(sys.argv[4])

before, after = (results[k]['growth_bytes'] for k in ('untiled', 'tiled'))
print(f"{before} -> {after}: x{after / before:.3f}")
if not 0 < after <= most * before: sys.exit(f'the process grows by more than x{most}')
x = np.random.default_rng(1).standard_normal(input_extents(onnx.load(path))).astype('f4')
want, got = (outputs(p, {'z': x})[0] for p in (path, tiled))
if got.shape != want.shape or np.abs(got - want).max() > 1e-5 * np.ptp(want): sys.exit(f'off by {np.abs(got - want).max()} of {np.ptp(want)}')
