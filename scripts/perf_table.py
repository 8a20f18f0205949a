#!/usr/bin/env python3
"""Section engine of docs/results.md: the engine, untiled and tiled, next to ONNX Runtime and OpenVINO.

  perf_table.py [--tool T] [--threads 1,2] [--only GLOB]... [--repeat N] [--openvino PYTHON] [--models DIR] [--keep DIR] [--json F]

  for each number of threads:  peak and bandwidth of the machine; `calibrate`
    for each network:          tile it, start a process for each runtime, compare the outputs with ONNX Runtime's
      --repeat times:          ONNX Runtime, OpenVINO, engine, engine tiled, one after the other: the least time counts

Networks come from models/make_models.py (kept in --keep), or are the .onnx files of --models. --openvino names an interpreter that has
the package; without it the column stays empty. The machine should be idle. Prints Markdown; exit 1 when an output differs.
"""
import argparse
import ctypes
import fnmatch
import glob
import json
import math
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MB = 2 ** 20
# name, what it is, builder, its arguments
CASES = [
    ('vgg16_512', 'vgg16_features', dict(size=512)),
    ('unet_1024', 'unet', dict(size=1024)),
    ('fsrcnn_x2_540p', 'fsrcnn', dict(size=540)),
    ('espcn_x3_360p', 'espcn', dict(size=360)),
    ('dncnn20_w32_768', 'dncnn', dict(size=768, width=32)),
    ('sr_x2_720p', 'sr', dict(size=720)),
    ('mobilenet_v2_1024', 'mobilenet_v2', dict(size=1024)),
    ('mobilenet_v2_b16', 'mobilenet_v2', dict(batch=16)),
    ('resnet50_1024', 'resnet50', dict(size=1024)),
    ('resnet50_b8', 'resnet50', dict(batch=8)),
    ('vit_4096_tokens', 'vit', dict(size=1024, depth=2)),
    ('depthwise_b16', 'depthwise', dict(batch=16)),
    ('add_sigmoid_mul', 'elementwise', dict(size=1024)),
]
ROUND_S = 0.4  # that a runtime runs in a round; at least two runs


# ---- processes ----

def status_mb(key):
    with open('/proc/self/status') as f:
        return next((int(line.split()[1]) / 1024 for line in f if line.startswith(key)), 0.0)


