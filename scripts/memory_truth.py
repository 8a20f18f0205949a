#!/usr/bin/env python3
"""Does a process take the memory that the tool predicts? Each model, untiled and tiled, in stock ONNX Runtime.

  memory_truth.py --tool TOOL [--models DIR]... [--only GLOB]... [--args "--goal memory"] [--json FILE] [--threads N]

DIR/models.json lists models and shapes (file, name, shapes, dynamic); without it every .onnx of DIR with static shapes. Two kinds of figures
of the resident set, each measured in a process of its own: growth, over what it is when the session is loaded and free memory has gone back
to the system, largest of three runs; and the whole process, over what it is before the session is made, without the inputs: while loading,
loaded, the peak of the first run and of all. Predicted: `growth_bytes` (`peak_bytes` where there is none), `loading_bytes`, `loaded_bytes`,
`process_bytes` of `--json`. Models of which untiled less than 8 MB grow are left out of the summary, which is the median and the largest
|predicted - measured| / measured. --original: untiled models only.
"""
import argparse
import fnmatch
import glob
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from compare import Side

MB = 1 << 20
RUNS = 3
# of the whole process: figures by their names, and the members of --json that predict them
PREDICTED = {'loading': 'loading_bytes', 'loaded': 'loaded_bytes', 'whole': 'process_bytes'}
LEAST_MB = 8  # growth below that is noise of allocators and Python


def cases(folder):
    """(name, file, shapes, the names among them to bind)."""
    table = os.path.join(folder, 'models.json')
    if not os.path.exists(table):
        for f in sorted(glob.glob(os.path.join(folder, '*.onnx')) + glob.glob(os.path.join(folder, '*.ot'))):
            yield os.path.splitext(os.path.basename(f))[0], f, {}, []
        return
    with open(table, encoding='utf-8') as f:
        for m in json.load(f):
            shapes = {k: v for k, v in (m.get('shapes') or {}).items() if v is not None}
            yield m['name'], os.path.join(folder, m.get('file', m['name'] + '.onnx')), shapes, m.get('dynamic') or []


def chosen(args):
    """Cases of all folders of args.models that a pattern of args.only names; all, where there is none."""
    for case in (c for folder in args.models for c in cases(folder)):
        if not args.only or any(fnmatch.fnmatch(case[0], g) for g in args.only):
            yield case


def figures(model, shapes, threads):
    """MB that the process of one model takes, by what it is called."""
    side = Side(model=model, threads=threads, shapes=shapes, seed=0)
    growth = max(side.run()['peak_mb'] for _ in range(RUNS))
    side.close()
    side = Side(model=model, threads=threads, shapes=shapes, seed=0, whole=True)
    tops = [side.run()['process_mb'] for _ in range(RUNS)]
    side.close()
    loading, loaded = side.loaded['loading_mb'], side.loaded['loaded_mb']
    return {'growth': growth, 'loading': loading, 'loaded': loaded, 'first': max(loading, tops[0]), 'whole': max(loading, *tops)}


def predicted(stage):
    """MB of growth that the tool predicts."""
    return stage.get('growth_bytes', stage['peak_bytes']) / MB


def predictions(stage):
    """The same of all figures that it tells."""
    known = {what: stage[key] / MB for what, key in PREDICTED.items() if key in stage}
    return {'growth': predicted(stage), **known}


def look(case, args):
    """Facts about a model: predicted and measured, untiled and tiled, or why not."""
    name, path, shapes, dynamic = case
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, 'tiled.onnx')
        bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
        command = ['inspect', path] if args.original else [path, '-o', out]
        p = subprocess.run([args.tool, *command, '--json', *bind, *shlex.split(args.args)], capture_output=True, text=True)
        if p.returncode:
            return {'name': name, 'why': p.stderr.strip()[-120:]}
        plan, models = json.loads(p.stdout), {'untiled': path} if args.original else {'untiled': path, 'tiled': out}
        if plan['untiled'].get('growth_bytes', plan['untiled']['peak_bytes']) is None:
            return {'name': name, 'why': 'not predicted: sizes are not known'}
        try:
            return {'name': name, 'regions': len(plan['regions']), 'predicted': {k: predictions(plan[k]) for k in models},
                    'measured': {k: figures(m, shapes, args.threads) for k, m in models.items()}}
        except RuntimeError as error:
            return {'name': name, 'why': str(error)[-120:]}


def off(r, side, what):
    return r['predicted'][side][what] / max(r['measured'][side][what], 1e-9) - 1


def show(r):
    if 'why' in r:
        return f"{r['name']:32s} {r['why']}"
    cells = []
    for side, measured in r['measured'].items():
        known = r['predicted'][side]
        cells.append(side + '  ' + '  '.join(f'{what} {known[what]:.1f} for {m:.1f} ({off(r, side, what):+.0%})' if what in known else f'{what} {m:.1f}'
                                             for what, m in measured.items()))
    return f"{r['name']:28s} {'; '.join(cells)}; regions {r['regions']}"


def options(doc):
    """What both runtimes' scripts are called with."""
    a = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--models', action='append', required=True)
    a.add_argument('--only', action='append')
    a.add_argument('--args', default='--goal memory')
    a.add_argument('--json')
    a.add_argument('--original', action='store_true')
    return a


def table(look, args):
    """Look at each case, print its row, then the summary; rows as JSON where args say so."""
    rows = []
    for case in chosen(args):
        rows.append(look(case, args))
        print(show(rows[-1]), flush=True)
    ran = [r for r in rows if 'measured' in r and r['measured']['untiled']['growth'] >= LEAST_MB]
    for side in ('untiled', 'tiled'):
        for what in ('growth', *PREDICTED):
            errors = sorted((abs(off(r, side, what)), r['name']) for r in ran if what in r['predicted'].get(side, {}))
            if errors:
                middle = statistics.median(e for e, _ in errors)
                print(f'{side} {what}: {len(errors)} models of {LEAST_MB} MB and more, error median {middle:.0%}, worst {errors[-1][0]:.0%} ({errors[-1][1]})')
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    return 0


def main():
    a = options(__doc__)
    a.add_argument('--threads', type=int, default=1)
    return table(look, a.parse_args())


if __name__ == '__main__':
    sys.exit(main())
