#!/usr/bin/env python3
"""Run models in one runtime, each in a process of its own.

  matrix_worker.py RUNTIME JOBS.json      (Python of the environment that has the runtime)
  matrix_worker.py --list                 names and versions as JSON, those that cannot be imported left out

JOBS.json: [{"model": FILE, "feeds": F.npz, "out": F.npz, "seconds": N}]. For each job the runtime, imported once, is forked off. The child
loads the model, runs it and writes the outputs in graph order as arr_0, arr_1...; a line of JSON on stdout says what came of it:

  {"ran": true}      {"refused": words}      {"crashed": signal, "words": last line that it wrote}

A runtime that does not answer in time is stopped and has refused: "time". Memory of the child is limited as well.
"""
import importlib
import importlib.metadata
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

MEMORY = 8 << 30          # bytes of data that a child may hold


# ---- adapters: (path of a model, {input: array}) -> arrays in graph order; what does not run raises ----

def graph_of(path):
    import onnx
    return onnx.load(path, load_external_data=False).graph


def input_names(path):
    g = graph_of(path)
    weights = {t.name for t in g.initializer}
    return [v.name for v in g.input if v.name not in weights]


def run_onnxruntime(path, feeds):
    import onnxruntime as ort
    so = ort.SessionOptions()
    so.intra_op_num_threads = 1
    so.log_severity_level = 4
    return ort.InferenceSession(path, so, providers=['CPUExecutionProvider']).run(None, feeds)


def run_openvino(path, feeds):
    import openvino as ov
    core = ov.Core()
    settings = {'PERFORMANCE_HINT': 'LATENCY', 'INFERENCE_PRECISION_HINT': 'f32', 'INFERENCE_NUM_THREADS': 1}
    compiled = core.compile_model(core.read_model(path), 'CPU', settings)
    result = compiled(feeds)
    return [result[out] for out in compiled.outputs]


def run_reference(path, feeds):
    import onnx
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(onnx.load(path)).run(None, feeds)


def run_tract(path, feeds):
    import tract
    model = tract.onnx().load(path)
    names = [model.input_name(k) for k in range(model.input_count())]
    runnable = model.into_model().into_runnable()
    return [t.to_numpy() for t in runnable.run([feeds[n] for n in names])]


def run_mnn(path, feeds):
    import _tools                      # the converter itself: its wrapper reports home
    import MNN
    import MNN.nn
    import MNN.numpy as mnp
    g = graph_of(path)
    converted = tempfile.mktemp(suffix='.mnn')
    _tools.mnnconvert(['mnnconvert', '-f', 'ONNX', '--modelFile', path, '--MNNModel', converted, '--bizCode', 'matrix'])
    if not os.path.exists(converted):
        raise RuntimeError('the converter wrote no file')
    names = input_names(path)
    try:
        net = MNN.nn.load_module_from_file(converted, names, [o.name for o in g.output])
        outs = net.onForward([MNN.expr.convert(to_mnn(MNN, mnp, feeds[n]), MNN.expr.NCHW) for n in names])
        return [MNN.expr.convert(o, MNN.expr.NCHW).read() for o in outs]
    finally:
        os.unlink(converted)


def to_mnn(MNN, mnp, array):
    import numpy as np
    kinds = {'float32': MNN.expr.float, 'int32': MNN.expr.int, 'int64': MNN.expr.int64, 'uint8': MNN.expr.uint8, 'int8': MNN.expr.int8}
    if array.dtype.name not in kinds:
        raise TypeError(f'no {array.dtype.name} inputs')
    if array.dtype == np.int64:
        array = array.astype(np.int32)
    return MNN.expr.const(array, list(array.shape), MNN.expr.NCHW, kinds[array.dtype.name])


def run_opencv(path, feeds):
    import cv2
    net = cv2.dnn.readNetFromONNX(path)
    for name, array in feeds.items():
        net.setInput(array, name)
    return list(net.forward([o.name for o in graph_of(path).output]))


def run_iree(path, feeds):
    import iree.compiler as compiler
    import iree.runtime as rt
    with tempfile.TemporaryDirectory() as tmp:
        mlir = os.path.join(tmp, 'm.mlir')
        tool = [sys.executable, '-m', 'iree.compiler.tools.import_onnx', path, '-o', mlir]
        p = subprocess.run(tool, capture_output=True, text=True)
        if p.returncode:
            raise RuntimeError(p.stderr.strip().splitlines()[-1] if p.stderr.strip() else 'the importer failed')
        binary = compiler.compile_file(mlir, input_type='onnx', target_backends=['llvm-cpu'], extra_args=['--iree-llvmcpu-target-cpu=host'])
    config = rt.Config('local-sync')
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.copy_buffer(context.instance, binary))
    name = next(n for n in context.modules if n != 'hal')
    functions = [f for f in context.modules[name].vm_module.function_names if not f.endswith('$async') and not f.startswith('__')]
    out = context.modules[name][functions[0]](*[feeds[n] for n in input_names(path)])
    return [o.to_host() for o in (out if isinstance(out, (list, tuple)) else [out])]


