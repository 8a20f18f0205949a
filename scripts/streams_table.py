#!/usr/bin/env python3
"""Streaming against tiles with halos: what does the plan that hands rows on take, and what would tiles alone have taken?

  streams_table.py --tool TOOL --models DIR [--mode onnx|engine] [--only GLOB]... [--rounds N] [--args "--goal memory --threads 1"] [--json FILE]

Each model of DIR (models.json with file, name, shapes, dynamic; else every .onnx there) is planned as usual, and where a region of that plan
streams, once more with --no-streams. Measured in turns: the untiled model, streams, tiles. Mode onnx: stock ONNX Runtime, one thread, growth of
the process and its processor time; engine: `run`, planned bytes and its least time. MACs are the plan's. A ratio is to the untiled model; the last
columns are streams to tiles. Exit 1 where outputs differ (normalised mean square error above 1e-8, half precision 1e-4; engine: not compared), or
streams take more memory than tiles by more than 2 % and 2 MB, or more time by more than SLACK.
"""
import argparse
import fnmatch
import json
import math
import shlex
import subprocess
import sys
import tempfile

from compare import Side, error_of
from dynamic_truth import half
from memory_truth import cases

MB = 1 << 20
NOISE_MB = 2
SLACK = {'memory': 1.02, 'time': 1.05}  # what one run differs from the next


def tile(tool, model, out, words):
    """The plan, as the tool says it."""
    p = subprocess.run([tool, model, '-o', out, '--json', *words], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip()[-200:])
    return json.loads(p.stdout)


def hands_rows_on(plan):
    return sum(r['form'] == 'stream' for r in plan['regions'])


def run_onnx(models, shapes, rounds, tmp):
    """(MB, seconds of processor time, file of outputs) of each."""
    files = [f'{tmp}/{k}.npz' for k in range(len(models))]
    sides = [Side(model=m, threads=1, shapes=shapes, seed=0, outputs=f) for m, f in zip(models, files)]
    facts = [[] for _ in models]
    for _ in range(rounds):
        for side, out in zip(sides, facts):
            out.append(side.run())
    for side in sides:
        side.close()
    return [(max(f['peak_mb'] for f in fs), min(f['cpu_seconds'] for f in fs), file) for fs, file in zip(facts, files)]


def run_engine(tool, models, shapes, rounds):
    facts = [[] for _ in models]
    words = [w for v, s in shapes.items() for w in ('--shape', v + '=' + ','.join(map(str, s)))]
    for _ in range(rounds):
        for model, out in zip(models, facts):
            p = subprocess.run([tool, 'run', model, '--json', '-q', '--threads', '1', '--repeat', '2', *words], capture_output=True, text=True)
            if p.returncode:
                raise RuntimeError(p.stderr.strip()[-200:])
            out.append(json.loads(p.stdout))
    return [(fs[0]['peak_bytes'] / MB, min(f['least_seconds'] for f in fs), None) for fs in facts]


def look(case, o):
    """Facts of one model; None: none of its regions streams."""
    name, path, shapes, dynamic = case
    with tempfile.TemporaryDirectory() as tmp:
        words = shlex.split(o.args) + [w for v in shapes if v in dynamic for w in ('--shape', v + '=' + ','.join(map(str, shapes[v])))]
        words += ['--emit', 'engine'] if o.mode == 'engine' else []
        models = [path, f'{tmp}/streams.onnx', f'{tmp}/tiles.onnx']
        streams = tile(o.tool, path, models[1], words)
        if not hands_rows_on(streams):
            return None
        tiles = tile(o.tool, path, models[2], words + ['--no-streams'])
        if hands_rows_on(tiles):
            raise RuntimeError('--no-streams: a region streams')
        bound = {v: s for v, s in shapes.items() if v in dynamic}
        facts = run_onnx(models, shapes, o.rounds, tmp) if o.mode == 'onnx' else run_engine(o.tool, models, bound, o.rounds)
        error = max(error_of(facts[0][2], f[2]) for f in facts[1:]) if o.mode == 'onnx' else 0
        if error > (1e-4 if half(path) else 1e-8):
            raise RuntimeError(f'outputs differ by {error:.0e}')
        mb, s = [f[0] for f in facts], [f[1] for f in facts]
        return {'name': name, 'mb': mb, 'seconds': s, 'regions': [hands_rows_on(streams), len(streams['regions'])],
                'macs': [p['tiled']['macs'] / p['untiled']['macs'] for p in (streams, tiles)],
                'memory': mb[1] / mb[2], 'time': s[1] / s[2], 'fits': mb[1] <= max(mb[2] * SLACK['memory'], mb[2] + NOISE_MB) and s[1] <= s[2] * SLACK['time']}


def show(r):
    of = lambda k: f"{r['mb'][k]:7.1f} MB (x{r['mb'][k] / r['mb'][0]:.3f}) at x{r['seconds'][k] / r['seconds'][0]:.2f}, MACs x{r['macs'][k - 1]:.3f}"
    print(f"{r['name']:22s} untiled {r['mb'][0]:7.1f} MB {r['seconds'][0] * 1e3:7.0f} ms   streams ({r['regions'][0]} of {r['regions'][1]} regions) {of(1)}   tiles {of(2)}   "
          f"streams to tiles: memory x{r['memory']:.2f}, time x{r['time']:.2f}{'' if r['fits'] else '  ABOVE'}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', required=True)
    p.add_argument('--models', required=True)
    p.add_argument('--mode', choices=['onnx', 'engine'], default='onnx')
    p.add_argument('--only', action='append')
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--args', default='--goal memory --threads 1')
    p.add_argument('--json')
    o = p.parse_args()
    rows, others, failed = [], [], 0
    for case in cases(o.models):
        if o.only and not any(fnmatch.fnmatch(case[0], g) for g in o.only):
            continue
        try:
            r = look(case, o)
        except RuntimeError as e:
            print(f'{case[0]:22s} FAILED {e}', flush=True)
            failed += 1
            continue
        if r is None:
            others.append(case[0])
            continue
        rows.append(r)
        show(r)
    if others:
        print('nothing streams: ' + ', '.join(others))
    if rows:
        geo = lambda key: math.exp(sum(math.log(r[key]) for r in rows) / len(rows))
        print(f"{len(rows)} models stream; streams to tiles: memory x{geo('memory'):.2f}, time x{geo('time'):.2f} in the geometric mean; "
              f"MACs x{max(r['macs'][0] for r in rows):.3f} at the most (tiles x{max(r['macs'][1] for r in rows):.3f}); {sum(not r['fits'] for r in rows)} above tiles")
    if o.json:
        with open(o.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    return 1 if failed or not all(r['fits'] for r in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
