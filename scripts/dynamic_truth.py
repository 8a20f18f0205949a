#!/usr/bin/env python3
"""One file for every size against a file for each: what does the free form cost? In stock ONNX Runtime, one thread.

  dynamic_truth.py --tool TOOL --models DIR [--free [b]hw] [--only GLOB] [--sizes 5] [--rounds 2] [--args "--goal memory"] [--json FILE] [-v]

Each model of DIR (models.json with file, name, shapes, dynamic; else every .onnx there) whose dimensions are free is tiled once with --design
at its shapes, and for each of five sizes once more with --shape. --free frees dimensions of models whose file has them fixed: batch, height
and width of inputs of rank 4, nothing that a Reshape has baked in. Sizes: the design, then such from 1.3 to 0.3 of its
extents, odd ones: an odd multiple of the smallest power of two that the original takes. At each size the original, the free and the
static model run in turns, in processes of their own. Outputs of the free model must be the original's: normalised mean square error at most 1e-8 (half
precision 1e-4), or at most ten times that of the original run without optimisations. Memory: growth of the resident set over the loaded
session; what is within 2 MB of the other is no difference. One row a size; the last line has the worst ratios of free to static. Exit 1
where outputs differ or memory is above 1.25 of the static plan's.
"""
import argparse
import fnmatch
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

import onnx

from compare import Side, error_of
from memory_truth import cases
from real_models import own_error

SCALES = [(1.0, 1.0), (0.81, 0.63), (0.5, 0.93), (1.3, 0.71), (0.31, 0.43), (0.9, 1.21), (0.67, 0.35)]
GRAINS = (1, 2, 4, 8, 16, 32, 64)
MOST = 1.25
NOISE_MB = 2


def odd_multiple(extent, grain):
    """The odd multiple of `grain` next to `extent`."""
    return grain * max(1, 2 * round((extent / grain - 1) / 2) + 1)


def dynamic_dims(path):
    """{input: axes} that the file leaves free."""
    g = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in g.initializer}
    dims = {i.name: [k for k, d in enumerate(i.type.tensor_type.shape.dim) if not d.HasField('dim_value')] for i in g.input if i.name not in weights}
    return {v: axes for v, axes in dims.items() if axes}


def free_up(path, which, out):
    """A copy of the model whose inputs' batch, height and width are free; the shapes they had."""
    m = onnx.load(path)
    weights, shapes = {t.name for t in m.graph.initializer}, {}
    axes = [k for k, letter in ((0, 'b'), (2, 'h'), (3, 'w')) if letter in which]
    for i in m.graph.input:
        dims = i.type.tensor_type.shape.dim
        if i.name in weights or len(dims) != 4:
            continue
        shapes[i.name] = [d.dim_value for d in dims]
        for k in axes:
            dims[k].dim_param = 'bchw'[k]
    for v in m.graph.output:
        for d in v.type.tensor_type.shape.dim:
            d.Clear()
    del m.graph.value_info[:]
    onnx.save(m, out)
    return shapes


def at(shapes, free, scale, grain):
    """Shapes at a scale of the design: spatial extents, the last by the second factor; the batch stays."""
    out = {v: list(s) for v, s in shapes.items()}
    for v, axes in free.items():
        for k in axes:
            if k > 0:
                out[v][k] = odd_multiple(shapes[v][k] * scale[k == len(shapes[v]) - 1], grain)
    return out


def side(model, shapes, file, threads=1):
    return Side(model=model, threads=threads, shapes=shapes, seed=0, outputs=file)


def takes(path, shapes, tmp):
    """Does the original run at these shapes?"""
    s = None
    try:
        s = side(path, shapes, f'{tmp}/probe.npz')
        s.run()
        return True
    except RuntimeError:
        return False
    finally:
        if s:
            s.close()


def grain_of(path, shapes, free, tmp):
    """The smallest power of two of which the original takes odd multiples: tried at small sizes, on one more axis each time."""
    for grain in GRAINS:
        if takes(path, at(shapes, free, (0.31, 0.43), grain), tmp):
            return grain
    return None


def tile(tool, path, out, words, args):
    p = subprocess.run([tool, path, '-o', out, '--json', '--threads', '1', *words, *shlex.split(args)], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip()[-200:])
    return json.loads(p.stdout)


def words_of(option, shapes):
    return [w for v, s in shapes.items() for w in (option, v + '=' + ','.join(map(str, s)))]


def run_all(models, shapes, rounds, tmp):
    """For each model: (largest MB, least seconds, file of outputs)."""
    files = [f'{tmp}/{k}.npz' for k in range(len(models))]
    sides = [side(m, shapes, f) for m, f in zip(models, files)]
    facts = [[] for _ in models]
    for r in range(rounds):
        for k in range(len(models)) if r % 2 == 0 else reversed(range(len(models))):
            facts[k].append(sides[k].run())
    for s in sides:
        s.close()
    return [(max(f['peak_mb'] for f in fs), min(f['seconds'] for f in fs), file) for fs, file in zip(facts, files)]


