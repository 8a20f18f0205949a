"""Rows of a state that are set one by one, as exporters write it: only its shape is read of the row before. unread.py TOOL FOLDER"""
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

from builder import Net, save

tool, d = sys.argv[1:]
ROWS, ROW, STATE = 24, 8192, 24 * 8192 * 4


def rows_set():
    net = Net(seed=5)
    x = net.input('x', [ROWS, ROW])
    mean = net.op('ReduceMean', x, axes=[0, 1], keepdims=1)
    state = net.op('Sin', x)
    for k in range(ROWS):
        row = net.op('Gather', state, net.const(np.array([k], 'i8'), 'i8'), axis=0)
        update = net.op('Expand', mean, net.op('Shape', row))
        state = net.op('ScatterND', state, net.const(np.array([[k]], 'i8'), 'i8'), update)
    net.output(net.op('Cos', state), [ROWS, ROW])
    return net.model()


path = save(rows_set(), f'{d}/rows.onnx')
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = f'{d}/loaded.onnx'
onnxruntime.InferenceSession(path, options)
loaded = [n.op_type for n in onnx.load(f'{d}/loaded.onnx').graph.node]
assert loaded.count('ScatterND') == ROWS and 'Gather' not in loaded, loaded  # ONNX Runtime leaves them out

args = [tool, 'inspect', path, '--goal', 'memory', '--target', 'cpu-generic', '--threads', '1', '--json']
growth = json.loads(subprocess.run(args, capture_output=True, text=True, check=True).stdout)['untiled']['growth_bytes']
assert STATE < growth < 12 * STATE, growth / STATE  # 57, if each row is read after the next is set
