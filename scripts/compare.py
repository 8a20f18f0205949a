#!/usr/bin/env python3
"""Run pairs of models in stock ONNX Runtime: are the outputs equal, what do time and peak memory become?

  compare.py ORIGINAL TILED [--threads N] [--rounds N] [--shape NAME=D,D,...]

Each model runs in a process of its own on the same seeded inputs. Time is the best of the rounds, which alternate between the
two; peak memory is the growth of the resident set while running. Exit 0 when every output is equal within rounding
(see `equal`). demo.py and bench.py import `compare`.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

NUMPY_TYPES = {'float': 'f4', 'float16': 'f2', 'double': 'f8', 'int64': 'i8', 'int32': 'i4', 'int16': 'i2', 'int8': 'i1',
               'uint8': 'u1', 'uint16': 'u2', 'uint32': 'u4', 'uint64': 'u8', 'bool': '?'}


# ---- the process that runs one model ----

def status_mb(key):
    with open('/proc/self/status') as f:
        for line in f:
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0


def make_inputs(session, shapes, seed):
    import numpy as np
    rng, feeds = np.random.default_rng(seed), {}
    for i in sorted(session.get_inputs(), key=lambda v: v.name):
        shape = shapes.get(i.name) or [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        dtype = np.dtype(NUMPY_TYPES[i.type[len('tensor('):-1]])
        if dtype.kind == 'f':
            feeds[i.name] = rng.standard_normal(shape).astype(dtype)
        elif dtype.kind == 'b':
            feeds[i.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            feeds[i.name] = rng.integers(0, 256 if dtype == np.uint8 else 2, shape).astype(dtype)
    return feeds


def open_onnxruntime(config):
    """The session, and a function from feeds to outputs."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = config['threads']
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if config.get('plain'):
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if config.get('library'):                     # of operators, for models that have them; others do not ask
        options.add_session_config_entry('onnx_tile.threads', str(config['threads']))
        options.register_custom_ops_library(config['library'])
    session = ort.InferenceSession(config['model'], options, providers=['CPUExecutionProvider'])
    return session, lambda feeds: session.run(None, feeds)


class OpenVINO:
    """What OpenVINO compiled, with the names that a session of ONNX Runtime has."""

    def __init__(self, config):
        import openvino as ov
        core = ov.Core()
        model = core.read_model(config['model'])
        shapes = {i: config['shapes'][i.any_name] for i in model.inputs if i.any_name in config['shapes']}
        if shapes:
            model.reshape(shapes)
        self.compiled = core.compile_model(model, 'CPU', {'INFERENCE_NUM_THREADS': config['threads'], 'PERFORMANCE_HINT': 'LATENCY',
                                                          'INFERENCE_PRECISION_HINT': 'f32'})
        self.request = self.compiled.create_infer_request()

    @staticmethod
    def ports(ports):
        types = {'f32': 'float', 'f16': 'float16', 'f64': 'double', 'i64': 'int64', 'i32': 'int32', 'i8': 'int8', 'u8': 'uint8',
                 'boolean': 'bool'}
        return [argparse.Namespace(name=p.any_name, shape=list(p.shape), type=f'tensor({types[p.element_type.get_type_name()]})')
                for p in ports]

    def get_inputs(self):
        return self.ports(self.compiled.inputs)

    def get_outputs(self):
        return [argparse.Namespace(name=p.any_name) for p in self.compiled.outputs]

    def run(self, feeds):
        self.request.infer(feeds, share_inputs=True)
        return [self.request.get_output_tensor(k).data for k in range(len(self.compiled.outputs))]


def open_openvino(config):
    session = OpenVINO(config)
    return session, session.run


def forget_peak(trim=True):
    """What is free goes back to the system; the peak of the resident set starts again from what is left."""
    if trim:
        ctypes.CDLL(None).malloc_trim(0)
    with open('/proc/self/clear_refs', 'w') as f:
        f.write('5')


def child(config):
    """Load, say so, then run once for each line on stdin. One JSON object a line on stdout. OpenVINO makes its buffers when it
    compiles, so its memory counts from before that, weights and all. Figures of the whole process count from before the session is made,
    without the inputs; with "whole" what is free after loading stays, as in a process that nobody trims."""
    import numpy as np
    own = config.get('runtime') == 'openvino'
    if own:
        import openvino  # noqa: F401  the library itself is not what is measured
    before = status_mb('VmRSS')
    session, run = (open_openvino if own else open_onnxruntime)(config)
    loaded, loading = status_mb('VmRSS') - before, status_mb('VmHWM') - before
    feeds = make_inputs(session, config['shapes'], config['seed'])
    print(json.dumps({'loaded_mb': loaded, 'loading_mb': loading}), flush=True)
    fed = max(0, status_mb('VmRSS') - before - loaded)
    forget_peak(trim=not config.get('whole'))     # or memory left over from loading would hide what running takes
    base = before if own else status_mb('VmRSS')
    for k, _ in enumerate(sys.stdin):
        start, cpu = time.perf_counter(), time.process_time()
        outputs = run(feeds)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        top = status_mb('VmHWM')
        if k == 0 and config.get('outputs'):
            names = [o.name for o in session.get_outputs()]
            np.savez(config['outputs'], names=np.array(names), **{f'o{j}': o for j, o in enumerate(outputs)})
            forget_peak()                         # writing files takes buffers, too
        del outputs
        print(json.dumps({'seconds': seconds, 'cpu_seconds': cpu, 'peak_mb': top - base, 'process_mb': top - before - fed}), flush=True)


