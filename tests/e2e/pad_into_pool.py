"""Pad, a pool with ceil_mode, and what reads its rows: tiled by force, ONNX Runtime gives what it gives untiled.
pad_into_pool.py TOOL FOLDER"""
import os
import subprocess
import sys

import numpy as np
import onnxruntime as ort

from builder import Net, save

tool, folder = sys.argv[1:3]
# kernel, stride, rows of x, end pads, rows that ONNX Runtime gives, whether the standard gives one more
CASES = [('MaxPool', 3, 2, 58, 2, 29, True), ('MaxPool', 4, 3, 54, 3, 18, True), ('AveragePool', 3, 2, 58, 2, 29, True),
         ('MaxPool', 3, 2, 57, 2, 29, False), ('MaxPool', 3, 2, 58, 1, 29, False), ('MaxPool', 3, 2, 58, 0, 29, False)]


def model(op, k, s, rows, end, free):
    net = Net(opset=17)
    v = net.op('Relu', net.input('x', ['n', 4, 'h', 'w'] if free else [2, 4, rows, rows]))
    v = net.op('Pad', v, net.const([0] * 6 + [end, end], 'i8'))
    v = net.op(op, v, kernel_shape=[k, k], strides=[s, s], ceil_mode=1)
    v = net.op('Concat', net.op('Sigmoid', v), net.op('Cos', v), axis=1)
    net.op('ReduceMax', v, out='y', axes=[1], keepdims=1)
    net.output('y', ['n', 1, 'a', 'b'] if free else None)
    return net.model()


def rows_of(path, feeds, optimised=True):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    if not optimised: o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider']).run(None, feeds)[0]


bad = tiled = 0
for op, k, s, rows, end, there, lost in CASES:
    feeds = {'x': np.random.default_rng(0).normal(0, 1, (2, 4, rows, rows)).astype('f4')}
    for free in (False, True):
        path = save(model(op, k, s, rows, end, free), os.path.join(folder, 'lost.onnx' if lost else 'm.onnx'))
        want = rows_of(path, feeds)
        # the figures of the table are ONNX Runtime's own: no Pad is merged where they do not hold
        if want.shape[2] != there or rows_of(path, feeds, False).shape[2] != there + lost:
            print(f'{op} {k} {s} {rows} + {end}: ONNX Runtime gives {want.shape}')
            bad += 1
        for form in ('scan', 'loop', 'unrolled'):
            out = os.path.join(folder, 'out.onnx')
            said = subprocess.run([tool, path, '-o', out, '--force', '--l2', '8K', '--form', form, '--json'], capture_output=True, text=True)
            tiled += '"form"' in said.stdout
            got = None if said.returncode else rows_of(out, feeds)
            if got is None or got.shape != want.shape or not np.allclose(got, want, rtol=0, atol=1e-6):
                print(f'{op} {k} {s} {rows} + {end} {form} free {free}: {said.stderr.strip() or got.shape}, not {want.shape}')
                bad += 1
if tiled < 9:
    print(f'{tiled} runs with tiles: nothing was looked at')
    bad += 1
sys.exit(bad != 0)
