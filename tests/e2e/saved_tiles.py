"""What saved_tiles.sh has in Python: saved_tiles.py TOOL FOLDER"""
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort

from builder import Net, save
from checks import outputs


def network(op):
    """Convolutions with `op` behind each."""
    net = Net(7, opset=18)
    v, c = net.input('x', [1, 4, 96, 64]), 4
    for wide in 8, 8, 8, 4:
        v, c = net.op(op, net.conv(v, c, wide, bias=.1, pads=[1] * 4)), wide
    net.op('Tanh', v, out='y')
    net.output('y', [None] * 4)
    return net.model()


def operators(graph):
    """Of the graph, and of its bodies."""
    top, inner = {n.op_type for n in graph.node}, set()
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                inner |= set.union(*operators(a.g))
    return top, inner


def saved(path, level):
    options, out = ort.SessionOptions(), path.replace('.onnx', f'_{level}.onnx')
    options.optimized_model_filepath, options.log_severity_level = out, 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    return out


tool, folder = sys.argv[1:]
fed = {'x': np.random.default_rng(1).standard_normal((1, 4, 96, 64)).astype('f4')}
for op in 'HardSwish', 'Mish':
    path, out = save(network(op), f'{folder}/{op}.onnx'), f'{folder}/{op}_tiled.onnx'
    want = outputs(path, fed)
    for form in 'loop-peeled', 'loop':
        subprocess.run([tool, path, '-o', out, '-q', '--force', '--form', form, '--l2', '16K', '--target', 'cpu-generic'], check=True)
        top, inner = operators(onnx.load(out).graph)
        assert {'Conv', 'Mul'} <= inner and op not in inner, (op, form, top, inner)
        for level in 'ORT_ENABLE_BASIC', 'ORT_ENABLE_EXTENDED':
            for a, b in zip(outputs(saved(out, level), fed), want, strict=True):
                assert np.array_equal(a, b) or np.abs(a - b).max() <= 1e-5 * np.abs(b).max(), (op, form, level)
