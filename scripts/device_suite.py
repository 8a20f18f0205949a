#!/usr/bin/env python3
"""Models on a device, untiled and tiled, against ONNX Runtime: are results equal, what ran where, how much device memory it took.

  device_suite.py --tool build/onnx-tile [--device opencl] [--args "--goal memory"] [--shapes NAME:INPUT=D,D]... MODEL.onnx...

One line a model and form: equal, nodes on the device, nodes on the host by operator, planned and measured bytes of device memory. Equal: the
rules of our measurements (integers exactly; floats: NMSE 1e-8, largest difference 1e-3 of the largest value; half precision: 1e-4, 2e-2; or
ten times what ONNX Runtime then differs from itself without its graph optimizations: outputs that are rounding decide nothing).
Sizes of dynamic inputs are those of --shapes, or of models.json beside the model (a list of {"file", "shapes"}), or the tool's own choice.
The tiled form is the engine's on devices for goal memory, unless --args says otherwise. Exit 1 when a model differs
or does not run, and when none was compared; what ONNX Runtime itself refuses is skipped.
Needs onnxruntime and numpy.
"""
import argparse
import functools
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

from compare import make_inputs

# All that ONNX Runtime raises: classes of their own, one for each of its status codes.
ORT_ERRORS = tuple(e for e in vars(ort.capi.onnxruntime_pybind11_state).values() if isinstance(e, type) and issubclass(e, Exception))


def errors(a, b):
    """(NMSE, largest difference by largest value) of floats; None: NaN or infinities in other places."""
    x, y = a.astype('f8'), b.astype('f8')
    special = ~np.isfinite(x) | ~np.isfinite(y)
    if not np.array_equal(x[special], y[special], equal_nan=True):
        return None
    x, y = x[~special], y[~special]
    power, most = float(np.sum(x * x)), float(np.max(np.abs(x), initial=0))
    off, worst = float(np.sum((x - y) ** 2)), float(np.max(np.abs(x - y), initial=0))
    return (off / power, worst / most) if most else (float(off > 0), float(off > 0))


