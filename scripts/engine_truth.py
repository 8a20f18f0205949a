#!/usr/bin/env python3
"""Does the engine take the memory of values that is reported, and never more for goal memory?

  engine_truth.py --tool TOOL [--models DIR]... [--only GLOB]... [--threads 1,2] [--args "..."] [--json FILE]

Models as memory_truth.py finds them. Each is planned with `--emit engine --goal memory` for each number of threads, and runs once untiled and
once tiled. A row is wrong where a counter is negative, where a run takes more than 5 % more or less than was planned when it was loaded (sizes
that depend on data are left out of that), where what the tool predicts for the tiled file (`tiled.growth_bytes`) is more than 5 % away from
that, or where tiles take more than the untiled model. Exit status 1: a row is wrong.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

from memory_truth import chosen

MB = 1 << 20
COUNTERS = 'peak_bytes', 'planned_peak_bytes', 'weight_bytes', 'resident_bytes'
ABOUT = 0.05
SMALL = 64 << 10  # rounding of places to whole lines counts below


class Failed(Exception):
    """A command that failed, in its own words."""


def output_of(command):
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        raise Failed(p.stderr.strip()[-120:])
    return json.loads(p.stdout)


def taken(tool, model, threads, bind):
    r = output_of([tool, 'run', model, '--as-is', '--threads', str(threads), '--json', *bind])
    return {k: r[k] for k in COUNTERS}


def look(case, threads, args):
    """What was reported and taken, untiled and tiled, or why not."""
    name, path, shapes, dynamic = case
    row = {'name': name, 'threads': threads}
    bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, 'tiled.onnx')
        try:
            plan = output_of([args.tool, path, '-o', out, '--emit', 'engine', '--goal', 'memory', '--threads', str(threads), '--json', *bind,
                              *shlex.split(args.args)])
            row['regions'] = len(plan['regions'])
            row['reported'] = {k: plan[k].get('growth_bytes') for k in ('untiled', 'tiled')}
            row['untiled'] = taken(args.tool, path, threads, bind)
            row['tiled'] = taken(args.tool, out, threads, bind)
        except Failed as error:
            row['why'] = str(error)
    return row


def apart(a, b):
    return abs(a - b) > max(ABOUT * max(a, b), SMALL)


def faults(r):
    """What is wrong with a row."""
    if 'why' in r:
        return []
    sides = [(side, r[side]) for side in ('untiled', 'tiled')]
    wrong = [f'{side}: {k} is {x[k]}' for side, x in sides for k in COUNTERS if x[k] < 0]
    known = r['reported']['tiled'] is not None and all(x['planned_peak_bytes'] > 0 for _, x in sides)
    wrong += [f'{side}: planned and taken differ' for side, x in sides if known and apart(x['planned_peak_bytes'], x['peak_bytes'])]
    if known and r['regions'] > 0 and apart(r['reported']['tiled'], r['tiled']['peak_bytes']):
        wrong.append('predicted and taken differ')
    if r['tiled']['peak_bytes'] > r['untiled']['peak_bytes']:
        wrong.append('tiles take more')
    return wrong


def show(r):
    if 'why' in r:
        return f"{r['name']:32s} {r['threads']}  {r['why']}"
    mb = [(r['reported'][k] or 0) / MB for k in ('untiled', 'tiled')], [r[k]['peak_bytes'] / MB for k in ('untiled', 'tiled')]
    row = f"{r['name']:32s} {r['threads']}  predicted {mb[0][0]:8.2f} -> {mb[0][1]:8.2f}  taken {mb[1][0]:8.2f} -> {mb[1][1]:8.2f} MiB  regions {r['regions']}"
    return row + ''.join('; WRONG: ' + w for w in faults(r))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--models', action='append', required=True)
    a.add_argument('--only', action='append')
    a.add_argument('--threads', default='1,2')
    a.add_argument('--args', default='')
    a.add_argument('--json')
    args = a.parse_args()
    rows = []
    for case in chosen(args):
        for threads in map(int, args.threads.split(',')):
            rows.append(look(case, threads, args))
            print(show(rows[-1]), flush=True)
    ran = [r for r in rows if 'why' not in r]
    bad = sum(bool(faults(r)) for r in ran)
    print(f'{len(ran)} runs, {len(rows) - len(ran)} did not, {bad} wrong')
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())
