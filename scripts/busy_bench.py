#!/usr/bin/env python3
"""A network of many small steps, while other processes want the cores, too.

  busy_bench.py [--tool build/onnx-tile]... [--threads N] [--rounds N] [--runs N] [--busy N] [--model F.onnx] [--json F]

Runs models/make_models.py's `depth` (some 150 steps), or a model of yours with float32 inputs of fixed shape, with each tool that is
named (several builds may be compared) and with ONNX Runtime, all with the same number of threads (2): first on the machine as it is,
then with N processes beside that never rest (--busy: one for each core). Runtimes take turns, a process each, `rounds` times; the
first tenth of the runs of a process is not counted (the engine: one run less).

Prints for each the median and the 90th percentile of a run in ms, the medians over all rounds of what each round said, and their
ratio to ONNX Runtime's. Exit 1 when the first tool, beside busy processes, has a median above ONNX Runtime's or a 90th percentile
above twice its own median. Times on a machine that others use are no more than a hint: look at the ratios.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'models')]

RUNTIME = 'ONNX Runtime'


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def run_runtime(path, threads, runs):
    """In a process of its own: times of runs in ms, as JSON on stdout."""
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.random(i.shape, np.float32) for i in session.get_inputs()}
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    times = times[runs // 10:]
    print(json.dumps({'median_seconds': statistics.median(times), 'p90_seconds': percentile(times, .9)}))


def measure(who, model, a):
    if who == RUNTIME:
        command = [sys.executable, os.path.abspath(__file__), '--runtime-only', model, '--threads', str(a.threads),
                   '--runs', str(a.runs)]
    else:
        command = [who, 'run', model, '--threads', str(a.threads), '--repeat', str(a.runs), '--json']
    out = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {'p50': out['median_seconds'] * 1e3, 'p90': out['p90_seconds'] * 1e3, 'steps': len(out.get('nodes', []))}


def rounds(a, model, who):
    found = {w: [] for w in who}
    for _ in range(a.rounds):
        for w in who:
            found[w].append(measure(w, model, a))
    return {w: {k: statistics.median(r[k] for r in found[w]) for k in ('p50', 'p90', 'steps')} for w in who}


def beside(n, work):
    """work() with n processes that never rest."""
    others = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(n)]
    try:
        return work()
    finally:
        for p in others:
            p.kill()
            p.wait()


def print_table(title, results):
    base = results[RUNTIME]
    print(f'{title}\n  {"":34s} {"median":>9s} {"p90":>9s} {"p90/median":>10s} {"median/ONNX Runtime":>20s}')
    for who, r in results.items():
        print(f'  {who[-34:]:34s} {r["p50"]:9.1f} {r["p90"]:9.1f} {r["p90"] / r["p50"]:10.2f} {r["p50"] / base["p50"]:20.2f}')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', action='append')
    p.add_argument('--threads', type=int, default=2)
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--runs', type=int, default=60)
    p.add_argument('--busy', type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument('--model')
    p.add_argument('--json')
    p.add_argument('--runtime-only', help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.runtime_only:
        run_runtime(a.runtime_only, a.threads, a.runs)
        return 0
    tools = a.tool or ['build/onnx-tile']
    with tempfile.TemporaryDirectory() as tmp:
        model = a.model
        if not model:
            import make_models
            import onnx
            model = os.path.join(tmp, 'depth.onnx')
            onnx.save(make_models.build('depth'), model)
        who = tools + [RUNTIME]
        quiet = rounds(a, model, who)
        busy = beside(a.busy, lambda: rounds(a, model, who))
    print(f'{quiet[tools[0]]["steps"]:.0f} steps, {a.threads} threads, {a.rounds} rounds of {a.runs} runs, times in ms')
    print_table('the machine as it is', quiet)
    print_table(f'with {a.busy} busy processes', busy)
    if a.json:
        with open(a.json, 'w') as f:
            json.dump({'quiet': quiet, 'busy': busy}, f, indent=1)
    first = busy[tools[0]]
    good = first['p50'] <= busy[RUNTIME]['p50'] and first['p90'] <= 2 * first['p50']
    print('within the aims' if good else 'NOT within the aims')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
