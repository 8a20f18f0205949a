#!/usr/bin/env python3
"""Every model of a folder, before and after: memory and time in ONNX Runtime, OpenVINO and the tool's own engine.

  real_models.py --tool TOOL --models DIR [--openvino PYTHON] [--only GLOB] [--rounds N]

DIR/models.json lists models and shapes (file, name, shapes, dynamic). Each is tiled with `--goal memory` for each runtime, run before and
after on the same inputs, one thread, in processes of their own which take turns. Memory is the growth of the process while it runs: over
the loaded session in ONNX Runtime; over the process before the model is read, weights included, in OpenVINO, which makes its buffers when it
compiles. Of the engine: its working memory. Outputs are equal when their normalised mean square error is at most 1e-8, or
at most ten times that of the untiled model run with the runtime's own optimisations switched off.

Tables are printed in Markdown: section real-models of docs/results.md. --openvino names an interpreter that has the
package. Exit 1 when an output differs.
"""
import argparse
import fnmatch
import json
import math
import os
import subprocess
import sys
import tempfile

from compare import Side, error_of
from memory_truth import cases

MB = 1 << 20


def tile(tool, path, out, bind, runtime):
    """The plan as `--json` prints it; None where the tool refuses."""
    p = subprocess.run([tool, path, '-o', out, '--json', '--goal', 'memory', '--threads', '1', '--runtime', runtime, *bind],
                       capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip()[-160:])
    return json.loads(p.stdout)


def own_error(config, tmp):
    """How far the untiled model is from itself when the runtime optimises nothing."""
    side = Side(**config, plain=True, outputs=f'{tmp}/plain.npz')
    side.run()
    side.close()
    return error_of(f'{tmp}/0.npz', f'{tmp}/plain.npz')


def pair(path, tiled, shapes, rounds, tmp, **more):
    """ms and MB, before and after, and the verdict."""
    files = [f'{tmp}/{k}.npz' for k in range(2)]
    config = dict(threads=1, shapes=shapes, seed=0, **more)
    sides = [Side(model=m, outputs=f, **config) for m, f in zip((path, tiled), files)]
    facts = [[], []]
    for r in range(rounds + 1):
        for k in (0, 1) if r % 2 else (1, 0):
            facts[k].append(sides[k].run())
    for s in sides:
        s.close()
    error = error_of(*files)
    verdict = 'equal' if error <= 1e-8 else 'DIFFERS'
    if error > 1e-8 and more.get('runtime') != 'openvino' and error <= 10 * own_error(dict(config, model=path), tmp):
        verdict = f'equal within {error:.0e}'
    return {'ms': [min(f['seconds'] for f in side) * 1e3 for side in facts], 'mb': [max(f['peak_mb'] for f in side) for side in facts],
            'verdict': verdict}


def engine(tool, path, bind):
    """ms and MB of the engine, untiled and tiled, and whether the two agree."""
    p = subprocess.run([tool, 'bench', path, '--json', '--threads', '1', '--goal', 'memory', *bind], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip()[-160:])
    j = json.loads(p.stdout)
    sides = [j['original'], j['tiled'] or j['original']]
    return {'ms': [s['least_seconds'] * 1e3 for s in sides], 'mb': [s['peak_bytes'] / MB for s in sides],
            'verdict': 'equal' if j['same'] else 'DIFFERS'}


def look(case, a):
    """All that is said of a model: by runtime, figures or why there are none."""
    name, path, shapes, dynamic = case
    bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
    row = {'name': name}
    for runtime in ('onnxruntime', 'openvino') if a.openvino else ('onnxruntime',):
        more = {'python': a.openvino, 'runtime': 'openvino'} if runtime == 'openvino' else {}
        with tempfile.TemporaryDirectory() as tmp:
            try:
                plan = tile(a.tool, path, f'{tmp}/tiled.onnx', bind, runtime)
                row[runtime] = dict(pair(path, f'{tmp}/tiled.onnx', shapes, a.rounds, tmp, **more), regions=len(plan['regions']))
            except RuntimeError as e:
                row[runtime] = {'why': str(e)}
    try:
        row['engine'] = engine(a.tool, path, bind)
    except RuntimeError as e:
        row['engine'] = {'why': str(e)}
    return row


# ---- tables ----

def ratio(f, what):
    return f[what][1] / max(f[what][0], 1e-9)


def cells(f):
    if 'why' in f:
        return f'- | | - | | {f["why"]}'
    number = lambda x: f'{x:.0f}' if x >= 10 else f'{x:.1f}'
    state = f['verdict'] + ('' if f.get('regions', 1) else ', left as it was')
    return ' | '.join([f'{number(f["mb"][0])} -> {number(f["mb"][1])}', f'x{ratio(f, "mb"):.2f}',
                       f'{number(f["ms"][0])} -> {number(f["ms"][1])}', f'x{ratio(f, "ms"):.2f}', state])


def mean_line(found, of):
    """Geometric means over the rows of a table."""
    geo = lambda fs, what: math.exp(sum(math.log(max(ratio(f, what), 1e-6)) for f in fs) / len(fs))
    line = f'{len(found)} models, geometric means: memory x{geo(found, "mb"):.2f}, time x{geo(found, "ms"):.2f}'
    tiled = [f for f in found if f.get('regions', 1)]
    if of != 'engine' and tiled and len(tiled) < len(found):
        line += f'; of the {len(tiled)} that are tiled: memory x{geo(tiled, "mb"):.2f}, time x{geo(tiled, "ms"):.2f}'
    return line + '.'


def table(rows, who, title):
    lines = [f'### {title}', '', '| model | memory, MB | ratio | time, ms | ratio | outputs |', '|---|--:|--:|--:|--:|---|']
    lines += [f'| {r["name"]} | {cells(r[who])} |' for r in rows]
    found = [r[who] for r in rows if 'why' not in r[who]]
    return lines + (['', mean_line(found, who)] if found else []) + ['']


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--models', required=True)
    p.add_argument('--openvino', metavar='PYTHON')
    p.add_argument('--only', default='*')
    p.add_argument('--rounds', type=int, default=3)
    a = p.parse_args()
    rows = []
    for case in cases(a.models):
        if fnmatch.fnmatch(case[0], a.only):
            rows.append(look(case, a))
            print(rows[-1]['name'], *(f'{who}: {cells(f)}' for who, f in rows[-1].items() if who != 'name'), sep='\n    ', file=sys.stderr, flush=True)
    titles = {'onnxruntime': 'ONNX Runtime', 'openvino': 'OpenVINO, `--runtime openvino`', 'engine': "The native engine, untiled and tiled"}
    text = '\n'.join(line for who, title in titles.items() if rows and who in rows[0] for line in table(rows, who, title))
    print(text)
    return 1 if any(f.get('verdict') == 'DIFFERS' for r in rows for f in r.values() if isinstance(f, dict)) else 0


if __name__ == '__main__':
    sys.exit(main())
