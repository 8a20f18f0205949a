#!/usr/bin/env python3
"""Every operator, every element type, every way to tile: what ONNX Runtime loads untiled it loads tiled, and computes the same.

  sweep.py [--tool PROGRAM] [--only GLOB]... [--mode NAME]... [--set ops|node|simple|light]... [--jobs N] [--part K/N] [-v]
  sweep.py [--tool PROGRAM] --once | --missing

Sets: ops, one model for each operator that has a slice relation and each type (sweep_cases.py); node, simple and light, the models that come with
the onnx package, with its inputs. Modes: those of MODES. A model that ONNX Runtime does not run untiled, or the checker refuses, is skipped.
Then the tool must exit with 0, the checker must take what it wrote, in full where it takes the original so, and ONNX Runtime (with --emit
engine the tool's own engine, which may refuse a type or an operator that it does not have) must compute what it computed before. Numbers
are equal to the bit but for floating point, within TOLERANCE of the largest.

--once: each operator once, of the first type that ONNX Runtime runs it with, in one mode, by turns. An operator without a case that runs, and
without a reason (UNTRIED in sweep_cases.py), is a failure, and so is a reason of one that runs. --missing: operators without case and reason.

Closes with a line for each failure, a count by operator and type, and `N models, N runs, N tiled, N skipped, N failed`; exit 1 when one failed.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import itertools
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx

import sweep_cases

MODES = {
    'default': [],
    'memory': ['--goal', 'memory'],
    'force': ['--force', '--l2', '16K'],
    'portable': ['--runtime', 'portable', '--force', '--l2', '16K'],
    'engine': ['--emit', 'engine', '--force', '--l2', '16K'],
}
SETS = ['ops', 'node', 'simple', 'light']
TOLERANCE = {'float16': 4e-3, 'bfloat16': 3e-2}  # of the largest number; others: 2e-5
SECONDS = 120


class Model:
    """What is tried: a model, and inputs by name (None: random numbers)."""

    def __init__(self, name, op, dtype, proto, feeds=None):
        self.name, self.op, self.type, self.proto, self.feeds = name, op, dtype, proto, feeds


def models(which, only):
    """All that is asked for, one after the other."""
    def wanted(name): return not only or any(fnmatch.fnmatch(name, g) for g in only)
    if 'ops' in which:
        for case in sweep_cases.cases():
            if wanted(case.name): yield Model(case.name, case.op, case.type, case.model())
    for kind in which:
        if kind != 'ops': yield from packaged(kind, wanted)


def packaged(kind, wanted):
    """Models of the onnx package."""
    if kind == 'light':
        folder = os.path.join(os.path.dirname(onnx.__file__), 'backend', 'test', 'data', 'light')
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if file.endswith('.onnx') and wanted(file): yield Model(file, kind, '', onnx.load(os.path.join(folder, file)))
        return
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from onnx.backend.test.loader import load_model_tests
        tests = load_model_tests(kind=kind)
    for test in tests:
        if not wanted(test.name): continue
        proto = test.model if test.model is not None else onnx.load(os.path.join(test.model_dir, 'model.onnx'))
        initial = {i.name for i in proto.graph.initializer}
        names = [i.name for i in proto.graph.input if i.name not in initial or proto.ir_version >= 4]
        feeds = dict(zip(names, test.data_sets[0][0])) if test.data_sets else None
        yield Model(test.name, next((n.op_type for n in proto.graph.node[::-1]), ''), '', proto, feeds)


def session(path):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.log_severity_level, o.intra_op_num_threads = 4, 1
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])


def random_feeds(s):
    rng, feeds = np.random.default_rng(0), {}
    for i in s.get_inputs():
        extents = [e if isinstance(e, int) else 1 for e in i.shape]
        kinds = {'tensor(float)': 'f4', 'tensor(double)': 'f8', 'tensor(float16)': 'f2', 'tensor(int64)': 'i8', 'tensor(int32)': 'i4'}
        feeds[i.name] = (rng.standard_normal(extents) * 2).astype(kinds[i.type])
    return feeds


def difference(got, want, dtype=''):
    """What is not equal; '' for nothing. dtype: what was computed with, where that is less exact than what it left as."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want): return 'another sequence'
        return next((d for d in (difference(g, w, dtype) for g, w in zip(got, want)) if d), '')
    if want is None or not isinstance(want, np.ndarray): return '' if str(got) == str(want) else 'another value'
    if got.shape != want.shape: return f'shape {got.shape}, not {want.shape}'
    if want.dtype == object or want.dtype.kind not in 'fV': return '' if np.array_equal(got, want) else 'other contents'
    if want.dtype.kind == 'V': return '' if got.tobytes() == want.tobytes() else 'other contents'
    a, b = got.astype('f8'), want.astype('f8')
    top = float(np.max(np.abs(b), where=np.isfinite(b), initial=0))
    close = np.isclose(a, b, rtol=0, atol=TOLERANCE.get(dtype or want.dtype.name, 2e-5) * max(top, 1e-30), equal_nan=True)
    return '' if close.all() else f'off by {np.nanmax(np.abs(a - b)[~close]):.3g} of {top:.3g}'


