#!/usr/bin/env python3
"""Files that were tiled for ONNX Runtime run in the engine as what they were.

  originals.py [--tool build/onnx-tile] [--start S] [--seeds N] [-v]      ends with 'N passed, N failed, ...'

Random graphs (graph_gen.py) with random options and forms: `run` on the tiled file says nothing and, without a plan (--no-plan), gives to the
bit where no norm was folded what it gives on the original. Planned for the engine it gives the same to the bit where no tile was made, else
as far as the rules for tiles go, and takes no more memory for values, a file of goal memory. So does the original by `run --goal`. By its own
tiles (--as-is) the file gives the same as far as ONNX Runtime's rules go. Of a file that was changed since, run says so in one line, and
computes what the file computes.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import graph_gen  # noqa: E402
import random_graphs  # noqa: E402
import seeds  # noqa: E402
from comparing import Failed, differences, tile  # noqa: E402


def run(tool, path, folder, *words):
    """(outputs by number or None where the engine does not run it, what it said, its figures)"""
    out = os.path.join(folder, 'out')
    os.makedirs(out, exist_ok=True)
    for name in os.listdir(out):
        os.remove(os.path.join(out, name))
    p = subprocess.run([tool, 'run', path, '--seed', '5', '--output-dir', out, '--json', *words], capture_output=True, text=True, timeout=60)
    if p.returncode:
        return None, p.stderr, {}
    return [np.load(os.path.join(out, f'{k}.npy')) for k in range(len(os.listdir(out)))], p.stderr, json.loads(p.stdout)


def notes_of(model):
    return {p.key: p.value for p in model.metadata_props}


def is_tiled(model):
    return any(n.name.startswith('tile/r') for n in model.graph.node)


def check_changed(tool, model, folder, names):
    """A file that somebody else changed is what it says: its outputs' negatives."""
    path = os.path.join(folder, 'changed.onnx')
    y = model.graph.output[0].name
    for n in model.graph.node:
        for k, name in enumerate(n.output):
            if name == y:
                n.output[k] = y + '_before'
        for k, name in enumerate(n.input):
            if name == y:
                n.input[k] = y + '_before'
    model.graph.node.append(onnx.helper.make_node('Neg', [y + '_before'], [y], 'negative'))
    onnx.save(model, path)
    got, said, _ = run(tool, path, folder)
    if 'changed since' not in said:
        raise Failed(f'a changed file is taken for what it was: {said}')
    return got


def has_tiles(figures):
    return any(n['name'].startswith('tile/r') for n in figures['nodes'])


def check_planned(tool, path, folder, names, want, untiled, memory, *words):
    """Whether the engine made tiles of its own."""
    got, said, figures = run(tool, path, folder, *words)
    if said or got is None:
        raise Failed(f'planned, it says: {said}')
    tiles = has_tiles(figures)
    if differences(names, want, got) or (not tiles and not all(np.array_equal(a, b, equal_nan=a.dtype.kind == 'f') for a, b in zip(want, got))):
        raise Failed(f'planned, it gives something else: {differences(names, want, got)}')
    if memory and figures['planned_peak_bytes'] > untiled['planned_peak_bytes']:
        raise Failed(f'planned it takes {figures["planned_peak_bytes"]}, not planned {untiled["planned_peak_bytes"]}')
    return tiles


def check(tool, seed, folder):
    """'skipped', 'untiled', 'kept', 'restored' or 'planned'; raises Failed."""
    g = graph_gen.grow(seed)
    if not g.steps:
        return 'skipped'
    args, _ = random_graphs.options(seed, g)
    model = g.model()
    original, tiled = os.path.join(folder, 'model.onnx'), os.path.join(folder, 'tiled.onnx')
    onnx.save(model, original)
    want, _, _ = run(tool, original, folder)
    if want is None:
        return 'skipped'
    tile(tool, original, tiled, args, [])
    made = onnx.load(tiled)
    if not is_tiled(made):
        return 'untiled'
    names = [o.name for o in model.graph.output]
    got, said, untiled = run(tool, tiled, folder, '--no-plan')
    if 'onnx_tile.original' not in notes_of(made):
        if 'give that one' not in said:
            raise Failed(f'slow without a word: {said}')
        return 'kept'
    if said or got is None:
        raise Failed(f'it says: {said}')
    why = differences(names, want, got)
    if why or (not any(n.op_type == 'BatchNormalization' for n in model.graph.node) and
               not all(np.array_equal(a, b, equal_nan=a.dtype.kind == 'f') for a, b in zip(want, got))):
        raise Failed(f'not what the original gives: {why}')
    planned = check_planned(tool, tiled, folder, names, got, untiled, notes_of(made)['onnx_tile.goal'].startswith('memory'))
    goal = ('time', 'memory')[seed % 2]
    check_planned(tool, original, folder, names, want, untiled, goal == 'memory', '--goal', goal)
    by_tiles, said, _ = run(tool, tiled, folder, '--as-is')
    if by_tiles is not None and differences(names, want, by_tiles):
        raise Failed(f'by its tiles: {differences(names, want, by_tiles)}')
    if made.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT and seed % 4 == 0:
        changed = check_changed(tool, made, folder, names)
        if changed is not None and differences(names[:1], [-want[0]], changed[:1]):
            raise Failed('a changed file does not give what it computes')
    return 'planned' if planned else 'restored'


def main():
    args, which = seeds.parse(__doc__, 60)
    counts, failed = {}, 0
    for seed in which:
        with tempfile.TemporaryDirectory() as folder:
            try:
                kind = check(os.path.abspath(args.tool), seed, folder)
            except Failed as why:
                print(f'seed {seed}: FAIL {why}')
                failed, kind = failed + 1, 'failed'
        counts[kind] = counts.get(kind, 0) + 1
        if args.v:
            print(f'seed {seed}: {kind}')
    planned, kept = counts.get('planned', 0), counts.get('kept', 0)
    restored = counts.get('restored', 0) + planned
    print(f'originals: {restored} passed, {failed} failed, {counts.get("skipped", 0)} skipped, {counts.get("untiled", 0)} untiled, '
          f'{kept} kept, {planned} with tiles of the engine')
    if args.seed is None and (restored * 5 < len(which) or kept * 4 > restored):
        print('too few files are taken for what they were')
        return 1
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
