#!/usr/bin/env python3
"""Random graphs: the tiled model must give what the original gives.

  random_graphs.py [--tool build/onnx-tile] [--engine] [--start S] [--seeds N] [--jobs J] [--keep DIR] [-v]
  random_graphs.py --seed S [--engine] [--shrink] [-v]            one graph again

Each seed grows a graph (graph_gen.py, graph_ops.py), picks options for the tool (a small --l2, a goal, a form, a target, mostly
--force), runs it, and demands: exit 0; onnx.checker full_check wherever the original passes it; the same inputs and outputs;
every output equal in ONNX Runtime: integers exactly, floats within NMSE 1e-8 and 1e-3 of the largest value, NaN and infinities
in the same places. Every eighth result goes through the tool a second time. A graph on which ONNX Runtime disagrees with
itself (optimised against not) is skipped and counted. With --engine the native engine runs each graph, too: untiled against
ONNX Runtime, tiled with --emit engine against untiled (engine_form.py).

A failure prints its seed and leaves original, tiled model, command and reason in KEEP/seed_N, with the smallest part of the
graph that still fails. Ends with 'N passed, N failed, ...'.
"""
import argparse
import collections
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import numpy as np  # noqa: E402
import onnx  # noqa: E402

import engine_form  # noqa: E402
import graph_gen  # noqa: E402
from comparing import Failed, differences, tile  # noqa: E402

def options(seed, g):
    """The tool's arguments, and the inputs whose dimensions are bound by --shape."""
    rng = np.random.default_rng([seed, 7])
    pick = lambda items: items[int(rng.integers(len(items)))]
    args = ['--l2', pick(['1K', '2K', '4K', '8K', '16K', '32K', '64K', '128K']), '--target', pick(['cpu-generic', 'cpu-generic', 'ascend-a2', 'mcu-512k', 'tlf-16m'])]
    if rng.random() < 0.92:
        args += ['--force']
    args += ['--goal', pick(['time', 'memory'])]
    form = pick([None, None, 'scan', 'unrolled', 'loop-peeled', 'loop', 'prescan'])
    if form:
        args += ['--form', form]
    if rng.random() < 0.2:
        args += ['--threads', str(pick([1, 2, 8]))]
    if rng.random() < 0.1:
        args += ['--no-tie-break']
    # with ceil_mode, a pool's shape is one thing in a file with open dimensions and another once they are known
    ceil = any(a.name == 'ceil_mode' for n in g.nodes for a in n.attribute)
    dynamic = list(g.inputs) if rng.random() < 0.12 and not ceil else []
    return args, dynamic


def regions_of(model):
    names = set()

    def walk(g):
        for n in g.node:
            part = n.name.split('/')
            if len(part) > 2 and part[0] == 'tile':
                names.add(part[1])
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    walk(a.g)
    walk(model.graph)
    return len(names)


def passes_checker(path):
    try:
        onnx.checker.check_model(path, full_check=True)
        return ''
    except Exception as e:
        return str(e).strip().splitlines()[0][:300]


def interface(s):
    return ([(i.name, i.type) for i in s.get_inputs()], [(o.name, o.type) for o in s.get_outputs()],
            [i.name for i in s.get_overridable_initializers()])


