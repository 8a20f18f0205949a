#!/usr/bin/env python3
"""How far from float64 is a decoder that is computed in tiles? Section exactness of docs/results.md.

  exactness_table.py --tool TOOL [--seed N] [--latent N] [--tile N] [--markdown]

A small decoder of pictures is made (convolutions, group normalisations in the form that torch exports, SiLU, residual blocks, three
up-samplings by 2) with a latent that has large structures and noise. It is computed in float64 in numpy; against that stand

  untiled              the model in ONNX Runtime
  exact parts          the model that the tool writes, every normalisation decomposed, in ONNX Runtime
  blended tiles        overlapping latents decoded one by one, results blended along their borders
  averaged variances   whole convolutions; mean and variance of each group averaged over the tiles
  small picture        whole convolutions; means and variances of the same latent scaled down to a tile

The last three are computed in float64, so that what they lose is the method's, not the arithmetic's. Same seed, same table, but for the
runtime's own rounding.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

GROUPS, EPSILON = 4, 1e-6
LEVELS = [32, 32, 16, 16]  # channels, from the latent to the picture
LATENT_CHANNELS = 4


def layers(rng):
    """The decoder as a list of (kind, arrays): conv (w, b), norm (gamma, beta), silu, keep, add (a conv of what is kept, or None), up."""
    def conv(inside, out, size=3, gain=1.0):
        w = rng.normal(0, gain * (2 / (inside * size * size)) ** .5, (out, inside, size, size))
        return 'conv', w.astype('f4'), rng.normal(0, .1, out).astype('f4')

    def norm(n): return 'norm', rng.uniform(.5, 1.5, n).astype('f4'), rng.normal(0, .3, n).astype('f4')
    made, now = [conv(LATENT_CHANNELS, LEVELS[0])], LEVELS[0]
    for k, n in enumerate(LEVELS):
        widen = conv(now, n, 1) if n != now else None
        made += [('keep',), norm(now), ('silu',), conv(now, n), norm(n), ('silu',), conv(n, n, gain=.5), ('add', widen)]
        now = n
        if k + 1 < len(LEVELS): made += [('up',), conv(n, n)]
    return [*made, norm(now), ('silu',), conv(now, 3)]


# ---- float64 ----

def convolve(x, w, b):
    """x [C, H, W] with zeros around."""
    out, _, size, _ = w.shape
    pad = size // 2
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    h, wide = x.shape[1] - 2 * pad, x.shape[2] - 2 * pad
    y = np.zeros((out, h * wide)) + b.astype('f8')[:, None]
    for i in range(size):
        for j in range(size): y += w[:, :, i, j].astype('f8') @ x[:, i:i + h, j:j + wide].reshape(x.shape[0], -1)
    return y.reshape(out, h, wide)


def moments(x):
    """Mean and variance of each group of channels of x [C, ...]."""
    g = x.reshape(GROUPS, -1)
    return g.mean(1), g.var(1)


def decode(net, x, statistics=lambda _, x: moments(x)):
    """The picture of latent x; statistics(k, x): means and variances that normalisation k uses."""
    kept, count = None, 0
    for kind, *arrays in net:
        if kind == 'conv': x = convolve(x, *arrays)
        elif kind == 'silu': x = x / (1 + np.exp(-x))
        elif kind == 'up': x = x.repeat(2, 1).repeat(2, 2)
        elif kind == 'keep': kept = x
        elif kind == 'add': x = x + (kept if arrays[0] is None else convolve(kept, *arrays[0][1:]))
        else:
            each = len(x) // GROUPS
            mean, variance = (np.repeat(s, each)[:, None, None] for s in statistics(count, x))
            x = (x - mean) / np.sqrt(variance + EPSILON) * arrays[0].astype('f8')[:, None, None] + arrays[1].astype('f8')[:, None, None]
            count += 1
    return x


def averaged(tiles):
    """Statistics averaged over tiles x tiles parts of the picture."""
    def of(_, x):
        parts = [moments(c) for r in np.array_split(x, tiles, 1) for c in np.array_split(r, tiles, 2)]
        return np.mean([p[0] for p in parts], 0), np.mean([p[1] for p in parts], 0)
    return of


def of_small_picture(net, x, tile):
    """Statistics of x scaled down to tile x tile, normalisation by normalisation."""
    seen = []

    def note(_, y):
        seen.append(moments(y))
        return seen[-1]
    at = (np.arange(tile) * x.shape[1] / tile).astype(int)
    decode(net, x[:, at][:, :, at], note)
    return lambda k, _: seen[k]


def blended(net, x, tile):
    """Tiles that overlap by a quarter, decoded one by one; along a border the weight of the later one grows."""
    step, scale = tile * 3 // 4, 2 ** (len(LEVELS) - 1)
    size = x.shape[1] * scale
    y, weight = np.zeros((3, size, size)), np.zeros((size, size))
    starts = [*range(0, x.shape[1] - tile, step), x.shape[1] - tile]

    def ramp(k):
        w = np.ones(tile * scale)
        if k > 0:
            n = (starts[k - 1] + tile - starts[k]) * scale
            w[:n] = (np.arange(n) + .5) / n
        if k + 1 < len(starts):
            n = (starts[k] + tile - starts[k + 1]) * scale
            w[-n:] = np.minimum(w[-n:], 1 - (np.arange(n) + .5) / n)
        return w
    for i, top in enumerate(starts):
        for j, left in enumerate(starts):
            w = ramp(i)[:, None] * ramp(j)
            at = slice(top * scale, (top + tile) * scale), slice(left * scale, (left + tile) * scale)
            y[(slice(None), *at)] += w * decode(net, x[:, top:top + tile, left:left + tile])
            weight[at] += w
    return y / weight


# ---- the model ----

def model(net, latent):
    """The decoder in ONNX, GroupNorm as Reshape - InstanceNormalization - Reshape - Mul - Add."""
    nodes, inits, size, channels, kept = [], [], latent, LATENT_CHANNELS, None

    def const(a):
        inits.append(numpy_helper.from_array(a, f'c{len(inits)}'))
        return inits[-1].name

    def op(kind, ins, **attrs):
        nodes.append(helper.make_node(kind, ins, [f'v{len(nodes)}'], name=f'n{len(nodes)}', **attrs))
        return nodes[-1].output[0]

    def conv(v, w, b): return op('Conv', [v, const(w), const(b)], pads=[w.shape[2] // 2] * 4)
    ones, zeros = const(np.ones(GROUPS, 'f4')), const(np.zeros(GROUPS, 'f4'))
    to, v = const(np.array([0, GROUPS, -1])), 'x'
    for kind, *arrays in net:
        if kind == 'conv': v, channels = conv(v, *arrays), len(arrays[0])
        elif kind == 'silu': v = op('Mul', [v, op('Sigmoid', [v])])
        elif kind == 'up': v, size = op('Resize', [v, '', const(np.array([1, 1, 2, 2], 'f4'))], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'), size * 2
        elif kind == 'keep': kept = v
        elif kind == 'add': v = op('Add', [v, kept if arrays[0] is None else conv(kept, *arrays[0][1:])])
        else:
            n = op('InstanceNormalization', [op('Reshape', [v, to]), ones, zeros], epsilon=EPSILON)
            n = op('Reshape', [n, const(np.array([1, channels, size, size]))])
            v = op('Add', [op('Mul', [n, const(arrays[0].reshape(-1, 1, 1))]), const(arrays[1].reshape(-1, 1, 1))])
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in (('x', [1, LATENT_CHANNELS, latent, latent]), (v, [1, 3, size, size]))]
    return helper.make_model(helper.make_graph(nodes, 'decoder', values[:1], values[1:], inits), opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def run(path, x):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = 1, 4
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider']).run(None, {'x': x[None]})[0][0].astype('f8')


def tiled(tool, path, x, folder):
    """The tiled model's picture, and how many normalisations are decomposed in it."""
    out = os.path.join(folder, 'tiled.onnx')
    subprocess.run([tool, path, '-o', out, '--force', '--l2', '512K', '--target', 'cpu-generic', '--threads', '1', '-q'], check=True,
                   env={**os.environ, 'ONNX_TILE_CACHE': 'off'})
    left = sum(n.op_type == 'InstanceNormalization' for n in onnx.load(out).graph.node)
    return run(out, x), left


