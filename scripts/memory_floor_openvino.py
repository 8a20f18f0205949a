#!/usr/bin/env python3
"""What would OpenVINO's process take of a model if no activation took memory? The least that a plan could reach.

  memory_floor_openvino.py --models DIR... [--tool TOOL] [--written] [--only GLOB]... [--args "--goal memory"] [--json FILE]

Needs openvino, onnx and numpy. Models as memory_truth.py finds them. Each runs in a process of its own; all figures are growth of its
resident set, MB, from before OpenVINO's libraries were there:

  untiled    the peak of three runs, results copied as a caller does
  loaded     before the first run: the libraries, the model, its weights and their packed copies
  ends       what inputs and results take on their way through: measured with a model of the same inputs and results and nothing between
  once       a model of the same inputs and results with the weights in it, each read by a maximum and nothing else: they are held once, as
             they are, and not packed before the first run (Gathers whose index is computed, as weights that are late have them)
  floor      the lesser of loaded + ends and once; its part of untiled
  tiled      with --tool: the peak of the model tiled for OpenVINO; its part of untiled; how many times the floor it is

The last lines have geometric means. `once` is loose: a convolution's kernels, its packed weights and one tile of its input and result come on
top in every network that has one. With --written, the growth until it is loaded is measured of two more files, and the least counts,

  outside    weights in a file beside the model, which OpenVINO maps
  folded     BatchNormalizations folded into the convolutions before them (only where there are some)
"""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

from memory_truth import chosen
from memory_truth_openvino import CONFIG, status_mb


LATE = 1 << 16  # bytes of the least constant that is read late


def largest(x):
    """Of a node's result, in float32."""
    import numpy as np
    from openvino import opset13 as ops
    rank = len(x.get_output_shape(0))
    return ops.convert(ops.reduce_max(x, np.arange(rank), False) if rank else x, 'f32')


def read_late(model, one):
    """`one` and the model's weights, each read when the model runs, and not before."""
    import numpy as np
    from openvino import opset13 as ops
    zero = ops.convert(ops.multiply(one, np.float32(0)), 'i64')
    for node in model.get_ops():
        if node.get_type_name() == 'Constant' and node.data.nbytes >= LATE:
            one = ops.maximum(one, largest(ops.gather(ops.constant(node.data[np.newaxis]), zero, np.int64(0))))
    return one


def hollow(model, weights):
    """A model with the same inputs and results, which are spread from one number; with its weights, too?"""
    import openvino as ov
    from openvino import opset13 as ops
    inputs = [ops.parameter(list(i.shape), i.get_element_type()) for i in model.inputs]
    one = largest(inputs[0])
    one = read_late(model, one) if weights else one
    outputs = [ops.broadcast(ops.convert(one, o.get_element_type().to_string()), list(o.shape)) for o in model.outputs]
    return ov.Model(outputs, inputs)


def child(path, shapes, kind):
    """Prints [peak, loaded] in MB; kind: '', 'hollow', or 'once' for one with weights."""
    import numpy as np
    before = status_mb('VmRSS')
    import openvino as ov
    core, rng = ov.Core(), np.random.default_rng(0)
    model = core.read_model(path)
    if shapes:
        model.reshape(shapes)
    if kind:
        model = hollow(model, kind == 'once')
    compiled = core.compile_model(model, 'CPU', CONFIG)
    del model  # it holds the weights as they were before BatchNormalizations were folded into them
    loaded = status_mb('VmRSS') - before
    feeds = [rng.random(list(i.shape)).astype(i.get_element_type().to_dtype()) for i in compiled.inputs]
    with open('/proc/self/clear_refs', 'w', encoding='ascii') as f:
        f.write('5')
    for _ in range(3):
        result = compiled(feeds)
        copies = [result[k].copy() for k in range(len(compiled.outputs))]
        del result, copies
    print(json.dumps([status_mb('VmHWM') - before, loaded]))


def measure(path, shapes, kind=''):
    command = [sys.executable, os.path.abspath(__file__), 'child', path, json.dumps(shapes), kind]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip().splitlines()[-1][-120:] if p.stderr.strip() else f'exit {p.returncode}')
    return json.loads(p.stdout)


def measure_tiled(case, args):
    _, path, shapes, dynamic = case
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, 'tiled.onnx')
        bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
        command = [args.tool, path, '-o', out, '-q', '--runtime', 'openvino', *bind, *shlex.split(args.args)]
        subprocess.run(command, capture_output=True, text=True, check=True)
        return measure(out, shapes)[0]