def half(path):
    g = onnx.load(path, load_external_data=False).graph
    return any(t.data_type == onnx.TensorProto.FLOAT16 for t in g.initializer)


def verdict_of(path, shapes, facts, tmp):
    error = error_of(facts[0][2], facts[1][2])
    if error <= (1e-4 if half(path) else 1e-8):
        return 'equal'
    own = own_error(dict(model=path, threads=1, shapes=shapes, seed=0), tmp)
    return f'equal within {error:.0e}' if error <= 10 * own else f'DIFFERS by {error:.0e}'


def row_at(path, free_model, shapes, o, tmp):
    """Facts of one size."""
    static = f'{tmp}/static.onnx'
    plan = tile(o.tool, path, static, words_of('--shape', shapes), o.args)
    facts = run_all([path, free_model, static], shapes, o.rounds, tmp)
    mb, s = [f[0] for f in facts], [f[1] for f in facts]
    small = mb[1] <= mb[2] + NOISE_MB
    return {'shapes': shapes, 'mb': mb, 'seconds': s, 'verdict': verdict_of(path, shapes, facts, tmp),
            'memory': min(mb[1] / mb[2], 1.0) if small else mb[1] / mb[2], 'time': s[1] / s[2], 'forms': [r['form'] for r in plan['regions']]}


def show(name, r):
    size = ' '.join('x'.join(map(str, s)) for s in r['shapes'].values())
    print(f"{name:22s} {size:18s} {r['verdict']:8s} MB {r['mb'][0]:7.1f}, free {r['mb'][1]:7.1f} (x{r['mb'][1] / r['mb'][0]:.2f}), static {r['mb'][2]:7.1f} (x{r['mb'][2] / r['mb'][0]:.2f}): "
          f"x{r['memory']:.2f}; ms {r['seconds'][0] * 1e3:.0f}, {r['seconds'][1] * 1e3:.0f}, {r['seconds'][2] * 1e3:.0f}: x{r['time']:.2f}", flush=True)


def look(case, o):
    """Rows of one model, or None: no dimension of it is free."""
    name, path, shapes, _ = case
    with tempfile.TemporaryDirectory() as tmp:
        if o.free:
            freed = f'{tmp}/freed.onnx'
            shapes = free_up(path, o.free, freed)
            path = freed
        free = {v: axes for v, axes in dynamic_dims(path).items() if v in shapes}
        if not free:
            return None
        free_model = f'{tmp}/free.onnx'
        plan = tile(o.tool, path, free_model, ['--keep-dynamic', *words_of('--design', {v: shapes[v] for v in free})], o.args)
        grain, rows = grain_of(path, shapes, free, tmp), []
        if o.v:
            print(f"{name}: {len(plan['regions'])} regions, {'multiples of ' + str(grain) if grain else 'no other size'}", flush=True)
        for scale in SCALES[:o.sizes]:
            here = shapes if scale == SCALES[0] else at(shapes, free, scale, grain) if grain else None
            if here and takes(path, here, tmp):
                rows.append(dict(row_at(path, free_model, here, o, tmp), name=name))
                show(name, rows[-1])
        return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', required=True)
    p.add_argument('--models', required=True)
    p.add_argument('--free', default='')
    p.add_argument('--only', default='*')
    p.add_argument('--sizes', type=int, default=5)
    p.add_argument('--rounds', type=int, default=2)
    p.add_argument('--args', default='--goal memory')
    p.add_argument('--json')
    p.add_argument('-v', action='store_true')
    o = p.parse_args()
    rows, fixed, failed = [], [], 0
    for case in cases(o.models):
        if not fnmatch.fnmatch(case[0], o.only):
            continue
        try:
            found = look(case, o)
        except RuntimeError as e:
            print(f'{case[0]:22s} FAILED {e}', flush=True)
            failed += 1
            continue
        rows += found or []
        fixed += [case[0]] if found is None else []
    if fixed:
        print('no free dimension: ' + ', '.join(fixed))
    if not rows:
        return 1
    geo = lambda key: math.exp(sum(math.log(max(r[key], 1e-3)) for r in rows) / len(rows))
    worst = max(rows, key=lambda r: r['memory'])
    slowest = max(rows, key=lambda r: r['time'])
    size = lambda r: ' '.join('x'.join(map(str, s)) for s in r['shapes'].values())
    differ, above = [sum(f(r) for r in rows) for f in (lambda r: not r['verdict'].startswith('equal'), lambda r: r['memory'] > MOST)]
    print(f"{len(rows)} sizes of {len({r['name'] for r in rows})} models: {differ} differ, {above} above x{MOST}; free to static: memory x{geo('memory'):.2f} in the geometric mean, "
          f"x{worst['memory']:.2f} at worst ({worst['name']} {size(worst)}), time x{geo('time'):.2f}, x{slowest['time']:.2f} at worst ({slowest['name']} {size(slowest)})")
    if o.json:
        with open(o.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    return 1 if failed or differ or above else 0


if __name__ == '__main__':
    sys.exit(main())
