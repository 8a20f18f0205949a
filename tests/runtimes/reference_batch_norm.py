"""onnx reference: BatchNormalization before opset 14 computes with the statistics of its input, too."""
import numpy as np
from onnx import TensorProto as T, helper as h
from onnx.reference import ReferenceEvaluator

nodes = [h.make_node('BatchNormalization', ['x', 'scale', 'bias', 'mean', 'var'], ['y'], epsilon=0.0)]
constants = [h.make_tensor(n, T.FLOAT, [1], [v]) for n, v in (('scale', 1), ('bias', 0), ('mean', 0), ('var', 1))]
info = lambda name: h.make_tensor_value_info(name, T.FLOAT, [1, 1, 2])
model = h.make_model(h.make_graph(nodes, 'g', [info('x')], [info('y')], constants), opset_imports=[h.make_opsetid('', 13)], ir_version=8)

x = np.array([[[10, 20]]], 'f4')
print('expected', x.tolist())
got = ReferenceEvaluator(model).run(None, {'x': x})[0]
print('got     ', got.tolist())
print('not shown' if np.allclose(got, x) else 'shown')