def check_model(tool, model, g, args, dynamic, folder, twice=False, engine=0):
    """'ok', 'skipped: ...' and the number of regions; raises Failed. twice: the tool then reads what it wrote. engine: threads on which
    the native engine runs the model, too, untiled and tiled; 0: it does not."""
    original, tiled = os.path.join(folder, 'model.onnx'), os.path.join(folder, 'tiled.onnx')
    with open(original, 'wb') as f:
        f.write(model.SerializeToString())
    feeds = g.feeds(model)
    try:
        s = graph_gen.session(original)
        want = s.run(None, feeds)
        plain = graph_gen.session(original, optimise=False).run(None, feeds)
    except Exception as e:
        return f'skipped: {str(e).splitlines()[0][:160]}', 0
    names = [o.name for o in model.graph.output]
    if differences(names, want, plain):
        return 'skipped: ONNX Runtime disagrees with itself', 0
    if os.path.exists(tiled):
        os.remove(tiled)
    command = tile(tool, original, tiled, args, dynamic)
    with open(os.path.join(folder, 'command.txt'), 'w') as f:
        f.write(shlex.join(command) + '\n')
    if twice:
        once = os.path.join(folder, 'once.onnx')
        os.rename(tiled, once)
        tile(tool, once, tiled, args, [])
    result = onnx.load(tiled)
    if not passes_checker(original):
        why = passes_checker(tiled)
        if why:
            raise Failed('onnx.checker: ' + why)
    try:
        t = graph_gen.session(tiled)
    except Exception as e:
        raise Failed(f'ONNX Runtime does not load it: {str(e).splitlines()[0][:400]}') from None
    if interface(s) != interface(t):
        raise Failed(f'the interface changed: {interface(s)} became {interface(t)}')
    for optimised in (True, False):
        try:
            run = t if optimised else graph_gen.session(tiled, optimise=False)
            got = run.run(None, feeds)
        except Exception as e:
            raise Failed(f'ONNX Runtime does not run it: {str(e).splitlines()[0][:400]}') from None
        why = differences(names, want if optimised else plain, got)
        if why:
            raise Failed(why + ('' if optimised else ' (no optimisation)'))
    inside = 0
    if engine:
        # where a scale gives 4.5 elements, ONNX Runtime computes with 4, the definition and the engine with 4.5
        known = [] if g.uneven_resize else [want, plain]
        inside = engine_form.check(tool, original, dynamic, args, feeds, names, known, folder, engine)
        if inside is None:
            return 'ok: the engine lacks an operator', regions_of(result)
    return 'ok', regions_of(result) + inside


def shrink(tool, g, args, dynamic, folder, engine):
    """The smallest part of the graph with one output that fails as well; left in folder/small."""
    small = os.path.join(folder, 'small')
    os.makedirs(small, exist_ok=True)
    for v in g.values[len(g.inputs):]:
        model = g.model([v], {d.name for d in dynamic})
        try:
            check_model(tool, model, g, args, [d for d in dynamic if d.name in {i.name for i in model.graph.input}], small, engine=engine)
        except Failed as e:
            return f'{len(model.graph.node)} nodes, output {v.name}: {e}'
    return 'only the whole graph fails'


def check_seed(tool, seed, keep, opset=None, steps=None, extra=(), small=True, engine=False):
    g = graph_gen.grow(seed, steps, opset)
    if not g.steps:
        return 'skipped: nothing grew', 0, g
    args, dynamic = options(seed, g)
    args += extra
    model = g.model(dynamic={v.name for v in dynamic})
    bound = [v for v in dynamic if v.name in {i.name for i in model.graph.input}]
    threads = (1 + seed % 3) * engine
    with tempfile.TemporaryDirectory() as tmp:
        try:
            verdict, regions = check_model(tool, model, g, args, bound, tmp, seed % 8 == 0, threads)
            return verdict, regions, g
        except Failed as e:
            folder = os.path.join(keep, f'seed_{seed}')
            os.makedirs(folder, exist_ok=True)
            for name in os.listdir(tmp):
                if not os.path.isfile(os.path.join(tmp, name)):
                    continue
                with open(os.path.join(tmp, name), 'rb') as a, open(os.path.join(folder, name), 'wb') as b:
                    b.write(a.read())
            why = str(e)
            if small:
                why += '\n    smallest: ' + shrink(tool, g, args, bound, folder, threads)
            with open(os.path.join(folder, 'why.txt'), 'w') as f:
                f.write(f'{why}\nopset {g.opset}, ir {g.ir}, options {shlex.join(args)}\nsteps {" ".join(g.steps)}\n')
            return f'FAIL {why}\n    options {shlex.join(args)}; steps {" ".join(g.steps)}', 0, g