def open_onnxruntime(model, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4

    def load():
        session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
        return lambda feeds: session.run(None, feeds)
    return load, 'ONNX Runtime ' + ort.__version__


def open_openvino(model, threads):
    import openvino as ov
    core = ov.Core()

    def load():
        compiled = core.compile_model(model, 'CPU', {'INFERENCE_NUM_THREADS': threads, 'PERFORMANCE_HINT': 'LATENCY',
                                                     'INFERENCE_PRECISION_HINT': 'f32'})
        request = compiled.create_infer_request()

        def run(feeds):
            request.infer(feeds, share_inputs=True)
            return [request.get_output_tensor(k).data for k in range(len(compiled.outputs))]
        return run
    return load, 'OpenVINO ' + ov.__version__.split('-')[0]


def child(config):
    """Load, then for each line on stdin: a number of runs, or a file that the outputs go to. One JSON object a line on stdout."""
    import numpy as np
    load, version = (open_onnxruntime if config['runtime'] == 'ort' else open_openvino)(config['model'], config['threads'])
    with np.load(config['feeds']) as f:
        feeds = {k: f[k] for k in f.files}
    before = status_mb('VmRSS')
    run = load()
    ctypes.CDLL(None).malloc_trim(0)
    with open('/proc/self/clear_refs', 'w') as f:
        f.write('5')                              # peak resident size starts again from here
    loaded = status_mb('VmRSS')
    print(json.dumps({'version': version}), flush=True)
    for line in sys.stdin:
        if not line.strip().isdigit():
            np.savez(line.strip(), *run(feeds))
            print('{}', flush=True)
            continue
        least = math.inf
        for _ in range(int(line)):
            start = time.perf_counter()
            run(feeds)
            least = min(least, time.perf_counter() - start)
        peak = status_mb('VmHWM')
        print(json.dumps({'ms': least * 1e3, 'rise_mb': peak - loaded, 'total_mb': peak - before}), flush=True)


def machine(threads):
    """Multiplications and additions a second of numpy's sgemm, bytes a second (read and written) of large copies."""
    import concurrent.futures
    import numpy as np
    rng, best, copy = np.random.default_rng(0), 0.0, 0.0
    a, b = (rng.random((1536, 1536), np.float32) for _ in range(2))
    parts = [(np.ones(48 * MB, np.float32), np.ones(48 * MB, np.float32)) for _ in range(threads)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(12):
            start = time.perf_counter()
            a @ b
            best = max(best, 1536 ** 3 / (time.perf_counter() - start))
            start = time.perf_counter()
            list(pool.map(lambda p: np.copyto(*p), parts))
            copy = max(copy, threads * 2 * 4 * 48 * MB / (time.perf_counter() - start))
    return {'macs': best, 'bandwidth': copy}


class Side:
    """A model in a runtime, in a process of its own."""

    def __init__(self, python, **config):
        self.process = subprocess.Popen([python, os.path.abspath(__file__), '--child', json.dumps(config)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.version = self.answer()['version']

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        error = self.process.stderr.read().strip().splitlines()
        raise RuntimeError(error[-1] if error else f'ended with {self.process.wait()}')

    def ask(self, what):
        self.process.stdin.write(f'{what}\n')
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- facts of a model ----

def describe(model):
    """MACs, and bytes of inputs, outputs and weights."""
    import onnx
    from onnx import helper, numpy_helper
    g = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    weights = {i.name: tuple(i.dims) for i in g.initializer}
    dims = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim)
            for v in [*g.input, *g.output, *g.value_info] if v.type.HasField('tensor_type')}
    dims.update(weights)
    macs = 0
    for n in g.node:
        a = {x.name: helper.get_attribute_value(x) for x in n.attribute}
        if n.op_type in ('Conv', 'ConvTranspose'):
            macs += math.prod(dims[n.output[0] if n.op_type == 'Conv' else n.input[0]]) * math.prod(dims[n.input[1]][1:])
        elif n.op_type in ('MatMul', 'Gemm'):
            macs += math.prod(dims[n.output[0]]) * dims[n.input[0]][0 if a.get('transA') else -1]
    ends = [v for v in [*g.input, *g.output] if v.name not in weights]
    size = sum(math.prod(dims[v.name]) * helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type).itemsize for v in ends)
    return {'macs': macs, 'bytes': size + sum(numpy_helper.to_array(i).nbytes for i in g.initializer),
            'output_mb': sum(4 * math.prod(dims[v.name]) for v in g.output) / MB,
            'input_mb': sum(4 * math.prod(dims[v.name]) for v in ends[:len(ends) - len(g.output)]) / MB,
            'inputs': {v.name: dims[v.name] for v in ends[:len(ends) - len(g.output)]}}


def engine(tool, model, threads, repeat, feeds, outputs=None):
    command = [tool, 'run', model, '--threads', str(threads), '--repeat', str(repeat), '--json']
    for name, path in feeds.items():
        command += ['--input', f'{name}={path}']
    p = subprocess.run(command + (['--output-dir', outputs] if outputs else []), capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip())
    j = json.loads(p.stdout)
    return {'ms': j['least_seconds'] * 1e3, 'peak_mb': j['peak_bytes'] / MB, 'planned_mb': j['planned_peak_bytes'] / MB,
            'weights_mb': j['weight_bytes'] / MB, 'resident_mb': j['resident_bytes'] / MB}


def error_of(expected, folder):
    """The largest normalised mean square error of the outputs."""
    import numpy as np
    worst = 0.0
    with np.load(expected) as f:
        for k in range(len(f.files)):
            x, y = f[f'arr_{k}'].astype('f8'), np.load(os.path.join(folder, f'{k}.npy')).astype('f8')
            worst = max(worst, float(((x - y) ** 2).sum()) / max(float((x ** 2).sum()), 1e-30))
    return worst


# ---- one row ----

def measure(a, path, threads, target, tmp):
    """All facts of a network with so many threads."""
    import numpy as np
    import onnx
    facts, rng = describe(onnx.load(path)), np.random.default_rng(0)
    feeds = {n: rng.standard_normal(d, np.float32) for n, d in facts['inputs'].items()}
    files = {n: os.path.join(tmp, f'in{k}.npy') for k, n in enumerate(feeds)}
    for n, array in feeds.items():
        np.save(files[n], array)
    np.savez(tmp + '/feeds.npz', **feeds)
    tiled = tmp + '/tiled.onnx'
    j = subprocess.run([a.tool, path, '-o', tiled, '--emit', 'engine', '--goal', 'time', '--threads', str(threads), '--json',
                        '--target', target], capture_output=True, text=True, check=True)
    facts['regions'] = len(json.loads(j.stdout)['regions'])
    sides = {'ort': Side(sys.executable, runtime='ort', model=path, threads=threads, feeds=tmp + '/feeds.npz')}
    if a.openvino:
        sides['ov'] = Side(a.openvino, runtime='ov', model=path, threads=threads, feeds=tmp + '/feeds.npz')
    sides['ort'].ask(tmp + '/expected.npz')
    models = {'engine': path, 'tiled': tiled} if facts['regions'] else {'engine': path}
    for who, model in models.items():
        facts[who] = engine(a.tool, model, threads, 1, files, tmp + '/out')
        facts[who]['error'] = error_of(tmp + '/expected.npz', tmp + '/out')
    for who in sides:
        facts[who] = sides[who].ask(2)
        facts[who]['version'] = sides[who].version
    for _ in range(a.repeat):
        for who in [*sides, *models]:
            runs = max(2, min(30, int(ROUND_S * 1e3 / facts[who]['ms'])))
            time.sleep(0.05)
            new = sides[who].ask(runs) if who in sides else engine(a.tool, models[who], threads, runs, files)
            facts[who].update({k: (min if k == 'ms' else max)(v, facts[who][k]) for k, v in new.items()})
    for s in sides.values():
        s.close()
    return facts


# ---- tables ----

def count(threads):
    return f'{threads} thread{"s" if threads > 1 else ""}'


def times_table(rows, m, threads):
    print(f'\n### {count(threads)}: time, ms\n')
    print('| network | ONNX Runtime | OpenVINO | engine | tiled | best / ONNX Runtime | best / OpenVINO | roof | of roof |')
    print('|---|--:|--:|--:|--:|--:|--:|--:|--:|')
    for name, f in rows.items():
        best = min(f[k]['ms'] for k in ('engine', 'tiled') if k in f)
        compute, memory = f['macs'] / m['macs'], f['bytes'] / m['bandwidth']
        f.update(best_ms=best, roof_ms=max(compute, memory) * 1e3, bound='compute' if compute > memory else 'memory')
        ms = [f'{f[k]["ms"]:.1f}' if k in f else '-' for k in ('ort', 'ov', 'engine', 'tiled')]
        ratios = [f'x{best / f[k]["ms"]:.2f}' if k in f else '-' for k in ('ort', 'ov')]
        print(f'| {name} | {" | ".join(ms)} | {f["regions"]} | {" | ".join(ratios)} | '
              f'{f["roof_ms"]:.1f} {f["bound"]} | {100 * f["roof_ms"] / best:.0f} % |')
    for k, label in (('ort', 'ONNX Runtime'), ('ov', 'OpenVINO')):
        geo = lambda pick: math.exp(sum(math.log(pick(f) / f[k]['ms']) for f in rows.values()) / len(rows))
        if all(k in f for f in rows.values()):
            print(f'\nGeometric mean against {label}: engine x{geo(lambda f: f["engine"]["ms"]):.3f}, '
                  f'tiled x{geo(lambda f: f.get("tiled", f["engine"])["ms"]):.3f}, the better x{geo(lambda f: f["best_ms"]):.3f}')


def memory_table(rows, threads):
    print(f'\n### {count(threads)}: memory, MB\n')
    print('| network | rise: ONNX Runtime | OpenVINO | engine | tiled | planned: engine | tiled | '
          'all: ONNX Runtime | OpenVINO | engine | tiled |')
    print('|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|')
    number = lambda x: f'{x:.0f}' if x >= 10 else f'{x:.1f}'
    for name, f in rows.items():
        own = ('engine', 'tiled')
        cells = [number(f[k]['rise_mb']) if k in f else '-' for k in ('ort', 'ov')]
        cells += [number(f[k]['peak_mb'] + f['output_mb']) if k in f else '-' for k in own]
        cells += [number(f[k]['planned_mb']) if k in f else '-' for k in own]
        cells += [number(f[k]['total_mb']) if k in f else '-' for k in ('ort', 'ov')]
        cells += [number(f[k]['resident_mb'] - f['input_mb']) if k in f else '-' for k in own]
        print(f'| {name} | {" | ".join(cells)} |')


def find_models(a, tmp):
    """(name, path) of each network; made when it is asked for."""
    import onnx
    wanted = lambda name: not a.only or any(fnmatch.fnmatch(name, g) for g in a.only)
    if a.models:
        for path in sorted(glob.glob(os.path.join(a.models, '*.onnx'))):
            name = os.path.basename(path)[:-5]
            own = any(o.domain == 'onnx_tile' for o in onnx.load(path, load_external_data=False).opset_import)
            if wanted(name) and not own:
                yield name, path
        return
    sys.path.insert(0, os.path.join(HERE, '..', 'models'))
    import make_models
    for name, model, arguments in CASES:
        path = os.path.join(a.keep or tmp, name + '.onnx')
        if not wanted(name):
            continue
        if not os.path.exists(path):
            onnx.save(make_models.build(model, **arguments), path)
        yield name, path


def main():
    if sys.argv[1:2] == ['--child']:
        return child(json.loads(sys.argv[2]))
    if sys.argv[1:2] == ['--machine']:
        return print(json.dumps(machine(int(sys.argv[2]))))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--threads', default='1,2', type=lambda t: [int(n) for n in t.split(',')])
    p.add_argument('--only', action='append')
    p.add_argument('--repeat', type=int, default=5)
    p.add_argument('--openvino', metavar='PYTHON')
    p.add_argument('--models', metavar='DIR')
    p.add_argument('--keep', metavar='DIR')
    p.add_argument('--json')
    a = p.parse_args()
    results, failed = {}, 0
    with tempfile.TemporaryDirectory() as tmp:
        for threads in a.threads:
            env = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
            m = json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), '--machine', str(threads)], env=env,
                                          capture_output=True, text=True, check=True).stdout)
            target = f'{tmp}/host{threads}.xml'
            subprocess.run([a.tool, 'calibrate', '-o', target, '--threads', str(threads)], check=True, stdout=subprocess.DEVNULL)
            rows = {}
            for name, path in find_models(a, tmp):
                try:
                    f = rows[name] = measure(a, path, threads, target, tmp)
                except (RuntimeError, subprocess.CalledProcessError) as e:
                    failed += 1
                    print(f'{name}: {e}', file=sys.stderr)
                    continue
                wrong = [k for k in ('engine', 'tiled') if k in f and not f[k]['error'] <= 1e-8]
                failed += bool(wrong)
                print(name, ', '.join(f'{k} {f[k]["ms"]:.1f} ms' for k in ('ort', 'ov', 'engine', 'tiled') if k in f),
                      'DIFFERS' if wrong else '', file=sys.stderr, flush=True)
            versions = {s['version'] for f in rows.values() for s in f.values() if isinstance(s, dict) and 'version' in s}
            print(f'\nIn the run with {count(threads)}: peak {m["macs"] / 1e9:.1f} G MACs/s, copies {m["bandwidth"] / 1e9:.1f} GB/s '
                  f"(numpy's sgemm; bytes read and written by large copies). {', '.join(sorted(versions))}.")
            if rows:
                times_table(rows, m, threads)
                memory_table(rows, threads)
            results[threads] = {'machine': m, 'rows': rows}
            if a.json:
                with open(a.json, 'w') as out:
                    json.dump(results, out, indent=1)
    return 1 if failed or not results else 0


if __name__ == '__main__':
    sys.exit(main())
