#!/usr/bin/env python3
"""Draws docs/seams.png: what becomes of one network's output when the picture is cut by hand, blended, or cut by geometry.

  seams.py [--write]

Prints the table of docs/large.md; --write also draws the picture and puts the table between its marks. Runs with a Python that has onnx_tile and
ONNX Runtime. Network and picture are generated (scripts/large_pictures.py).
"""
import argparse
import os
import sys

import numpy as np

import large_pictures as large
import marked_table
from onnx_tile import large as tiles

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
SIZE, TILE, OVERLAP = 768, 256, 32
SHOWN = 512          # rows and columns that are drawn, half as large, from the top left: corners of four tiles are in it
FULL = 1 / 32        # of the range: what is drawn in full colour


def starts(stop, step, length):
    """Where windows begin that cover [0, stop)."""
    return sorted({min(k, stop - length) for k in range(0, stop - length + step, step)})


def cut_by_hand(run, x):
    """Tiles with OVERLAP rows and columns more on each side, mirrored at the picture's border; the surplus is cut off."""
    padded = np.pad(x, ((0, 0), (0, 0), (OVERLAP,) * 2, (OVERLAP,) * 2), 'reflect')
    rows = []
    for y in range(0, SIZE, TILE):
        parts = [run(padded[:, :, y:y + TILE + 2 * OVERLAP, c:c + TILE + 2 * OVERLAP]) for c in range(0, SIZE, TILE)]
        rows.append(np.concatenate([p[:, :, OVERLAP:-OVERLAP, OVERLAP:-OVERLAP] for p in parts], 3))
    return np.concatenate(rows, 2)


def blended(run, x, overlap=.5, sigma=.125):
    """Windows that overlap by half, weighted by a Gaussian of an eighth of the window."""
    middle = (np.arange(TILE) - (TILE - 1) / 2) / (sigma * TILE)
    line = np.exp(-.5 * middle ** 2)
    weight = np.maximum(np.outer(line, line), 1e-3)
    total, weights = 0, np.zeros((SIZE, SIZE))
    for y in starts(SIZE, int(TILE * (1 - overlap)), TILE):
        for c in starts(SIZE, int(TILE * (1 - overlap)), TILE):
            part = run(x[:, :, y:y + TILE, c:c + TILE])
            if np.ndim(total) == 0:
                total = np.zeros((1, part.shape[1], SIZE, SIZE))
            total[:, :, y:y + TILE, c:c + TILE] += part * weight
            weights[y:y + TILE, c:c + TILE] += weight
    return (total / weights).astype(np.float32)


def by_geometry(model, x):
    """What large.apply makes with chunks of the same size."""
    return tiles.apply(model, x, workers=0, chunk=TILE).target


def half(values):
    """Means of 2 x 2, so that the drawing is half as large."""
    return values.astype(np.float64).reshape(SHOWN // 2, 2, SHOWN // 2, 2, -1).mean((1, 3)).squeeze()


def gray(values, low, high):
    level = np.clip((values - low) / (high - low), 0, 1) * 255
    return np.repeat(level[:, :, None], 3, 2).astype(np.uint8)


def difference(values):
    """0 is white, FULL of the range and more is dark red."""
    level = np.clip(values / FULL, 0, 1)[:, :, None]
    return (np.array([255, 255, 255]) * (1 - level) + np.array([150, 0, 20]) * level).astype(np.uint8)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--write', action='store_true')
    a = p.parse_args()
    model = large.unet(depth=4)
    run = large.session(model)
    pixels = large.picture(3, SIZE, SIZE)
    x = pixels[None].astype(np.float32) / np.float32(255)
    whole = run(x)
    span = float(np.ptp(whole))
    made = {'by hand: overlap 32, mirrored borders': cut_by_hand(run, x), 'windows that overlap by half, Gaussian blending': blended(run, x),
            'chunks of `large.apply`': by_geometry(model, x)}
    lines = ['| tiles of 256 x 256 | largest difference | pixels off by more than 1/255 of the range | bits differ |', '|---|---|---|---|']
    maps = []
    for name, result in made.items():
        off = np.abs(result.astype(np.float64) - whole).max(1)[0] / span
        lines.append(f'| {name} | {off.max():.1%} of the range | {np.mean(off > 1 / 255):.1%} | {np.mean((result != whole).any(1)):.1%} |')
        maps.append(difference(half(off[:SHOWN, :SHOWN])))
    print('\n'.join(lines))
    if a.write:
        output = half(whole[0, 0, :SHOWN, :SHOWN])
        shown = [half(pixels[:, :SHOWN, :SHOWN].transpose(1, 2, 0)), gray(output, *np.percentile(output, (1, 99))), *maps]
        framed = np.concatenate([np.pad(one, ((4, 4), (4, 4), (0, 0)), constant_values=128) for one in shown], 1)
        large.write_png(os.path.join(ROOT, 'docs', 'seams.png'), np.minimum((framed.astype(np.int64) + 4) // 8 * 8, 255))
        marked_table.replace(os.path.join(ROOT, 'docs', 'large.md'), __file__, '\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
