#!/usr/bin/env python3
"""Section engine of docs/results.md: the engine, untiled and tiled, next to ONNX Runtime, OpenVINO, MNN and ncnn.

  perf_table.py [--tool T] [--threads 1,2] [--only GLOB]... [--repeat N] [--peers PYTHON] [--processor] [--models DIR] [--keep DIR] [--json F]

  for each number of threads:  peak and bandwidth of the machine; `calibrate`
    for each network:          tile it, start a process for each runtime, compare the outputs with ONNX Runtime's
      --repeat times:          ONNX Runtime, the peers, engine, engine tiled, one after the other: the least time counts

Networks come from models/make_models.py (kept in --keep), or are the .onnx files of --models. --peers names an interpreter that has the
others (scripts/requirements-peers.txt); what it lacks, or cannot run, is an empty cell. A peer's time stands in brackets when its outputs
differ by more than the engine's may. --processor counts the processor's time: on a busy machine, with one thread. Else the machine should
be idle. Prints Markdown; exit 1 when an output of the engine differs.
"""
import argparse
import ctypes
import fnmatch
import glob
import json
import math
import os
import resource
import shutil
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
PEERS = {'ort': 'ONNX Runtime', 'ov': 'OpenVINO', 'mnn': 'MNN', 'ncnn': 'ncnn'}
ALLOWED, WRONG = 1e-8, 1e-4  # normalised mean square errors: of the engine; beyond this one a peer ran something else
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