def is_checked(path, full):
    try: onnx.checker.check_model(path, full_check=full)
    except Exception: return False
    return True


def run_engine(tool, path, feeds, folder):
    """What the tool's engine computes; None: it has not this operator or type, or makes sequences."""
    args = []
    for k, (name, a) in enumerate(feeds.items()):
        np.save(f'{folder}/in{k}.npy', a)
        args += ['--input', f'{name}={folder}/in{k}.npy']
    out = f'{folder}/out'
    r = subprocess.run([tool, 'run', path, '-q', '--output-dir', out, *args], capture_output=True, text=True, timeout=SECONDS)
    if r.returncode == 1: return None
    if r.returncode: raise RuntimeError(f'run: exit {r.returncode} {r.stderr.strip()[:200]}')
    if sorted(os.listdir(out)) != sorted(f'{k}.npy' for k in range(len(os.listdir(out)))): return None  # sequences
    return [np.load(f'{out}/{k}.npy') for k in range(len(os.listdir(out)))]


def try_mode(tool, mode, m, want, full, folder):
    """(tiled, why it failed)"""
    path, tiled = f'{folder}/m.onnx', f'{folder}/{mode}.onnx'
    r = subprocess.run([tool, path, '-o', tiled, '-q', *MODES[mode]], capture_output=True, text=True, timeout=SECONDS)
    if r.returncode: return False, f'exit {r.returncode}: {r.stderr.strip()[:200]}'
    with open(tiled, 'rb') as f: n_tiled = b'tile/r0' in f.read()
    try:
        if mode == 'engine':
            if not all(isinstance(a, np.ndarray) and a.dtype.kind in 'fiub' for a in m.feeds.values()): return n_tiled, ''
            before, got = (run_engine(tool, p, m.feeds, folder) for p in (path, tiled))
            if before is None: return n_tiled, ''
            if got is None: return n_tiled, 'the engine refuses what it runs untiled'
            want = before
        else:
            if not is_checked(tiled, full): return n_tiled, 'the checker refuses it'
            got = session(tiled).run(None, m.feeds)
    except Exception as e:
        return n_tiled, f'{type(e).__name__}: {" ".join(str(e).split())[-200:]}'
    return n_tiled, difference(got, want, m.type.lower())


def try_model(tool, modes, m):
    """(runs, tiled, [(mode, why)]); None: skipped."""
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/m.onnx'
        with open(path, 'wb') as f: f.write(m.proto.SerializeToString())
        try:
            s = session(path)
            if m.feeds is None: m.feeds = random_feeds(s)
            want = s.run(None, m.feeds)
            del s
        except Exception:
            return None
        if not is_checked(path, False): return None
        full, tiled, failures = is_checked(path, True), 0, []
        for mode in modes:
            try: done, why = try_mode(tool, mode, m, want, full, folder)
            except subprocess.TimeoutExpired: done, why = False, f'more than {SECONDS} s'
            tiled += done
            if why: failures.append((mode, why))
        return len(modes), tiled, failures


