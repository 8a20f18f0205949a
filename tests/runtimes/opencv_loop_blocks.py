"""OpenCV's dnn: what a convolution of 8 channels makes in a Loop is stacked in blocks of channels, and taken for plain values."""
import os
import sys
import tempfile
import cv2
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

H, W = 16, 12
ints = lambda name, values: numpy_helper.from_array(np.array(values, np.int64), name)
nodes = [h.make_node('Identity', ['go'], ['go_']),
         h.make_node('Gather', ['starts', 'i'], ['from']), h.make_node('Gather', ['ends', 'i'], ['to']),
         h.make_node('Slice', ['x', 'from', 'to', 'axes'], ['piece']), h.make_node('Reshape', ['piece', 'shape'], ['window']),
         h.make_node('Conv', ['window', 'w'], ['v'], kernel_shape=[3, 3], pads=[0, 1, 0, 1])]
last = 'v'
if '--identity' in sys.argv:           # keeps clear of it
    nodes.append(h.make_node('Identity', ['v'], ['u']))
    last = 'u'
weight = np.zeros((8, 8, 3, 3), 'f4')
weight[range(8), range(8), 1, 1] = 1
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go', T.BOOL, [])],
                    [h.make_tensor_value_info('go_', T.BOOL, []), h.make_tensor_value_info(last, T.FLOAT, [1, 8, 4, W])],
                    [ints('starts', [[1], [5], [9]]), ints('ends', [[7], [11], [15]]), ints('axes', [2]), ints('shape', [1, 8, 6, W]),
                     numpy_helper.from_array(weight, 'w')])
nodes = [h.make_node('Loop', ['trips', 'yes'], ['stack'], body=body), h.make_node('Reshape', ['stack', 'parts'], ['a']),
         h.make_node('Transpose', ['a'], ['b'], perm=[1, 2, 0, 3, 4]), h.make_node('Reshape', ['b', 'whole'], ['c']),
         h.make_node('Slice', ['x', 'zero', 'two', 'axis'], ['top']), h.make_node('Concat', ['top', 'c'], ['y'], axis=2)]
constants = [ints('trips', 3), numpy_helper.from_array(np.array(True), 'yes'), ints('parts', [3, 1, 8, 4, W]), ints('whole', [1, 8, 12, W]),
             ints('zero', [0]), ints('two', [2]), ints('axis', [2])]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [1, 8, H, W])], [h.make_tensor_value_info('y', T.FLOAT, [1, 8, 14, W])],
                     constants)
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 13)], ir_version=8)
onnx.checker.check_model(model, full_check=True)

x = np.arange(8 * H * W, dtype='f4').reshape(1, 8, H, W)
want = x[:, :, :14]
print('expected', want.shape, flush=True)
with tempfile.TemporaryDirectory() as tmp:
    path = os.path.join(tmp, 'm.onnx')
    onnx.save(model, path)
    net = cv2.dnn.readNetFromONNX(path)
    net.setInput(x, 'x')
    got = net.forward('y')
equal = got.shape == want.shape and np.array_equal(got, want)
print('got     ', got.shape, 'equal' if equal else 'other values')
print('not shown' if equal else 'shown')
