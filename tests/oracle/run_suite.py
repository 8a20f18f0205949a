#!/usr/bin/env python3
"""Runs models in ONNX Runtime and in `onnx-tile run`, compares every output.

  run_suite.py --tool PATH [--models DIR] [--only GLOB]... [--threads N] [--limit SECONDS] [--reference] [--emit-engine SIZE] [MODEL.onnx]...
--emit-engine: the tool runs what it makes of the model by force in the engine's form, tiles for a cache of SIZE; a model that it cannot
tile is skipped.
Models: those of DIR/models.json (shapes and values of inputs from there), or the files named. Equality as in the suite's judge: same types
and shapes, integers equal, floats by normalised error. A model that the tool refuses with exit 1 is skipped, and its line shown.
Closes with 'N passed, N failed, N skipped'; exit 1 when one failed or none passed.
"""
import argparse, fnmatch, json, os, subprocess, sys, tempfile, time

import numpy as np
import onnx
import onnxruntime as ort

KINDS = {'float': 'f4', 'float16': 'f2', 'double': 'f8', 'int64': 'i8', 'int32': 'i4', 'uint8': 'u1', 'int8': 'i1', 'bool': '?',
         'int16': 'i2', 'uint16': 'u2', 'uint32': 'u4', 'uint64': 'u8'}


def make_inputs(session, case, seed):
    rng, feeds = np.random.default_rng(seed), {}
    for i in sorted(session.get_inputs(), key=lambda v: v.name):
        shape = case.get('shapes', {}).get(i.name) or [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        kind = np.dtype(KINDS[i.type[7:-1]])
        if i.name in case.get('values', {}):
            feeds[i.name] = np.full(shape, case['values'][i.name], kind)
        elif kind == np.bool_:
            feeds[i.name] = np.ones(shape, kind)
        elif kind.kind in 'iu':
            feeds[i.name] = rng.integers(0, 256 if kind == np.uint8 else 2, shape).astype(kind)
        else:
            feeds[i.name] = rng.random(shape).astype(kind)
    return feeds


# Largest normalised error, and largest difference by the largest value. The engine's sums of 8-bit products are exact; those of
# dequantized numbers are not, and a result that lies between two codes falls to either side. Such flips go on through the network.
LIMITS = {'single': (1e-8, 1e-3), 'half': (1e-4, 2e-2), 'quantized': (1e-3, 5e-2)}


def is_quantized(path):
    return any(n.op_type in ('QuantizeLinear', 'QLinearConv') for n in onnx.load(path, load_external_data=False).graph.node)


def difference(want, got, quantized):
    """'' or what differs."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return f'{want.dtype}{list(want.shape)} became {got.dtype}{list(got.shape)}'
    if want.dtype.kind != 'f':
        return '' if np.array_equal(want, got) else f'{int((want != got).sum())} of {want.size} elements differ'
    limit = LIMITS['half' if want.dtype == np.float16 else 'quantized' if quantized else 'single']
    x, y = want.astype('f8').ravel(), got.astype('f8').ravel()
    odd = ~np.isfinite(x)
    if not np.array_equal(odd, ~np.isfinite(y)) or not np.array_equal(x[odd], y[odd], equal_nan=True):
        return 'NaN or infinity in other places'
    x, y = x[~odd], y[~odd]
    if not x.size:
        return ''
    top, worst = np.abs(x).max(), np.abs(x - y).max()
    nmse = ((x - y) ** 2).sum() / max((x ** 2).sum(), 1e-30)
    if nmse > limit[0] or worst > limit[1] * max(top, 1e-6):
        return f'normalised error {nmse:.2e}, worst {worst:.3e} of {top:.3e}'
    return ''


def tile(a, path, case, tmp):
    """(number of regions, path of the tiled model)"""
    out = tmp + '/tiled.onnx'
    command = [a.tool, path, '-o', out, '--json', '--emit', 'engine', '--force', '--target', 'cpu-generic', '--l2', a.emit_engine]
    for name, shape in case.get('shapes', {}).items():
        command += ['--shape', f'{name}={",".join(map(str, shape))}']
    said = subprocess.run(command, capture_output=True, text=True, timeout=a.limit, check=True)
    return len(json.loads(said.stdout)['regions']), out


def compare(a, path, case, tmp):
    """(verdict, text)"""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = a.threads
    options.add_session_config_entry('session.x64quantprecision', '1')  # no saturation of 16 bits in products of 8
    options.add_session_config_entry('session.disable_quant_qdq', '1')  # DequantizeLinear and QuantizeLinear as they stand
    try:
        session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
        feeds = make_inputs(session, case, a.seed)
        want = session.run(None, feeds)
    except Exception as e:
        return 'skip', 'ONNX Runtime: ' + str(e).splitlines()[0][:90]
    if a.emit_engine:
        try:
            regions, path = tile(a, path, case, tmp)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
            return 'fail', 'tiling: ' + (str(e.stderr).strip().splitlines() or [str(e)])[-1][:200]
        if not regions:
            return 'skip', 'nothing to tile'
    command = [a.tool, 'run', path, '--json', '--threads', str(a.threads), '--output-dir', tmp + '/out']
    command += ['--reference'] if a.reference else []
    for k, (name, value) in enumerate(feeds.items()):
        np.save(f'{tmp}/{k}.npy', value)
        command += ['--input', f'{name}={tmp}/{k}.npy']
    quantized = is_quantized(path)
    start = time.perf_counter()
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=a.limit)
    except subprocess.TimeoutExpired:
        return 'fail', f'no end after {a.limit} s'
    spent = time.perf_counter() - start
    if r.returncode:
        line = (r.stderr.strip().splitlines() or [''])[-1]
        return 'skip' if r.returncode == 1 and len(r.stderr.strip().splitlines()) == 1 else 'fail', f'exit {r.returncode}: {line[:200]}'
    said = json.loads(r.stdout)
    for k, w in enumerate(want):
        if isinstance(w, list):
            parts = [(f'{k}-{i}', v) for i, v in enumerate(w)]
        else:
            parts = [(str(k), w)]
        for name, v in parts:
            why = difference(v, np.load(f'{tmp}/out/{name}.npy'), quantized)
            if why:
                return 'fail', f'output {name}: {why}'
    return 'pass', f"{said['least_seconds'] * 1e3:9.1f} ms, {said['peak_bytes'] / 2**20:8.2f} MiB ({said['planned_peak_bytes'] / 2**20:.2f} planned), {spent:.1f} s"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', required=True)
    p.add_argument('--models')
    p.add_argument('--only', action='append')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--limit', type=float, default=300)
    p.add_argument('--seed', type=int, default=0)
    p.add_argument('--reference', action='store_true')
    p.add_argument('--emit-engine', metavar='SIZE')
    p.add_argument('files', nargs='*')
    a = p.parse_args()
    cases = [({}, f, os.path.basename(f)) for f in a.files]
    if a.models:
        for c in json.load(open(os.path.join(a.models, 'models.json'))):
            cases.append((c, os.path.join(a.models, c.get('file', c['name'] + '.onnx')), c['name']))
    counts = {'pass': 0, 'fail': 0, 'skip': 0}
    for case, path, name in cases:
        if a.only and not any(fnmatch.fnmatch(name, g) for g in a.only):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            verdict, text = compare(a, path, case, tmp)
        counts[verdict] += 1
        print(f'{name:34s} {verdict}  {text}', flush=True)
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts['fail'] or not counts['pass'] else 0


if __name__ == '__main__':
    sys.exit(main())
