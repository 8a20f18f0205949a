#!/usr/bin/env python3
"""Models of page.sh in FOLDER: outside.onnx with its weights in outside.bin, free.onnx with free sizes, broken.onnx that is none."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

FOLDER = sys.argv[1]


def convolutions(name, height, width):
    """Six of them: enough to be tiled."""
    random = np.random.default_rng(1)
    nodes, weights, last = [], [], 'x'
    for k in range(6):
        channels = 4 if k == 0 else 16
        w = random.standard_normal((16, channels, 3, 3)).astype(np.float32) / 12
        weights.append(numpy_helper.from_array(w, f'w{k}'))
        nodes.append(helper.make_node('Conv', [last, f'w{k}'], [f'y{k}'], name=f'conv{k}', pads=[1, 1, 1, 1]))
        last = f'y{k}'
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info('x', T.FLOAT, [1, 4, height, width])],
                              [helper.make_tensor_value_info(last, T.FLOAT, [1, 16, height, width])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


onnx.save(convolutions('outside', 256, 256), os.path.join(FOLDER, 'outside.onnx'), save_as_external_data=True, location='outside.bin',
          size_threshold=0)
onnx.save(convolutions('free', 'height', 'width'), os.path.join(FOLDER, 'free.onnx'))
with open(os.path.join(FOLDER, 'broken.onnx'), 'wb') as f:
    f.write(b'no model at all\n' * 8)