def latent_of(rng, n):
    """Large structures, and noise."""
    coarse = rng.normal(0, 1.5, (LATENT_CHANNELS, 5, 5))
    at = np.linspace(0, 4, n)
    lo = np.minimum(at.astype(int), 3)
    part = at - lo
    rows = coarse[:, lo] * (1 - part)[:, None] + coarse[:, lo + 1] * part[:, None]
    return (rows[:, :, lo] * (1 - part) + rows[:, :, lo + 1] * part + rng.normal(0, .3, (LATENT_CHANNELS, n, n))).astype('f4')


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--tool', required=True)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--latent', type=int, default=64)
    p.add_argument('--tile', type=int, default=32)
    p.add_argument('--markdown', action='store_true')
    args = p.parse_args()
    rng = np.random.default_rng(args.seed)
    net, x = layers(rng), latent_of(rng, args.latent)
    want = decode(net, x.astype('f8'))
    wide = want.max() - want.min()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'decoder.onnx')
        onnx.save(model(net, args.latent), path)
        whole, (ours, left) = run(path, x), tiled(args.tool, path, x, folder)
    x = x.astype('f8')
    rows = [('untiled, ONNX Runtime', whole),
            ('exact parts, ONNX Runtime', ours),
            ('tiles blended at their borders', blended(net, x, args.tile)),
            ('variances averaged over tiles', decode(net, x, averaged(args.latent // args.tile))),
            ('statistics of a small picture', decode(net, x, of_small_picture(net, x, args.tile)))]
    print('| method | largest error / range | NMSE |\n|---|---|---|' if args.markdown else f'{"":32}  largest error / range      NMSE')
    for name, y in rows:
        most, nmse = abs(y - want).max() / wide, ((y - want) ** 2).sum() / (want ** 2).sum()
        print(f'| {name} | {most:.1e} | {nmse:.1e} |' if args.markdown else f'{name:32}  {most:21.1e}   {nmse:.1e}')
    if left: print(f'{left} normalisations are not decomposed', file=sys.stderr)
    return left > 0


if __name__ == '__main__':
    sys.exit(main())
