"""Decoders of video and image autoencoders (models/latent_decoders.py): tiled, with the results that they have untiled. latent_decoders.py TOOL FOLDER

With --goal memory every one is tiled, or states no extents, by what the process grows by; forced, and small, all that can be cut is.
"""
import json
import os
import subprocess
import sys

import numpy as np
import onnx

from checks import input_extents, outputs

tool, d = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'models'))
from latent_decoders import MODELS  # noqa: E402

# the most that the process grows by, of the untiled model's growth. ltx: most of it is the result, in pieces and whole
MOST = {'wan': .15, 'qwen': .25, 'hunyuan': .45, 'cogvideox': .25, 'ltx': .6, 'ltx_causal': .6, 'image': .55}
# latents that are as small as shows it
EXTENTS = {name: {'height': 16, 'wide': 24} for name in ('wan', 'qwen', 'hunyuan', 'image')} | {name: {'height': 12, 'wide': 16} for name in ('ltx', 'ltx_causal')}
EXACT = {'wan', 'qwen'}  # with --goal memory nothing is summed over what is cut, nor are products



def check(name, model, options):
    """It is tiled, and gives what it gave. Returns the part of the growth that is left."""
    path, out = f'{d}/{name}.onnx', f'{d}/{name}_out.onnx'
    onnx.save(model, path)
    p = subprocess.run([tool, path, '-o', out, *options, '--threads', '1', '--target', 'cpu-generic', '--json'], capture_output=True, text=True)
    if p.returncode: sys.exit(f'{name} {options}: exit {p.returncode}: {p.stderr}')
    facts = json.loads(p.stdout)
    if not facts['regions'] and not facts['hides_extents']: sys.exit(f'{name} {options}: nothing is tiled')
    x = {'z': np.random.default_rng(1).standard_normal(input_extents(model)).astype('f4')}
    want, got = (outputs(f, x)[0] for f in (path, out))
    limit = 0 if name in EXACT and '--force' not in options else 1e-5 * np.ptp(want)
    if got.shape != want.shape or not np.abs(got - want).max() <= limit: sys.exit(f'{name} {options}: off by {np.abs(got - want).max()} of {np.ptp(want)}')
    left = facts['tiled']['growth_bytes'] / facts['untiled']['growth_bytes']
    print(f'{name} {options}: x{left:.2f}, {len(facts["regions"])} regions')
    return left


for name, make in MODELS.items():
    left = check(name, make(**EXTENTS.get(name, {})), ['--goal', 'memory'])
    if left > MOST[name]: sys.exit(f'{name}: x{left:.2f} of the growth is left')
    check(name, make(width=8, height=4, wide=6), ['--force', '--l2', '64K'])