def fold_norms(model):
    """BatchNormalizations with constants, into the convolution whose result they alone read. Returns how many."""
    import numpy as np
    from onnx import numpy_helper
    graph = model.graph
    constants = {t.name: t for t in graph.initializer}
    made = {o: n for n in graph.node for o in n.output}
    reads = [i for n in graph.node for i in n.input] + [o.name for o in graph.output]
    gone = []
    for norm in (n for n in graph.node if n.op_type == 'BatchNormalization'):
        conv = made.get(norm.input[0])
        if conv is None or conv.op_type != 'Conv' or reads.count(norm.input[0]) != 1:
            continue
        names = [*norm.input[1:5], *conv.input[1:]]
        if not all(k in constants for k in names):
            continue
        scale, shift, mean, variance, weights, *bias = (numpy_helper.to_array(constants[k]) for k in names)
        epsilon = next((a.f for a in norm.attribute if a.name == 'epsilon'), 1e-5)
        factor = scale / np.sqrt(variance + np.float32(epsilon))
        new = {'weights': weights * factor.reshape(-1, *[1] * (weights.ndim - 1)), 'bias': ((bias[0] if bias else 0) - mean) * factor + shift}
        for key, array in new.items():
            graph.initializer.append(numpy_helper.from_array(array.astype(weights.dtype), f'{norm.output[0]}/{key}'))
        inputs = [conv.input[0], *(f'{norm.output[0]}/{k}' for k in new)]
        del conv.input[:]
        conv.input.extend(inputs)
        conv.output[0] = norm.output[0]
        gone.append(norm)
    for norm in gone:
        graph.node.remove(norm)
    used = {i for n in graph.node for i in n.input}
    kept = [t for t in graph.initializer if t.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return len(gone)


def measure_written(path, shapes, row):
    """The same network, written otherwise: what it holds once it is loaded."""
    import onnx
    with tempfile.TemporaryDirectory() as tmp:
        out, model = os.path.join(tmp, 'm.onnx'), onnx.load(path)
        if fold_norms(model):
            onnx.save(model, out)
            row['folded'] = measure(out, shapes)[1]
        onnx.save(onnx.load(path), out, save_as_external_data=True, location='weights.bin', size_threshold=1024)
        row['outside'] = measure(out, shapes)[1]


def look(case, args):
    name, path, shapes, _ = case
    peak, loaded = measure(path, shapes)
    through = measure(path, shapes, 'hollow')
    ends, once = through[0] - through[1], measure(path, shapes, 'once')[0]
    row = {'name': name, 'untiled': peak, 'loaded': loaded, 'ends': ends, 'once': once, 'floor': min(loaded + ends, once, peak)}
    if args.tool:
        row['tiled'] = measure_tiled(case, args)
    if args.written:
        measure_written(path, shapes, row)
        row['floor'] = min(row['floor'], *(row[k] + ends for k in ('outside', 'folded') if k in row))
    return row


def show(row):
    text = f"{row['name']:28s} untiled {row['untiled']:6.0f}  loaded {row['loaded']:6.0f}  ends {row['ends']:6.0f}  once {row['once']:6.0f}"
    for key in (k for k in ('floor', 'tiled') if k in row):
        text += f"  {key} {row[key]:6.0f} (x{row[key] / row['untiled']:.2f})"
    if 'tiled' in row:
        text += f"  x{row['tiled'] / row['floor']:.2f} of the floor"
    for key in (k for k in ('outside', 'folded') if k in row):
        text += f"  {key} {row[key]:6.0f}"
    return text


def main():
    if sys.argv[1:2] == ['child']:
        return child(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4])
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--models', action='append', required=True)
    a.add_argument('--tool', help='also tile with it')
    a.add_argument('--written', action='store_true', help='also load the same networks, written otherwise')
    a.add_argument('--only', action='append')
    a.add_argument('--args', default='--goal memory')
    a.add_argument('--json')
    args = a.parse_args()
    rows = []
    for case in chosen(args):
        try:
            rows.append(look(case, args))
            print(show(rows[-1]), flush=True)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(f'{case[0]:28s} {error}', flush=True)
    for key in ('floor', 'tiled'):
        parts = [math.log(r[key] / r['untiled']) for r in rows if key in r]
        if parts:
            print(f'{key}: geometric mean x{math.exp(sum(parts) / len(parts)):.2f} of untiled over {len(parts)} models')
    near = [math.log(r['tiled'] / r['floor']) for r in rows if 'tiled' in r]
    if near:
        print(f'tiled: geometric mean x{math.exp(sum(near) / len(near)):.2f} of the floor')
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
