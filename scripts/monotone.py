#!/usr/bin/env python3
"""Does more of what a plan may use ever give a worse plan? Options are run upward over folders of models.

  monotone.py [--tool build/onnx-tile] [--target cpu-generic] [--limits slowdown,budget,fast] [--only TEXT]... [-v] FOLDER...

  slowdown   --goal memory with --max-slowdown 0 to 300
  budget     --memory-budget, 10 to 90 percent of what the untiled process takes, in both goals
  fast       --l2 128K to 16M, in both goals

A step back is a plan that is worse than one of a tighter limit: in seconds (goal time), in bytes that the process grows by (goal
memory) or takes in all (under a budget), in live ones where these are not known. A budget that is not kept (exit 3) is worse than any
plan. What is worse in one figure and better in the other that is weighed with it is counted apart ("traded"): growth and the whole
process with more slowdown; under a budget, less memory at a slowdown that goal memory does not take of itself; growth, the whole process
and time with a larger fast memory, where the untiled model is faster, too, from which --max-slowdown counts, and larger tiles as fast as
small ones.

A folder is read as its models.json says ("name", "file", "shapes", "dynamic"), else as its *.onnx. Each model ends a line with the
sums so far; closes with `N runs N steps back, N traded`; exit 1 when one is a step back.
"""
import argparse
import json
import os
import subprocess
import sys

from tool_time import models_of

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLOWDOWNS = [0, 5, 10, 20, 50, 100, 300]
SLOWDOWN = 0.1  # what goal memory allows of itself; a tight budget alone may go beyond
TENTHS = range(1, 10)
FAST = ['128K', '256K', '512K', '1M', '2M', '4M', '8M', '16M']
ABOUT = 1e-6  # figures are printed to so many digits


class Refused(Exception):
    """The limit cannot be kept, or nothing can be said of the model."""


def plan_of(o, model, options):
    args = [o.tool, 'inspect', model[1], '--json', '--target', o.target, *model[2], *options]
    r = subprocess.run(args, capture_output=True, text=True, check=False, env={**os.environ, 'ONNX_TILE_CACHE': 'off'})
    if r.returncode != 0:
        raise Refused(f'exit {r.returncode}: {r.stderr.strip()}')
    return json.loads(r.stdout)


def bytes_of(plan):
    t = plan['tiled']
    return t.get('growth_bytes') or t['peak_bytes']


def process_of(plan):
    return plan['tiled'].get('process_bytes') or plan['tiled']['peak_bytes']


def seconds_of(plan):
    return plan['tiled']['time_seconds']


class Upward:
    """Plans under limits that become looser. others: figures that a plan may be better in instead."""

    def __init__(self, measure, *others):
        self.measure, self.others, self.plans, self.runs, self.back, self.traded = measure, others, [], 0, [], []

    def take(self, said, plan):
        """plan None: refused."""
        self.runs += 1
        value = self.measure(plan) if plan else float('inf')
        figures = [other(plan) for other in self.others] if plan else []
        worse = [p for p in self.plans if value > p[1] * (1 + ABOUT)]
        both = [p for p in worse if all(f >= was * (1 - ABOUT) for f, was in zip(figures, p[2]))]
        if worse:
            least = min(both or worse, key=lambda p: p[1])
            (self.back if both else self.traded).append(f'{least[0]}: {least[1]:.9g} -> {said}: {value:.9g}')
        if plan:
            self.plans.append((said, value, figures))


def try_plan(o, model, options):
    try:
        return plan_of(o, model, options)
    except Refused:
        return None


def run_slowdowns(o, model):
    up = Upward(bytes_of, process_of)
    for s in SLOWDOWNS:
        up.take(f'--max-slowdown {s}', try_plan(o, model, ['--goal', 'memory', '--max-slowdown', str(s)]))
    return [up]


def run_budgets(o, model, untiled):
    whole = untiled.get('process_bytes') or untiled['peak_bytes']
    found = []

    def beyond(plan):
        return max(0, seconds_of(plan) / untiled['time_seconds'] - 1 - SLOWDOWN)

    for goal, measure in (('time', seconds_of), ('memory', process_of)):
        up = Upward(measure, *([beyond] if goal == 'memory' else []))
        for k in TENTHS:
            budget = str(int(whole * k / 10))
            up.take(f'goal {goal}, budget {k}0 %', try_plan(o, model, ['--goal', goal, '--memory-budget', budget]))
        found.append(up)
    return found


def run_fast(o, model):
    time, memory = Upward(seconds_of, bytes_of), Upward(bytes_of, seconds_of, process_of)
    for size in FAST:
        time.take(f'goal time, --l2 {size}', try_plan(o, model, ['--l2', size]))
        memory.take(f'goal memory, --l2 {size}', try_plan(o, model, ['--goal', 'memory', '--l2', size]))
    return [time, memory]


def run_model(o, model):
    untiled = plan_of(o, model, [])['untiled']
    if not untiled.get('peak_bytes'):
        raise Refused('sizes are not known')
    found = []
    if 'slowdown' in o.limits:
        found += run_slowdowns(o, model)
    if 'budget' in o.limits:
        found += run_budgets(o, model, untiled)
    if 'fast' in o.limits:
        found += run_fast(o, model)
    return found


def main():
    p = argparse.ArgumentParser(description='Options upward: no plan becomes worse.')
    p.add_argument('--tool', default=f'{ROOT}/build/onnx-tile')
    p.add_argument('--target', default='cpu-generic')
    p.add_argument('--limits', default='slowdown,budget,fast', type=lambda s: s.split(','))
    p.add_argument('--only', action='append', default=[])
    p.add_argument('-v', action='store_true', help='what is traded, too')
    p.add_argument('folders', nargs='+')
    o = p.parse_args()
    runs = back = traded = 0
    for m in [m for f in o.folders for m in models_of(f) if not o.only or any(t in m[0] for t in o.only)]:
        try:
            found = run_model(o, m)
        except Refused as why:
            print(f'{m[0]} left out: {why}', flush=True)
            continue
        for up in found:
            for line in up.back:
                print(f'{m[0]} step back, {line}', flush=True)
            for line in up.traded if o.v else []:
                print(f'{m[0]} traded, {line}', flush=True)
            runs, back, traded = runs + up.runs, back + len(up.back), traded + len(up.traded)
        print(f'{m[0]} done {runs} {back} {traded}', flush=True)
    print(f'{runs} runs {back} steps back, {traded} traded')
    sys.exit(1 if back else 0)


if __name__ == '__main__':
    main()