class Side:
    """One model in its process."""

    def __init__(self, python=sys.executable, **config):
        self.process = subprocess.Popen([python, os.path.abspath(__file__), '--child', json.dumps(config)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.loaded = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        error = self.process.stderr.read().strip().splitlines()
        raise RuntimeError(error[-1] if error else f'ended with {self.process.wait()}')

    def run(self):
        self.process.stdin.write('go\n')
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- comparison ----

def error_of(file_a, file_b):
    """The largest normalised mean square error of a float output; infinite where outputs cannot be compared."""
    import numpy as np
    a, b, worst = np.load(file_a), np.load(file_b), 0.0
    for k in range(len(a['names'])):
        x, y = a[f'o{k}'], b[f'o{k}']
        if x.shape != y.shape or x.dtype != y.dtype or (x.dtype.kind != 'f' and not np.array_equal(x, y)):
            return float('inf')
        if x.dtype.kind == 'f':
            x, y = x.astype('f8'), y.astype('f8')
            worst = max(worst, float(((x - y) ** 2).sum()) / max(float((x ** 2).sum()), 1e-30))
    return worst


def equal(file_a, file_b):
    """'' when all outputs agree, else what differs. Floats: normalised mean square error at most 1e-8 (half: 1e-4)."""
    import numpy as np
    a, b = np.load(file_a), np.load(file_b)
    if list(a['names']) != list(b['names']):
        return 'output names differ'
    for k, name in enumerate(a['names']):
        x, y = a[f'o{k}'], b[f'o{k}']
        if x.dtype != y.dtype or x.shape != y.shape:
            return f'{name}: {x.dtype}{list(x.shape)} became {y.dtype}{list(y.shape)}'
        if x.dtype.kind != 'f':
            if not np.array_equal(x, y):
                return f'{name}: {int((x != y).sum())} of {x.size} elements differ'
            continue
        bound = 1e-4 if x.dtype == np.float16 else 1e-8
        x, y = x.astype('f8'), y.astype('f8')
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return f'{name}: infinities or NaN elsewhere'
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        error, power = float(((x - y) ** 2).sum()), float((x ** 2).sum())
        if error > bound * max(power, 1e-30):
            return f'{name}: normalised error {error / max(power, 1e-30):.1e}'
    return ''


def compare(original, tiled, threads=1, rounds=3, shapes=None, seed=0):
    """Facts about a pair: why ('' when equal), seconds and peak_mb as (original, tiled)."""
    with tempfile.TemporaryDirectory() as tmp:
        files = [os.path.join(tmp, f'{k}.npz') for k in range(2)]
        sides = [Side(model=m, threads=threads, shapes=shapes or {}, seed=seed, outputs=f)
                 for m, f in zip((original, tiled), files)]
        facts = [[], []]
        for _ in range(rounds):
            for k in range(2):
                facts[k].append(sides[k].run())
        for s in sides:
            s.close()
        return {'why': equal(*files),
                'seconds': tuple(min(f['seconds'] for f in side) for side in facts),
                'peak_mb': tuple(max(f['peak_mb'] for f in side) for side in facts)}


def row(name, facts):
    """One line of the table that demo.py and bench.py print."""
    (t0, t1), (m0, m1) = facts['seconds'], facts['peak_mb']
    verdict = 'equal' if not facts['why'] else 'DIFFERS'
    return (f'{name:24s} {verdict:8s} {t0 * 1e3:9.1f} {t1 * 1e3:9.1f} ms  x{t1 / t0:4.2f} '
            f'{m0:9.1f} {m1:9.1f} MB  x{m1 / m0 if m0 > 0 else 1:4.2f}  {facts["why"]}')


HEADER = f'{"":24s} {"outputs":8s} {"time":>9s} {"tiled":>9s} {"":9s} {"peak":>9s} {"tiled":>9s}'


def parse_shape(text):
    name, dims = text.rsplit('=', 1)
    return name, [int(d) for d in dims.split(',')]


def main():
    if sys.argv[1:2] == ['--child']:
        return child(json.loads(sys.argv[2]))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('original')
    p.add_argument('tiled')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--shape', action='append', default=[], type=parse_shape)
    a = p.parse_args()
    facts = compare(a.original, a.tiled, a.threads, a.rounds, dict(a.shape))
    print(HEADER)
    print(row(os.path.basename(a.original), facts))
    return 1 if facts['why'] else 0


if __name__ == '__main__':
    sys.exit(main())