# ---- many ----

def worker(o):
    for seed in json.load(sys.stdin):
        print(json.dumps([seed, 'started', 0, 0]), flush=True)
        try:
            verdict, regions, g = check_seed(o.tool, seed, o.keep, engine=o.engine)
            opset = g.opset
        except Exception as e:
            verdict, regions, opset = f'FAIL the test itself: {type(e).__name__} {e}', 0, 0
        print(json.dumps([seed, verdict, regions, opset]), flush=True)


def run_many(o, seeds):
    """Each job is a process of its own; one that dies (ONNX Runtime crashed) counts against the seed it was at."""
    counts, skips, total = collections.Counter(), collections.Counter(), 0
    lines, lock = [], threading.Lock()

    def follow(mine):
        """Work through `mine`; a new process after each that died."""
        while mine:
            p = subprocess.Popen([sys.executable, os.path.abspath(__file__), '--worker', '--tool', o.tool, '--keep', o.keep] + ['--engine'] * o.engine,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            p.stdin.write(json.dumps(mine))
            p.stdin.close()
            at = mine[0]
            for line in p.stdout:
                seed, verdict, regions, opset = json.loads(line)
                if verdict == 'started':
                    at = seed
                    continue
                mine = mine[1:]
                with lock:
                    lines.append((seed, verdict, regions))
                    if verdict.startswith('FAIL') or o.v:
                        print(f'seed {seed} (opset {opset}): {verdict} {regions} regions', flush=True)
            p.wait()
            if mine:
                mine = mine[1:]
                with lock:
                    lines.append((at, 'FAIL died', 0))
                    print(f'seed {at}: FAIL the process died ({p.returncode})', flush=True)
    threads = [threading.Thread(target=follow, args=(seeds[k::o.jobs],)) for k in range(o.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    lacking = 0
    for _, verdict, regions in lines:
        kind = verdict.split()[0].strip(':')
        counts[kind] += 1
        total += regions
        if kind == 'skipped':
            skips[verdict[9:60]] += 1
        lacking += verdict.startswith('ok:')
    for why, n in skips.most_common(8):
        print(f'  skipped {n}: {why}')
    if lacking:
        print(f'  {lacking} not run by the engine: it lacks an operator')
    print(f'random graphs: {counts["ok"]} passed, {counts["FAIL"]} failed, {counts["skipped"]} skipped; {total} tiled regions')
    enough = counts['ok'] * 2 >= len(seeds) and total >= counts['ok'] // 2 and lacking * 2 <= counts['ok']
    if not enough:
        print('too few graphs were tiled and compared for this to mean anything')
    return 0 if counts['FAIL'] == 0 and enough else 1


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--start', type=int, default=1)
    p.add_argument('--seeds', type=int, default=300)
    p.add_argument('--jobs', type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument('--keep', default='build/random')
    p.add_argument('--seed', type=int)
    p.add_argument('--opset', type=int)
    p.add_argument('--engine', action='store_true')
    p.add_argument('--shrink', action='store_true')
    p.add_argument('--worker', action='store_true')
    p.add_argument('-v', action='store_true')
    o = p.parse_args()
    o.tool, o.keep = os.path.abspath(o.tool), os.path.abspath(o.keep)
    if o.worker:
        return worker(o)
    if o.seed is not None:
        verdict, regions, g = check_seed(o.tool, o.seed, o.keep, o.opset, small=o.shrink, engine=o.engine)
        print(f'seed {o.seed} opset {g.opset} ir {g.ir}: {verdict}, {regions} regions; steps {" ".join(g.steps)}')
        if o.v:
            for k, why in getattr(g, 'rejected', {}).items():
                print(f'  rejected {k}: {why}')
        return 1 if verdict.startswith('FAIL') else 0
    return run_many(o, list(range(o.start, o.start + o.seeds)))


if __name__ == '__main__':
    sys.exit(main())
