#!/usr/bin/env python3
"""Does a process keep to the bound of its range? Each model and its free tiled form, at random sizes of a range, in stock ONNX Runtime.

  bounds_truth.py --tool TOOL --model M.onnx --range INPUT=D,LO:HI[:STEP],... [--range ...] [--sizes 20] [--seed S] [--args "--goal memory"] [--json FILE]

Tiled with --range, so planned at its upper corner. Measured, at each size in a process of its own: growth of the resident set over what it
is when the session is loaded and fed, after three runs. Sizes: the upper corner, the size that the bound is of, the rest random; sizes that the original refuses
are replaced by others, and the tiled model must refuse them, too. One row a form: the bound, the largest and the median of what was measured over the bound. Exit 1 when
a size took more than the bound says.
"""
import argparse
import ctypes
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

from compare import make_inputs, open_onnxruntime, status_mb

MB = 1 << 20


def parse(text):
    """(input, [(lo, hi, step)])"""
    name, dims = text.rsplit('=', 1)
    out = []
    for d in dims.split(','):
        parts = [int(p) for p in d.split(':')]
        lo, hi, step = parts[0], parts[min(1, len(parts) - 1)], parts[2] if len(parts) > 2 else 1
        out.append((lo, hi - (hi - lo) % step, step))
    return name, out


def child(config):
    """Runs a model three times; prints MB that the process grew by."""
    session, run = open_onnxruntime(config)
    feeds = make_inputs(session, config['shapes'], 0)
    ctypes.CDLL(None).malloc_trim(0)  # or memory left over from loading would hide what running takes
    with open('/proc/self/clear_refs', 'w') as f:
        f.write('5')  # peak resident size starts again from here
    base = status_mb('VmRSS')
    for _ in range(3):
        run(feeds)
    print(status_mb('VmHWM') - base)


def grow(model, shapes):
    """MB that the process grows by; None: the model does not take that."""
    config = {'model': model, 'threads': 1, 'shapes': shapes}
    p = subprocess.run([sys.executable, os.path.abspath(__file__), '--child', json.dumps(config)], capture_output=True, text=True)
    return float(p.stdout) if p.returncode == 0 else None


def parse_at(text, names):
    """'1x3x8x8' or 'a=1x8,b=1x8' as shapes."""
    if text is None:
        return None
    if len(names) == 1:
        return {names[0]: [int(d) for d in text.split('x')]}
    return {p.split('=')[0]: [int(d) for d in p.split('=')[1].split('x')] for p in text.split(',')}


def sizes(ranges, sides, seed):
    """Shapes without end: the upper corner, those of the bound, then random ones."""
    names = [n for n, _ in ranges]
    yield {n: [d[1] for d in dims] for n, dims in ranges}
    for side in sides:
        for key in ('peak_at', 'growth_at'):
            if side.get(key):
                yield parse_at(side[key], names)
    rng = random.Random(seed)
    while True:
        same = {}  # dimensions of one range are one: most models want that
        yield {n: [same.setdefault((k, d), rng.randrange(d[0], d[1] + 1, d[2])) for k, d in enumerate(dims)] for n, dims in ranges}


def measure(model, tiled, ranges, bound, args):
    """Rows of (shapes, MB untiled, MB tiled)."""
    rows, seen, refused = [], [], 0
    for shapes in sizes(ranges, (bound['untiled'], bound['tiled']), args.seed):
        if len(rows) == args.sizes or refused > 20 * args.sizes:
            return rows
        if shapes in seen:
            refused += 1
            continue
        seen.append(shapes)
        before, after = grow(model, shapes), grow(tiled, shapes)
        if (before is None) != (after is None):
            raise SystemExit(f'{shapes}: only one of both refuses it')
        if before is None:
            refused += 1
            continue
        rows.append((shapes, before, after))
        if args.v:
            print(f'  {shapes}: {before:.1f} {after:.1f} MB', flush=True)


def main():
    if sys.argv[1:2] == ['--child']:
        return child(json.loads(sys.argv[2]))
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--model', required=True)
    a.add_argument('--range', action='append', required=True)
    a.add_argument('--sizes', type=int, default=20)
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--args', default='--goal memory --threads 1')
    a.add_argument('--json')
    a.add_argument('-v', action='store_true')
    args = a.parse_args()
    name, failed = os.path.basename(args.model), 0
    with tempfile.TemporaryDirectory() as tmp:
        tiled = os.path.join(tmp, 'tiled.onnx')
        command = [args.tool, args.model, '-o', tiled, '--json', *shlex.split(args.args)] + [w for r in args.range for w in ('--range', r)]
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(f'{name}: {p.stderr.strip()[-300:]}')
        result = json.loads(p.stdout)
        rows = measure(args.model, tiled, [parse(r) for r in args.range], result['range'], args)
    for k, form in enumerate(('untiled', 'tiled')):
        side = result['range'][form]
        took = [r[1 + k] for r in rows]
        line = f"{name:28s} {form:8s} {side['verdict']:8s} {len(took)} sizes, largest {max(took):7.1f} MB"
        if 'growth_bytes' in side:
            bound = side['growth_bytes'] / MB
            over = [r[0] for r in rows if r[1 + k] > bound]
            failed += len(over)
            line += f", bound {bound:7.1f} MB: x{max(took) / bound:.2f} of it at the most, x{statistics.median(took) / bound:.2f} in the median"
            if over:
                line += f"; EXCEEDED at {over}"
        print(line, flush=True)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'model': name, 'range': result['range'], 'rows': rows}, f, indent=1)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
