#!/usr/bin/env python3
"""Does a process take the memory that the tool predicts? Each model, untiled and tiled, in stock ONNX Runtime.

  memory_truth.py --tool TOOL [--models DIR]... [--only GLOB]... [--args "--goal memory"] [--json FILE] [--threads N]

DIR/models.json lists models and shapes (file, name, shapes, dynamic); without it every .onnx of DIR with static shapes. Measured: growth of
the process's resident set over what it is when the session is loaded, largest of two runs. Predicted: `growth_bytes` of `--json`, or
`peak_bytes` where the tool gives no such figure. Models of which untiled less than 8 MB grow are left out of the summary, which is the
median and the largest |predicted - measured| / measured.
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
LEAST_MB = 8  # growth below that is noise of allocators and Python


def cases(folder):
    """(name, file, shapes, the names among them to bind)."""
    table = os.path.join(folder, 'models.json')
    if not os.path.exists(table):
        for f in sorted(glob.glob(os.path.join(folder, '*.onnx'))):
            yield os.path.basename(f)[:-5], f, {}, []
        return
    with open(table, encoding='utf-8') as f:
        for m in json.load(f):
            shapes = {k: v for k, v in (m.get('shapes') or {}).items() if v is not None}
            yield m['name'], os.path.join(folder, m.get('file', m['name'] + '.onnx')), shapes, m.get('dynamic') or []


def grow(model, shapes, threads):
    """MB that the process of one model grows by."""
    side = Side(model=model, threads=threads, shapes=shapes, seed=0)
    peak = max(side.run()['peak_mb'] for _ in range(2))
    side.close()
    return peak


def predicted(stage):
    return stage.get('growth_bytes', stage['peak_bytes']) / MB


def look(case, args):
    """Facts about a model: predicted and measured, untiled and tiled, or why not."""
    name, path, shapes, dynamic = case
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, 'tiled.onnx')
        bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
        p = subprocess.run([args.tool, path, '-o', out, '--json', *bind, *shlex.split(args.args)], capture_output=True, text=True)
        if p.returncode:
            return {'name': name, 'why': p.stderr.strip()[-120:]}
        plan = json.loads(p.stdout)
        try:
            return {'name': name, 'regions': len(plan['regions']),
                    'predicted': (predicted(plan['untiled']), predicted(plan['tiled'])),
                    'measured': (grow(path, shapes, args.threads), grow(out, shapes, args.threads))}
        except RuntimeError as error:
            return {'name': name, 'why': str(error)[-120:]}


def off(r, k):
    return r['predicted'][k] / max(r['measured'][k], 1e-9) - 1


def show(r):
    if 'why' in r:
        return f"{r['name']:32s} {r['why']}"
    (p0, p1), (m0, m1) = r['predicted'], r['measured']
    return (f"{r['name']:32s} untiled {p0:8.1f} predicted {m0:8.1f} MB ({off(r, 0):+5.0%})   tiled {p1:8.1f} {m1:8.1f} MB ({off(r, 1):+5.0%})   "
            f"x{p1 / max(p0, 1e-9):.2f} measured x{m1 / max(m0, 1e-9):.2f}  regions {r['regions']}")


def options(doc):
    """What both runtimes' scripts are called with."""
    a = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--models', action='append', required=True)
    a.add_argument('--only', action='append')
    a.add_argument('--args', default='--goal memory')
    a.add_argument('--json')
    return a


def table(look, args):
    """Look at each case, print its row, then the summary; rows as JSON where args say so."""
    rows = []
    for case in (c for folder in args.models for c in cases(folder)):
        if args.only and not any(fnmatch.fnmatch(case[0], g) for g in args.only):
            continue
        rows.append(look(case, args))
        print(show(rows[-1]), flush=True)
    ran = [r for r in rows if 'measured' in r and r['measured'][0] >= LEAST_MB]
    for k, what in enumerate(('untiled', 'tiled')):
        errors = sorted(abs(off(r, k)) for r in ran)
        if errors:
            print(f'{what}: {len(errors)} models of {LEAST_MB} MB and more, error median {statistics.median(errors):.0%}, worst {errors[-1]:.0%}')
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
