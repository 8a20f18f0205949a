#!/usr/bin/env python3
"""Regions as programs: region_programs.py TOOL MODEL... [--targets T,T] [--l2 SIZE,SIZE,SIZE] [--limit MACS] [--plan OPTIONS] [--run OPTIONS]

Every region of the models, forced (or as --plan asks: --plan='--form stream' has regions that stream), on each target and capacity: lowered
(inspect --dump-dir, program-N.tk), planned, interpreted with poisoned memory (run-kernel; --run='--device opencl': on a device), and compared
with what ONNX Runtime makes of the same values. None is left out but those of more
multiply-adds than --limit, where one is given. A line for each model, target and capacity; the reasons of regions that have no program; exit 1 where a
result differs or a program does not run.
"""
import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('tool')
parser.add_argument('models', nargs='+')
parser.add_argument('--targets', default='tlf-16m,ascend-a2,h200')
parser.add_argument('--l2', default='16K,128K,1M')
parser.add_argument('--limit', type=float, default=float('inf'))
parser.add_argument('--plan', default='--force', help='options of inspect')
parser.add_argument('--run', default='', help='options of run-kernel')
parser.add_argument('--most', type=int, default=1000, help='regions of one run')
parser.add_argument('--keep', help='folder for the dumps')
parser.add_argument('-v', action='store_true')
args = parser.parse_args()

NUMPY = {'f32': np.float32, 'f16': np.float16, 'f64': np.float64, 'i64': np.int64, 'i32': np.int32, 'i8': np.int8, 'u8': np.uint8, 'bool': np.bool_}
reasons = collections.Counter()
totals = collections.Counter()
failed = []


def values_of(path):
    """All values of the model by name, from one run on random inputs, constants included."""
    model = onnx.load(path)
    known = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    known |= {n.output[0]: onnx.numpy_helper.to_array(a.t) for n in model.graph.node if n.op_type == 'Constant' for a in n.attribute if a.name == 'value'}
    had = {o.name for o in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=o) for o in node.output if o and o not in had)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
    rng = np.random.default_rng(1)
    feeds = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        kind = {'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(float16)': np.float16}.get(i.type)
        feeds[i.name] = rng.standard_normal(shape).astype(kind) if kind else np.ones(shape, np.int64 if 'int64' in i.type else np.int32)
    names = [o.name for o in session.get_outputs()]
    return known | feeds | dict(zip(names, session.run(names, feeds)))


def macs(text):
    """What the interpreter computes, roughly: products of convolutions, as the text of the program has them."""
    shapes = {m[1]: [int(d) for d in m[2].split('x')] for m in re.finditer(r'(?:param|alloc|alias|subview) (\S+?)(?: = \S+)?: ([\dx]+) ', text)}
    trips, depth, total = [], 0, 0
    for line in text.splitlines():
        loop = re.match(r'\s*for \S+ in (\d+)\.\.(\d+)', line)
        product = re.match(r'\s*(\S+) = cube\.(conv|mmad|matmul)\((\S+?), (\S+?)[,)]', line)
        if loop:
            trips.append(int(loop[2]) - int(loop[1]))
        elif line.strip() == '}' and trips:
            trips.pop()
        elif product and all(product[k] in shapes for k in (1, 3, 4)):
            summed = shapes[product[4]][1:] if product[2] == 'conv' else shapes[product[3]][-1:]
            total += np.prod(trips) * np.prod(shapes[product[1]], dtype=float) * np.prod(summed, dtype=float)
    return total


def run_program(path, values, where):
    text = open(path, encoding='utf-8').read()
    if 'has no program: ' in text:
        if 'has no program: failed: ' in text:
            failed.append(f'{where}: {path}: {text.strip()}')
            return 'failed'
        reasons[text.split('has no program: ', 1)[1].strip()] += 1
        return 'none'
    if macs(text) > args.limit:
        return 'long'
    options = re.search(r'^# args: (.*)', text, re.M).group(1).split()
    with tempfile.TemporaryDirectory() as tmp:
        words, outputs = [], {}
        for kind, name, value in re.findall(r'^# (input|output) (\S+) = (.*)$', text, re.M):
            dims, dtype = re.search(r'param %s: (\S+) (\S+)' % re.escape(name), text).groups()
            if kind == 'output':
                outputs[name] = value
            elif value not in values:
                return 'folded' # made by the tool: ONNX Runtime has no such value
            else:
                file = os.path.join(tmp, f'i{len(words)}.npy')
                np.save(file, np.ascontiguousarray(values[value], NUMPY[dtype]).reshape([int(d) for d in dims.split('x')]))
                words += ['--input', f'{name}={file}']
        got = subprocess.run([args.tool, 'run-kernel', path, *options, *args.run.split(), '--target', where[1], *words, '--output-dir', tmp + '/out', '-q'], capture_output=True, text=True)
        if got.returncode:
            failed.append(f'{where}: {path}: {got.stderr.strip()}')
            return 'failed'
        for name, value in outputs.items():
            have = np.load(os.path.join(tmp, 'out', name.replace('/', '_') + '.npy') if os.path.exists(os.path.join(tmp, 'out', name.replace('/', '_') + '.npy')) else os.path.join(tmp, 'out', name + '.npy'))
            want = np.asarray(values[value]).reshape(have.shape)
            if np.issubdtype(want.dtype, np.floating):
                scale = max(1e-30, np.abs(want[np.isfinite(want)]).max(initial=0))
                worst = np.abs(have.astype(np.float64) - want.astype(np.float64)).max(initial=0) / scale
                bad = not worst <= (1e-4 if want.dtype == np.float32 else 5e-3) + 1e-6 / scale
            else:
                worst = np.count_nonzero(have != want)
                bad = worst > 0
            if bad:
                failed.append(f'{where}: {path}: {value} differs by {worst:.3g}')
                return 'differs'
    return 'equal'


for model in args.models:
    try:
        values = values_of(model)
    except Exception as e: # noqa: BLE001 what ONNX Runtime does not run is nothing to compare with
        print(f'{os.path.basename(model)}: left out: {str(e).splitlines()[0][:150]}')
        continue
    for target in args.targets.split(','):
        for l2 in args.l2.split(','):
            where = (os.path.basename(model), target, l2)
            with tempfile.TemporaryDirectory() as tmp:
                dump = os.path.join(args.keep, '-'.join(where)) if args.keep else os.path.join(tmp, 'd')
                made = subprocess.run([args.tool, 'inspect', model, *args.plan.split(), '--target', target, '--l2', l2, '-q', '--dump-dir', dump], capture_output=True, text=True)
                if made.returncode:
                    failed.append(f'{where}: {made.stderr.strip()}')
                    continue
                count = collections.Counter(run_program(p, values, where) for p in sorted(glob.glob(f'{dump}/program-*.tk'))[:args.most])
                totals.update(count)
                print(*where, dict(count), flush=True)
                if args.v and failed:
                    print(failed[-1])
for why, n in reasons.most_common():
    print(f'{n:5} without program: {why}')
for line in failed[:40]:
    print('FAIL', line)
print(f'{sum(totals.values())} regions: {dict(totals)}')
sys.exit(bool(failed))
