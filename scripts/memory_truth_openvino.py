#!/usr/bin/env python3
"""Does OpenVINO's process take the memory that the tool predicts? Each model, untiled and tiled.

  memory_truth_openvino.py --tool TOOL --models DIR... [--only GLOB]... [--args "--goal memory"] [--json FILE]

Needs openvino, onnx and numpy. Models as memory_truth.py finds them. Measured: growth of the resident set from before the model is read to
the peak of three runs, in a process that has run another model: the libraries (75 MB) are not the model's. Inputs are the caller's; results
are read where OpenVINO leaves them. Memory that compiling takes and gives back is not counted, as little as by whoever loads a model once.
"""
import ctypes
import json
import os
import shlex
import subprocess
import sys
import tempfile

from memory_truth import options, predicted, table

CONFIG = {'PERFORMANCE_HINT': 'LATENCY', 'INFERENCE_PRECISION_HINT': 'f32', 'INFERENCE_NUM_THREADS': 1}


def status_mb(key):
    with open('/proc/self/status', encoding='ascii') as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(key))


def small_model():
    """A convolution, by OpenVINO's own operators: kernels and their libraries are loaded with it."""
    import numpy as np
    import openvino as ov
    from openvino import opset13 as ops
    x = ops.parameter([1, 16, 16, 16], np.float32)
    w = ops.constant(np.ones((16, 16, 3, 3), np.float32))
    return ov.Model([ops.relu(ops.convolution(x, w, [1, 1], [1, 1], [1, 1], [1, 1]))], [x])


def child(path, shapes):
    """Prints the growth in MB."""
    import numpy as np
    import onnx
    import openvino as ov
    core, rng = ov.Core(), np.random.default_rng(0)
    core.compile_model(small_model(), 'CPU', CONFIG)([np.zeros((1, 16, 16, 16), 'f4')])
    graph = onnx.load(path, load_external_data=False).graph
    weights, feeds = {i.name for i in graph.initializer}, {}
    for i in graph.input:
        kind = i.type.tensor_type
        shape = shapes.get(i.name) or [d.dim_value or 1 for d in kind.shape.dim]
        if i.name not in weights:
            feeds[i.name] = rng.random(shape).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    del graph
    trim = ctypes.CDLL('libc.so.6').malloc_trim
    trim(0)
    before = status_mb('VmRSS')

    def load():
        model = core.read_model(path)
        if shapes:
            model.reshape(shapes)
        return core.compile_model(model, 'CPU', CONFIG)
    compiled = load()
    trim(0)
    with open('/proc/self/clear_refs', 'w', encoding='ascii') as f:
        f.write('5')
    request = compiled.create_infer_request()
    for _ in range(3):
        request.infer(feeds, share_inputs=True)
    print(status_mb('VmHWM') - before)


def grow(path, shapes):
    p = subprocess.run([sys.executable, os.path.abspath(__file__), 'child', path, json.dumps(shapes)], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip().splitlines()[-1] if p.stderr.strip() else f'exit {p.returncode}')
    return float(p.stdout)


def look(case, args):
    name, path, shapes, dynamic = case
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, 'tiled.onnx')
        bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
        command = [args.tool, path, '-o', out, '--json', '--runtime', 'openvino', *bind, *shlex.split(args.args)]
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode:
            return {'name': name, 'why': p.stderr.strip()[-120:]}
        plan = json.loads(p.stdout)
        try:
            return {'name': name, 'regions': len(plan['regions']),
                    'predicted': {side: {'growth': predicted(plan[side])} for side in ('untiled', 'tiled')},
                    'measured': {side: {'growth': grow(m, shapes)} for side, m in (('untiled', path), ('tiled', out))}}
        except RuntimeError as error:
            return {'name': name, 'why': str(error)[-120:]}


def main():
    if sys.argv[1:2] == ['child']:
        return child(sys.argv[2], json.loads(sys.argv[3]))
    return table(look, options(__doc__).parse_args())


if __name__ == '__main__':
    sys.exit(main())