def difference(a, b, half, again):
    """None: equal; else what differs. again: the same results of another way to compute them, for the noise of their own."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f'{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}'
    if a.dtype.kind != 'f':
        return None if np.array_equal(a, b) else f'{np.count_nonzero(a != b)} integers differ'
    found = errors(a, b)
    if found is None:
        return 'NaN or infinities differ'
    limits = (1e-4, 2e-2) if half or a.dtype == np.float16 else (1e-8, 1e-3)
    if all(f <= m for f, m in zip(found, limits)):
        return None
    own = errors(a, again())
    if own and all(f <= max(m, 10 * o) for f, m, o in zip(found, limits, own)):
        return None
    return f'NMSE {found[0]:.1e}, largest {found[1]:.1e}'


def run_tool(a, model, feeds, folder):
    """(report, outputs) or a line that says why not."""
    command = [a.tool, 'run', model, '--device', a.device, '--json', '--output-dir', folder]
    for k, (name, value) in enumerate(feeds.items()):
        path = f'{folder}/in{k}.npy'
        np.save(path, value)
        command += ['--input', f'{name}={path}']
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=a.timeout)
    except subprocess.TimeoutExpired:
        return f'more than {a.timeout} s', None
    if r.returncode != 0:
        return f'exit {r.returncode}: {(r.stderr.strip().splitlines() or ["nothing said"])[-1][:160]}', None
    report = json.loads(r.stdout)
    return report, [np.load(f'{folder}/{k}.npy') for k in range(len(report['outputs']))]


def judge(a, model, feeds, wanted, half, again):
    with tempfile.TemporaryDirectory() as folder:
        report, outputs = run_tool(a, model, feeds, folder)
    if outputs is None:
        return None, report
    for k, (x, y) in enumerate(zip(wanted, outputs)):
        what = difference(x, y, half, lambda k=k: again()[k])
        if what:
            return report, f'output {k}: {what}'
    return report, None


def line(name, form, report, why):
    d = report['device'] if report else None
    where = f"{d['nodes_on_device']:5} {d['nodes_on_host']:5}" if d else f"{'-':>5} {'-':>5}"
    memory = f"{d['planned_bytes'] / 2**20:9.2f} {d['peak_bytes'] / 2**20:9.2f} {d['arena_bytes'] / 2**20:9.2f}" if d else ' ' * 29
    hosts = ', '.join(f"{f['nodes']} {f['operator']} ({f['why']})" for f in d['fallbacks']) if d else ''
    seconds = f"{report['least_seconds']:8.3f}" if report else ' ' * 8
    print(f"{name:28.28} {form:8} {'equal' if not why else 'DIFFERS':8} {where} {memory} {seconds}  {why or hosts}", flush=True)


class Refused(Exception):
    """ONNX Runtime does not take the model: there is nothing to compare with."""


def chosen_sizes(a, model):
    """{input: dims} that the tool takes where nobody says."""
    r = subprocess.run([a.tool, 'inspect', model, '--json'], capture_output=True, text=True)
    design = json.loads(r.stdout).get('design') if r.returncode == 0 else None
    pairs = (x.rsplit('=', 1) for x in shlex.split(design or ''))
    return {name: [int(d) for d in dims.split(',')] for name, dims in pairs}


def listed_sizes(model):
    """{input: dims} of models.json."""
    folder, name = os.path.split(model)
    try:
        with open(os.path.join(folder, 'models.json'), encoding='utf-8') as f:
            return next((x.get('shapes', {}) for x in json.load(f) if x.get('file', x['name'] + '.onnx') == name), {})
    except FileNotFoundError:
        return {}


def reference(a, model, shapes, options):
    """Feeds, and what ONNX Runtime makes of them."""
    try:
        session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
        if any(i.name not in shapes and not all(isinstance(d, int) and d > 0 for d in i.shape) for i in session.get_inputs()):
            shapes = {**chosen_sizes(a, model), **shapes}
        feeds = make_inputs(session, shapes, a.seed)
        return feeds, session.run(None, feeds)
    except ORT_ERRORS as ex:
        raise Refused(str(ex).splitlines()[0][:120]) from ex


def one(a, model, shapes):
    name = os.path.splitext(os.path.basename(model))[0]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    feeds, wanted = reference(a, model, shapes, options)
    half = any(x.dtype == np.float16 for x in [*feeds.values(), *wanted]) or 'fp16' in name or 'f16' in name
    results = {}

    @functools.cache
    def again():
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return ort.InferenceSession(model, options, providers=['CPUExecutionProvider']).run(None, feeds)

    report, why = judge(a, model, feeds, wanted, half, again)
    line(name, 'untiled', report, why)
    results['untiled'] = report, why
    with tempfile.TemporaryDirectory() as folder:
        tiled = f'{folder}/tiled.onnx'
        command = [a.tool, model, '-o', tiled, '--emit', 'engine', '-q', *shlex.split(a.args)]
        for k, v in ((k, v) for k, v in feeds.items() if v.ndim):
            command += ['--shape', f"{k}={','.join(map(str, v.shape))}"]
        r = subprocess.run(command, capture_output=True, text=True)
        report, why = (None, f'the tool: {r.stderr.strip()[-160:]}') if r.returncode else judge(a, tiled, feeds, wanted, half, again)
    line(name, 'tiled', report, why)
    results['tiled'] = report, why
    return results


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--device', default='opencl')
    p.add_argument('--args', default='--goal memory --runtime engine-device')
    p.add_argument('--shapes', action='append', default=[], metavar='MODEL:INPUT=D,D')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--timeout', type=float, default=600)
    p.add_argument('models', nargs='+')
    a = p.parse_args()
    print(f"{'model':28} {'form':8} {'':8} {'dev':>5} {'host':>5} {'plan MiB':>9} {'peak MiB':>9} {'arena':>9} {'seconds':>8}  on the host, or what differs")
    failed, passed, skipped, start = 0, 0, 0, time.time()
    ratios = {'peak_bytes': [], 'arena_bytes': []}
    for model in a.models:
        name, shapes = os.path.splitext(os.path.basename(model))[0], {}
        shapes.update(listed_sizes(model))
        for s in a.shapes:
            of, binding = s.split(':', 1)
            if of == name:
                key, dims = binding.rsplit('=', 1)
                shapes[key] = [int(d) for d in dims.split(',')]
        try:
            r = one(a, model, shapes)
        except Refused as ex:
            print(f'{name:28.28} skipped: {ex}')
            skipped += 1
            continue
        bad = any(why for _, why in r.values())
        failed, passed = failed + bad, passed + (not bad)
        for key, found in ratios.items() if not bad else ():
            before, after = (max(1, r[form][0]['device'][key]) for form in ('untiled', 'tiled'))
            found.append(after / before)
    mean, arena = (math.exp(sum(map(math.log, found)) / max(1, len(found))) for found in ratios.values())
    print(f'device memory, tiled to untiled: x{mean:.3f} in the geometric mean of {passed}, activations alone x{arena:.3f}; {time.time() - start:.0f} s')
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
