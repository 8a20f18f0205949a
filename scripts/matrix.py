#!/usr/bin/env python3
"""Which runtime runs what the tool writes? Small networks in every output form, and models, in every runtime that is installed.

  matrix.py --tool PATH [--runtime NAME]... [--only NAME]... [--row NAME]... [--forms] [--models] [--write FOLDER [--add | --missing]]
            [--shared FOLDER] [--keep FOLDER] [--seconds N] [-v]

A cell compares the tiled model with the untiled one in the same runtime, each run in a process of its own with limits of time and memory:

  equal     same shapes and types, values within a part of the range of the output
  refused   it says that it cannot, or takes too long; its words are in matrix.json
  crashed   the process died
  wrong     other shapes or other values, without a word
  -         the runtime does not take the untiled model, or does not compute with it what ONNX Runtime does

--write puts the tables into FOLDER/matrix.md, between its markers, and FOLDER/matrix.json; with --add, cells that FOLDER/matrix.json has and
that are not run now stay as they are; with --missing, no other cells are run than those that it lacks, and those without an answer in time
stay empty: a machine with less to do may get one. Exit 1 when something is wrong that must not be: anything tiled for `portable`, in any
runtime; and what is written for a runtime, in that one.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import matrix_cases
import matrix_table

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, 'matrix_worker.py')
SECONDS = {'forms': 60, 'models': 120}              # that a run may take, with the runtime's compilation
LATE = 'no answer in time'
TOLERANCE = {'float16': 2e-2, 'bfloat16': 1e-1}      # of the largest value of an output; others:
TOLERANCE_COARSE = 5e-2                 # rounding to 8 bits, layer after layer
TOLERANCE_OTHER = 1e-3                  # algorithms that are chosen by shape (Winograd's) differ by so much

# Runtimes for which a setting of --runtime is made; '*': any.
MADE_FOR = {'onnxruntime': ('onnxruntime',), 'openvino': ('openvino',), 'loop': ('onnxruntime', 'mnn', 'opencv'), 'portable': ('*',)}


def runtimes_here():
    p = subprocess.run([sys.executable, WORKER, '--list'], capture_output=True, text=True, check=True)
    return json.loads(p.stdout)


def run_all(runtime, jobs, folder):
    """Answers in the order of the jobs. The worker may die of what it imported: then what is left is asked again, once for each job."""
    answers = []
    while len(answers) < len(jobs):
        path = os.path.join(folder, f'jobs-{runtime}.json')
        with open(path, 'w') as f:
            json.dump(jobs[len(answers):], f)
        p = subprocess.run([sys.executable, WORKER, runtime, path], capture_output=True, text=True)
        got = [json.loads(x) for x in p.stdout.splitlines() if x.startswith('{')]
        answers += got
        if len(answers) < len(jobs):
            answers.append({'crashed': f'exit {p.returncode}', 'words': p.stderr.strip()[-200:]})
    return answers


def outputs(path):
    with np.load(path, allow_pickle=False) as f:
        return [f[k] for k in f.files]


def difference(want, got, coarse=False):
    """'' when equal, else what differs, in words. coarse: models that round on the way."""
    if len(want) != len(got):
        return f'{len(got)} outputs of {len(want)}'
    for a, b in zip(want, got):
        if a.shape != b.shape:
            return f'shape {b.shape} for {a.shape}'
        if a.dtype != b.dtype:
            return f'type {b.dtype} for {a.dtype}'
        if a.size == 0:
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return 'values that are not finite'
        x, y = np.where(np.isfinite(x), x, 0), np.where(np.isfinite(y), y, 0)
        bound = (TOLERANCE_COARSE if coarse else TOLERANCE.get(a.dtype.name, TOLERANCE_OTHER)) * max(float(np.abs(x).max()), 1e-30)
        if a.dtype.kind in 'iu':
            bound = 1                  # a rounding of the last bit
        error = float(np.abs(x - y).max())
        if error > bound:
            return f'values differ by {error / max(float(np.abs(x).max()), 1e-30):.1g} of their range'
    return ''


def close(want, got, coarse):
    """Whether a runtime computes about what ONNX Runtime does; types of integers may differ. coarse: models that round on the way."""
    if len(want) != len(got):
        return False
    for a, b in zip(want, got):
        if a.shape != b.shape or not a.size:
            return a.shape == b.shape
        x, y = np.nan_to_num(a.astype(np.float64)), np.nan_to_num(b.astype(np.float64))
        if float(np.abs(x - y).max()) > (5e-2 if coarse else 5e-3) * max(float(np.abs(x).max()), 0.1):
            return False
    return True


def words_of(answer):
    if 'crashed' in answer:
        return f"{answer['crashed']}: {matrix_table.shorten(answer.get('words') or 'no words')}"
    words = answer['refused']
    if words.endswith('no file') and answer.get('words'):
        words = answer['words']
    return LATE if words == 'time' else matrix_table.shorten(words)


def tell(runtime, results, verbose):
    counts = {v: sum(r['verdict'] == v for r in results) for v in ('equal', 'refused', 'crashed', 'wrong', '-')}
    print(f'{runtime:12s} ' + ', '.join(f'{n} {v}' for v, n in counts.items() if n), flush=True)
    for r in results:
        if verbose or r['verdict'] in ('wrong', 'crashed'):
            print(f"   {r['verdict']:8s} {r['row']:24s} {r['network']:24s} {r['words']}", flush=True)


def job(model, case, out):
    return {'model': model, 'feeds': case['feeds'], 'out': out, 'seconds': SECONDS[case['table']]}


def judge(runtime, cases, folder, truth):
    """Results of one runtime, and outputs of the untiled models by path. truth: those of ONNX Runtime; empty in its own turn."""
    sub = os.path.join(folder, runtime)
    os.makedirs(sub, exist_ok=True)
    out_of = lambda path: os.path.join(sub, os.path.basename(path) + '.npz')
    plains = {c['plain']: c for c in cases}
    answers = dict(zip(plains, run_all(runtime, [job(p, c, out_of(p)) for p, c in plains.items()], sub)))
    want = {p: outputs(out_of(p)) for p, a in answers.items() if a.get('ran')}
    takes = {p: p in want and (p not in truth or close(truth[p], want[p], c['coarse'])) for p, c in plains.items()}
    tried = [c for c in cases if takes[c['plain']]]
    got = dict(zip((c['tiled'] for c in tried), run_all(runtime, [job(c['tiled'], c, out_of(c['tiled'])) for c in tried], sub)))
    results = []
    for c in cases:
        answer, words = got.get(c['tiled']), ''
        if answer is None:
            verdict = '-'
            plain = answers[c['plain']]
            words = 'untiled: ' + ('other values than ONNX Runtime' if plain.get('ran') else words_of(plain))
        elif not answer.get('ran'):
            verdict, words = ('crashed' if 'crashed' in answer else 'refused'), words_of(answer)
        else:
            words = difference(want[c['plain']], outputs(out_of(c['tiled'])), c['coarse'])
            verdict = 'wrong' if words else 'equal'
        results.append({'table': c['table'], 'row': c['row'], 'network': c['network'], 'runtime': runtime, 'verdict': verdict, 'words': words})
    return results, want


def must_not(result, portable):
    """true: this cell is wrong, or the process died, and the tool would write such a model for this runtime."""
    if result['verdict'] not in ('wrong', 'crashed'):
        return False
    if result['table'] == 'models':
        return portable or result['runtime'] == 'onnxruntime'
    setting = result['row'].removeprefix('--runtime ') if result['row'].startswith('--runtime ') else 'onnxruntime'
    made_for = MADE_FOR.get(setting, ())
    return made_for == ('*',) and result['verdict'] == 'wrong' or result['runtime'] in made_for


def reproduced():
    """What tests/runtimes still shows."""
    script = os.path.join(matrix_cases.ROOT, 'tests', 'runtimes', 'run_all.py')
    if not os.path.exists(script):
        return []
    p = subprocess.run([sys.executable, script, '--json'], capture_output=True, text=True, check=True)
    return json.loads(p.stdout)


def key_of(cell):
    return cell['table'], cell['row'], cell['network']


def merged(old, new):
    """The runtimes and cells of two runs, those of the new one in place of the same ones; in the order of the old tables."""
    cells = {key_of(r) + (r['runtime'],): {**r, 'words': r.get('words', '')} for r in old['results']}
    cells.update({key_of(r) + (r['runtime'],): r for r in new['results']})
    rows = {k: n for n, k in enumerate(dict.fromkeys((r['table'], r['row']) for r in old['results'] + new['results']))}
    new['results'] = sorted(cells.values(), key=lambda r: rows[r['table'], r['row']])
    new['runtimes'] = {**old['runtimes'], **new['runtimes']}
    return new


def headings(portable):
    return [('forms', 'output form',
             f'{len(matrix_cases.NETWORKS)} small networks (opset {matrix_cases.OPSET}), tiled by `{" ".join(matrix_cases.NETWORK_ARGS)}`, each form '
             'forced through where it is legal, then each `--runtime` as it chooses:'),
            ('models', 'model', 'Models, tiled by `' + ' '.join(matrix_cases.MODEL_ARGS + (['--runtime', 'portable'] if portable else [])) + '`:')]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tool', required=True)
    ap.add_argument('--runtime', action='append', help='only these, of the worker')
    ap.add_argument('--only', action='append', help='only these networks or models')
    ap.add_argument('--row', action='append', help='only these rows: a form, a setting of --runtime, a model')
    ap.add_argument('--forms', action='store_true', help='only the networks')
    ap.add_argument('--models', action='store_true', help='only the models')
    ap.add_argument('--write', help='folder of matrix.md and matrix.json')
    ap.add_argument('--add', action='store_true', help='what FOLDER/matrix.json has besides stays')
    ap.add_argument('--missing', action='store_true', help='run what FOLDER/matrix.json lacks')
    ap.add_argument('--shared', default=os.path.join(matrix_cases.ROOT, '..', 'shared'), help='folder of further models')
    ap.add_argument('--keep', help='folder for models and outputs')
    ap.add_argument('--seconds', type=int, help='that a run may take; ' + ', '.join(f'{v} for {k}' for k, v in SECONDS.items()))
    ap.add_argument('-j', dest='jobs', type=int, default=os.cpu_count() or 1, help='runtimes at a time')
    ap.add_argument('-v', action='store_true', help='every cell')
    a = ap.parse_args()
    if (a.add or a.missing) and not a.write:
        ap.error('--add and --missing ask for --write')
    if a.seconds:
        SECONDS.update(dict.fromkeys(SECONDS, a.seconds))
    old = {'runtimes': {}, 'results': []}
    if a.add or a.missing:
        with open(os.path.join(a.write, 'matrix.json'), encoding='utf-8') as f:
            old = json.load(f)
    tool = matrix_cases.Tool(os.path.abspath(a.tool))
    here = runtimes_here()
    chosen = {k: v for k, v in here.items() if not a.runtime or k in a.runtime or k == 'onnxruntime'}
    with tempfile.TemporaryDirectory() as tmp:
        folder = os.path.abspath(a.keep) if a.keep else tmp
        os.makedirs(folder, exist_ok=True)
        cases = []
        if not a.models:
            cases += matrix_cases.network_cases(tool, folder, a.only)
        if not a.forms:
            cases += matrix_cases.model_cases(tool, folder, a.shared, a.only)
        cases = [c for c in cases if not a.row or c['row'] in a.row]
        known = {key_of(r) + (r['runtime'],) for r in old['results']} if a.missing else set()
        lacks = lambda runtime: [c for c in cases if key_of(c) + (runtime,) not in known]
        others = [r for r in chosen if r != 'onnxruntime']
        cases = [c for c in cases if any(key_of(c) + (r,) not in known for r in chosen)]
        results, truth = judge('onnxruntime', cases, folder, {})
        tell('onnxruntime', results, a.v)
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            for runtime, (some, _) in zip(others, pool.map(lambda r: judge(r, lacks(r), folder, truth), others)):
                tell(runtime, some, a.v)
                results += [r for r in some if not a.missing or r['words'] != LATE]
    portable = 'portable' in tool.runtimes
    result = {'runtimes': chosen, 'headings': headings(portable), 'results': results, 'bugs': old.get('bugs') or (reproduced() if a.write else [])}
    if a.write:
        result = merged(old, result)
        matrix_table.write_page(os.path.join(a.write, 'matrix.md'), result)
        matrix_table.write_json(os.path.join(a.write, 'matrix.json'), result)
    bad = [r for r in results if must_not(r, portable)]
    for e in tool.errors:
        print(f'FAIL: {e}')
    for r in bad:
        print(f"FAIL: {r['row']}, {r['network']} in {r['runtime']}: {r['verdict']} ({r['words']})")
    print(f'{len(results)} cells, {len(bad)} that must not be')
    return 1 if bad or tool.errors or not results else 0


if __name__ == '__main__':
    sys.exit(main())