def convert(command, made):
    """By a tool of the interpreter's own environment, in the folder of what it makes."""
    p = subprocess.run([os.path.join(os.path.dirname(sys.executable), command[0]), *command[1:]], cwd=os.path.dirname(made), text=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode or not os.path.exists(made):
        raise RuntimeError(f'{command[0]} does not convert it')


def open_mnn(model, threads):
    import MNN
    import onnx
    graph = onnx.load(model, load_external_data=False).graph
    constants = {i.name for i in graph.initializer}
    names, outputs = [i.name for i in graph.input if i.name not in constants], [o.name for o in graph.output]
    made = model[:-5] + '.mnn'
    convert(['mnnconvert', '-f', 'ONNX', '--modelFile', model, '--MNNModel', made, '--bizCode', 'x'], made)

    def load():
        runtime = MNN.nn.create_runtime_manager(({'backend': 'CPU', 'numThread': threads, 'precision': 'high'},))
        net = MNN.nn.load_module_from_file(made, names, outputs, runtime_manager=runtime)

        def run(feeds):
            given = [MNN.expr.const(feeds[n], list(feeds[n].shape), MNN.expr.NCHW) for n in names]
            results = net.forward(given)
            return [MNN.expr.convert(y, MNN.expr.NCHW).read() for y in results]
        return run
    return load, 'MNN ' + MNN.version()


def open_ncnn(model, threads):
    import ncnn
    import numpy as np
    made = model[:-5] + '.ncnn'
    convert(['pnnx', model, 'fp16=0'], made + '.param')

    def load():
        net = ncnn.Net()
        net.opt.num_threads = threads
        for name in ('fp16_packed', 'fp16_storage', 'fp16_arithmetic', 'bf16_storage'):
            setattr(net.opt, 'use_' + name, False)
        if net.load_param(made + '.param') or net.load_model(made + '.bin'):
            raise RuntimeError('ncnn does not load it')

        def run(feeds):
            if any(x.shape[0] != 1 for x in feeds.values()):
                raise RuntimeError('ncnn has no batches')
            extractor = net.create_extractor()
            for k, x in enumerate(feeds.values()):
                extractor.input(f'in{k}', ncnn.Mat(x[0]))
            results = [extractor.extract(name) for name in net.output_names()]
            if any(failed for failed, _ in results):
                raise RuntimeError('ncnn does not run it')
            return [np.array(y)[None] for _, y in results]
        return run
    return load, 'ncnn ' + ncnn.__version__


OPEN = {'ort': open_onnxruntime, 'ov': open_openvino, 'mnn': open_mnn, 'ncnn': open_ncnn}


def child(config):
    """Load, then for each line on stdin: a number of runs, or a file that the outputs go to. One JSON object a line on stdout."""
    import numpy as np
    answers = os.fdopen(os.dup(1), 'w')           # what runtimes print goes elsewhere
    os.dup2(2, 1)
    say = lambda what: print(json.dumps(what), file=answers, flush=True)
    load, version = OPEN[config['runtime']](config['model'], config['threads'])
    now = time.process_time if config['processor'] else time.perf_counter
    with np.load(config['feeds']) as f:
        feeds = {k: f[k] for k in f.files}
    before = status_mb('VmRSS')
    run = load()
    ctypes.CDLL(None).malloc_trim(0)
    with open('/proc/self/clear_refs', 'w') as f:
        f.write('5')                              # peak resident size starts again from here
    loaded = status_mb('VmRSS')
    say({'version': version})
    for line in sys.stdin:
        if not line.strip().isdigit():
            np.savez(line.strip(), *run(feeds))
            say({})
            continue
        least = math.inf
        for _ in range(int(line)):
            start = now()
            run(feeds)
            least = min(least, now() - start)
        peak = status_mb('VmHWM')
        say({'ms': least * 1e3, 'rise_mb': peak - loaded, 'total_mb': peak - before})


def machine(threads, processor):
    """Multiplications and additions a second of numpy's sgemm, bytes a second (read and written) of large copies."""
    import concurrent.futures
    import numpy as np
    now = time.process_time if processor else time.perf_counter
    rng, best, copy = np.random.default_rng(0), 0.0, 0.0
    a, b = (rng.random((1536, 1536), np.float32) for _ in range(2))
    parts = [(np.ones(48 * MB, np.float32), np.ones(48 * MB, np.float32)) for _ in range(threads)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in range(12):
            start = now()
            a @ b
            best = max(best, 1536 ** 3 / (now() - start))
            start = now()
            list(pool.map(lambda p: np.copyto(*p), parts))
            copy = max(copy, threads * 2 * 4 * 48 * MB / (now() - start))
    return {'macs': best, 'bandwidth': copy}


class Side:
    """A model in a runtime, in a process of its own."""

    def __init__(self, python, **config):
        self.said = tempfile.TemporaryFile('w+')  # noqa: SIM115
        self.process = subprocess.Popen([python, os.path.abspath(__file__), '--child', json.dumps(config)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.said, text=True)
        self.version = self.answer()['version']

    def answer(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        status = self.process.wait()
        self.said.seek(0)
        error = self.said.read().strip().splitlines()
        raise RuntimeError(error[-1] if error else f'ended with {status}')

    def ask(self, what):
        self.process.stdin.write(f'{what}\n')
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.said.close()


def open_side(python, who, model, outputs, **config):
    """The side, and its outputs in a file; None where the interpreter lacks the runtime, or this the operators."""
    try:
        side = Side(python, runtime=who, model=model, **config)
        side.ask(outputs)
    except (RuntimeError, BrokenPipeError) as e:
        print(f'{os.path.basename(model)}: {PEERS[who]}: {e}', file=sys.stderr)
        return None
    return side


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


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def engine_by_processor(tool, model, threads, spent, feeds):
    """The processor's time for a run: the least of a process with so many more, less the least of one with a single run."""
    for key, runs in (('one', 1), ('all', 1 + spent['runs'])):
        start = processor_seconds()
        figures = engine(tool, model, threads, runs, feeds)
        spent[key] = min(spent[key], processor_seconds() - start)
    return {**figures, 'ms': (spent['all'] - spent['one']) / spent['runs'] * 1e3}


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


def error_of(expected, got):
    """The largest normalised mean square error of the outputs: in a folder, or in a file of the same form. Infinite if sizes differ."""
    import numpy as np
    worst = 0.0
    with np.load(expected) as f:
        for k in range(len(f.files)):
            x = f[f'arr_{k}'].astype('f8')
            if os.path.isdir(got):
                y = np.load(os.path.join(got, f'{k}.npy')).astype('f8')
            else:
                with np.load(got) as g:
                    y = g[f'arr_{k}'].astype('f8') if f'arr_{k}' in g.files else np.empty(0)
            if x.size != y.size:
                return math.inf
            y = y.reshape(x.shape)
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
    how = {'threads': threads, 'feeds': tmp + '/feeds.npz', 'processor': a.processor}
    copy = shutil.copy(path, tmp + '/peer.onnx')   # converters write beside it
    sides = {'ort': Side(sys.executable, runtime='ort', model=path, **how)}
    sides['ort'].ask(tmp + '/expected.npz')
    for who in list(PEERS)[1:] if a.peers else []:
        side = open_side(a.peers, who, copy, f'{tmp}/{who}.npz', **how)
        if not side:
            continue
        off = error_of(tmp + '/expected.npz', f'{tmp}/{who}.npz')
        if off <= WRONG:
            sides[who], facts[who + '_error'] = side, off
        else:
            print(f'{os.path.basename(path)}: {PEERS[who]}: other outputs', file=sys.stderr)
            side.close()
    models = {'engine': path, 'tiled': tiled} if facts['regions'] else {'engine': path}
    for who, model in models.items():
        facts[who] = engine(a.tool, model, threads, 1, files, tmp + '/out')
        facts[who]['error'] = error_of(tmp + '/expected.npz', tmp + '/out')
    for who in sides:
        facts[who] = sides[who].ask(2)
        facts[who]['version'] = sides[who].version
    timed = set()                                  # what came before was wall time, for warming up
    spent = {who: {'runs': max(4, int(ROUND_S * 1e3 / facts[who]['ms'])), 'one': math.inf, 'all': math.inf}
             for who in models if a.processor}
    for _ in range(a.repeat):
        for who in [*sides, *models]:
            runs = max(2, min(30, int(ROUND_S * 1e3 / facts[who]['ms'])))
            time.sleep(0.05)
            if who in sides:
                new = sides[who].ask(runs)
            elif a.processor:
                new = engine_by_processor(a.tool, models[who], threads, spent[who], files)
            else:
                new = engine(a.tool, models[who], threads, runs, files)
            fresh = who in spent or who not in timed
            timed.add(who)
            seen = {**facts[who], 'ms': math.inf} if fresh else facts[who]
            facts[who].update({k: (min if k == 'ms' else max)(v, seen[k]) for k, v in new.items()})
    for s in sides.values():
        s.close()
    return facts


# ---- tables ----

def count(threads):
    return f'{threads} thread{"s" if threads > 1 else ""}'


def times_table(rows, m, threads):
    peers = [k for k in PEERS if any(k in f for f in rows.values())]
    print(f'\n### {count(threads)}: time, ms\n')
    print(f'| network | {" | ".join(PEERS[k] for k in peers)} | engine | tiled | '
          f'{" | ".join("best / " + PEERS[k] for k in peers)} | roof | of roof |')
    print('|---|' + '--:|' * (2 * len(peers) + 4))
    for name, f in rows.items():
        best = min(f[k]['ms'] for k in ('engine', 'tiled') if k in f)
        compute, memory = f['macs'] / m['macs'], f['bytes'] / m['bandwidth']
        f.update(best_ms=best, roof_ms=max(compute, memory) * 1e3, bound='compute' if compute > memory else 'memory')
        ms = [(f'({f[k]["ms"]:.1f})' if f.get(k + '_error', 0) > ALLOWED else f'{f[k]["ms"]:.1f}') if k in f else ''
              for k in (*peers, 'engine', 'tiled')]
        ratios = [f'x{best / f[k]["ms"]:.2f}' if k in f else '' for k in peers]
        print(f'| {name} | {" | ".join(ms)} | {" | ".join(ratios)} | '
              f'{f["roof_ms"]:.1f} {f["bound"]} | {100 * f["roof_ms"] / best:.0f} % |')
    for k in peers:
        mine = [f for f in rows.values() if k in f]
        geo = lambda pick: math.exp(sum(math.log(pick(f) / f[k]['ms']) for f in mine) / len(mine))
        print(f'\nGeometric mean against {PEERS[k]}, {len(mine)} of {len(rows)} networks: engine x{geo(lambda f: f["engine"]["ms"]):.3f}, '
              f'tiled x{geo(lambda f: f.get("tiled", f["engine"])["ms"]):.3f}, the better x{geo(lambda f: f["best_ms"]):.3f}')
    least = lambda f: min(f[k]['ms'] for k in peers if k in f)
    ratio = math.exp(sum(math.log(f['best_ms'] / least(f)) for f in rows.values()) / len(rows))
    print(f'\nAgainst the fastest of them: the better x{ratio:.3f} in the geometric mean, not first in '
          f'{sum(f["best_ms"] > least(f) for f in rows.values())} of {len(rows)} rows.')


def memory_table(rows, threads):
    peers = [k for k in PEERS if any(k in f for f in rows.values())]
    titles = [PEERS[k] for k in peers]
    print(f'\n### {count(threads)}: memory, MB\n')
    print(f'| network | growth: {" | ".join(titles)} | engine | tiled | planned: engine | tiled | process: {" | ".join(titles)} | '
          'engine | tiled |')
    print('|---|' + '--:|' * (2 * len(peers) + 6))
    number = lambda x: f'{x:.0f}' if x >= 10 else f'{x:.1f}'
    own = ('engine', 'tiled')
    for name, f in rows.items():
        cells = [number(f[k]['rise_mb']) if k in f else '' for k in peers]
        cells += [number(f[k]['peak_mb'] + f['output_mb']) if k in f else '' for k in own]
        cells += [number(f[k]['planned_mb']) if k in f else '' for k in own]
        cells += [number(f[k]['total_mb']) if k in f else '' for k in peers]
        cells += [number(f[k]['resident_mb'] - f['input_mb']) if k in f else '' for k in own]
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
        return print(json.dumps(machine(int(sys.argv[2]), sys.argv[3:] == ['--processor'])))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--threads', default='1,2', type=lambda t: [int(n) for n in t.split(',')])
    p.add_argument('--only', action='append')
    p.add_argument('--repeat', type=int, default=5)
    p.add_argument('--peers', metavar='PYTHON')
    p.add_argument('--processor', action='store_true')
    p.add_argument('--models', metavar='DIR')
    p.add_argument('--keep', metavar='DIR')
    p.add_argument('--json')
    a = p.parse_args()
    results, failed = {}, 0
    with tempfile.TemporaryDirectory() as tmp:
        for threads in a.threads:
            env = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
            m = json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), '--machine', str(threads),
                                            *(['--processor'] if a.processor else [])], env=env,
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
                wrong = [k for k in ('engine', 'tiled') if k in f and not f[k]['error'] <= ALLOWED]
                failed += bool(wrong)
                print(name, ', '.join(f'{k} {f[k]["ms"]:.1f} ms' for k in (*PEERS, 'engine', 'tiled') if k in f),
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
