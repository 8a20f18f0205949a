"""onnx reference: a MaxPool with pads on top that differ from those at the bottom exchanges them with the sides."""
import numpy as np
from onnx import TensorProto as T, helper as h
from onnx.reference import ReferenceEvaluator

nodes = [h.make_node('MaxPool', ['x'], ['y'], kernel_shape=[3, 3], pads=[0, 1, 0, 1])]       # top, left, bottom, right
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [1, 1, 8, 6])], [h.make_tensor_value_info('y', T.FLOAT, [1, 1, 6, 6])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

print('expected', (1, 1, 6, 6))
got = ReferenceEvaluator(model).run(None, {'x': np.ones((1, 1, 8, 6), 'f4')})[0]
print('got     ', got.shape)
print('not shown' if got.shape == (1, 1, 6, 6) else 'shown')