def once(tool):
    """Each operator, one after the other: how many were tiled, and lines of what failed."""
    modes, tiled, failed, left = list(MODES), 0, [], dict.fromkeys(sweep_cases.operators())
    for op, cases in itertools.groupby(sorted(sweep_cases.cases(), key=lambda c: c.op), key=lambda c: c.op):
        for case in cases:
            got = try_model(tool, [modes[len(left) % len(modes)]], Model(case.name, op, case.type, case.model()))
            if got is None: continue
            tiled += got[1]
            failed += [f'{case.name}, {mode}: {why}' for mode, why in got[2]]
            left.pop(op, None)
            break
    failed += [f'{op}: ONNX Runtime runs no case of it, and no reason says why' for op in left if op not in sweep_cases.UNTRIED]
    failed += [f'{op}: it runs, though a reason says why not' for op in sweep_cases.UNTRIED if op not in left]
    return len(sweep_cases.operators()) - len(left), tiled, failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default=os.path.join(sweep_cases.ROOT, 'build', 'onnx-tile'))
    p.add_argument('--only', action='append', metavar='GLOB')
    p.add_argument('--mode', action='append', choices=MODES)
    p.add_argument('--set', action='append', choices=SETS)
    p.add_argument('--jobs', type=int, default=1)
    p.add_argument('--part', default='0/1', metavar='K/N', help='of all models, each Nth from the Kth on')
    p.add_argument('--once', action='store_true')
    p.add_argument('--missing', action='store_true')
    p.add_argument('-v', '--verbose', action='store_true', help='a line for each model')
    a = p.parse_args()
    warnings.simplefilter('ignore')
    if a.missing:
        missing = sorted(set(sweep_cases.operators()) - {c.op for c in sweep_cases.cases()} - set(sweep_cases.UNTRIED))
        print('\n'.join(f'{op}: no case' for op in missing))
        return 1 if missing else 0
    if a.once:
        n, tiled, failed = once(os.path.abspath(a.tool))
        print('\n'.join([*failed, f'{n} operators, {tiled} tiled, {len(failed)} failed']))
        return 1 if failed else 0
    first, step = map(int, a.part.split('/'))
    chosen = [m for k, m in enumerate(models(a.set or SETS, a.only)) if k % step == first]
    totals, by = collections.Counter(), collections.defaultdict(set)
    with concurrent.futures.ProcessPoolExecutor(a.jobs) as pool:
        work = [pool.submit(try_model, os.path.abspath(a.tool), a.mode or list(MODES), m) for m in chosen]
        for m, w in zip(chosen, work):
            got = w.result()
            if a.verbose: print(m.name, 'skipped' if got is None else 'failed' if got[2] else 'ok', flush=True)
            totals['skipped'] += got is None
            if got is None: continue
            totals.update(models=1, runs=got[0], tiled=got[1], failed=len(got[2]))
            by[m.op].add(m.type)
            for mode, why in got[2]: print(f'{m.name}, {mode}: {why}', flush=True)
    missing = [o for o in sweep_cases.operators() if o not in by] if not a.only and step == 1 and (not a.set or 'ops' in a.set) else []
    print(f'{len(by)} operators, {sum(map(len, by.values()))} pairs of operator and type; never run untiled: {" ".join(missing) or "none"}')
    print(', '.join(f'{totals[k]} {k}' for k in ('models', 'runs', 'tiled', 'skipped', 'failed')))
    return 1 if totals['failed'] or not totals['models'] else 0


if __name__ == '__main__':
    sys.exit(main())