def run_tvm(path, feeds):
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    model = onnx.load(path)
    mod = from_onnx(model, keep_params_in_input=False)
    mod = relax.transform.DecomposeOpsForInference()(mod)
    machine = relax.VirtualMachine(relax.build(relax.get_pipeline('zero')(mod), target='llvm'), tvm.cpu())
    out = machine['main'](*[tvm.runtime.tensor(feeds[n]) for n in input_names(path)])
    return [o.numpy() for o in (out if hasattr(out, '__len__') and not hasattr(out, 'numpy') else [out])]


# name: (adapter, title, package whose version counts, modules that a fork may inherit)
RUNTIMES = {
    'onnxruntime': (run_onnxruntime, 'ONNX Runtime', 'onnxruntime', ['onnx', 'onnxruntime']),
    'openvino': (run_openvino, 'OpenVINO', 'openvino', ['onnx', 'openvino']),
    'reference': (run_reference, 'onnx reference', 'onnx', ['onnx', 'onnx.reference']),
    'tract': (run_tract, 'tract', 'tract', ['onnx', 'tract']),
    'mnn': (run_mnn, 'MNN', 'MNN', ['onnx']),
    'opencv': (run_opencv, "OpenCV's dnn", 'opencv-python-headless', ['onnx', 'cv2']),
    'iree': (run_iree, 'IREE', 'iree-base-compiler', ['onnx', 'iree.compiler', 'iree.runtime']),
    'tvm': (run_tvm, 'TVM', 'apache-tvm', ['onnx', 'tvm', 'tvm.relax.frontend.onnx']),
}


# ---- one job ----

def child(adapter, job, log):
    """In the fork: run, write, leave. What it prints goes to the log."""
    import numpy as np
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    try:
        with np.load(job['feeds']) as feeds:
            outs = adapter(job['model'], {k: feeds[k] for k in feeds.files})
        np.savez(job['out'], *[np.asarray(o) for o in outs])
        status = 0
    except BaseException as ex:        # what a binding raises need not be an Exception
        with open(job['out'] + '.words', 'w') as f:
            f.write(f'{type(ex).__name__}: {ex}')
        status = 1
    os._exit(status)


def wait_for(pid, seconds):
    """Wait status, or None when the time is over; then the child and what it started are gone."""
    end = time.monotonic() + seconds
    pause = 0.002
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def last_line(log):
    log.seek(0)
    lines = [x.strip() for x in log.read().decode('utf-8', 'replace').splitlines() if x.strip()]
    return lines[-1] if lines else ''


def run_job(adapter, job):
    for path in (job['out'], job['out'] + '.words'):
        if os.path.exists(path):
            os.unlink(path)
    with tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            child(adapter, job, log)
        status = wait_for(pid, job.get('seconds', 60))
        if status is None:
            return {'refused': 'time'}
        if os.WIFSIGNALED(status):
            return {'crashed': signal.Signals(os.WTERMSIG(status)).name, 'words': last_line(log)}
        if os.WEXITSTATUS(status) == 0 and os.path.exists(job['out']):
            return {'ran': True}
        if not os.path.exists(job['out'] + '.words'):
            return {'crashed': f'exit {os.WEXITSTATUS(status)}', 'words': last_line(log)}
        with open(job['out'] + '.words') as f:
            return {'refused': f.read(), 'words': last_line(log)}


def versions():
    found = {}
    for name, (_, title, package, modules) in RUNTIMES.items():
        try:
            for m in modules:
                importlib.import_module(m)
            found[name] = {'title': title, 'version': importlib.metadata.version(package)}
        except Exception as ex:
            print(f'{name}: {ex}', file=sys.stderr)
    return found


def main():
    if sys.argv[1:] == ['--list']:
        out = os.dup(1)
        os.dup2(2, 1)                  # some print when they are imported
        os.write(out, json.dumps(versions()).encode())
        return 0
    if len(sys.argv) != 3 or sys.argv[1] not in RUNTIMES:
        print(__doc__, file=sys.stderr)
        return 2
    os.environ['OPENBLAS_NUM_THREADS'] = os.environ['OMP_NUM_THREADS'] = '1'
    adapter, _, _, modules = RUNTIMES[sys.argv[1]]
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    importlib.import_module('numpy')
    for m in modules:
        importlib.import_module(m)
    with open(sys.argv[2]) as f:
        jobs = json.load(f)
    for job in jobs:
        answers.write(json.dumps(run_job(adapter, job)) + '\n')
        answers.flush()
    return 0


if __name__ == '__main__':
    sys.exit(main())
