"""onnx reference: a Loop without a condition input runs no step; the standard says that it runs all of them."""
import numpy as np
from onnx import TensorProto as T, helper as h
from onnx.reference import ReferenceEvaluator

nodes = [h.make_node('Identity', ['go'], ['go_']), h.make_node('Add', ['sum', 'x'], ['sum_'])]
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go', T.BOOL, []),
                                    h.make_tensor_value_info('sum', T.FLOAT, [2])],
                    [h.make_tensor_value_info('go_', T.BOOL, []), h.make_tensor_value_info('sum_', T.FLOAT, [2])])
nodes = [h.make_node('Loop', ['trips', '', 'x'], ['y'], body=body)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [2])], [h.make_tensor_value_info('y', T.FLOAT, [2])],
                     [h.make_tensor('trips', T.INT64, [], [3])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

x = np.array([1, 2], 'f4')
print('expected', (4 * x).tolist())
got = ReferenceEvaluator(model).run(None, {'x': x})[0]
print('got     ', got.tolist())
print('not shown' if np.array_equal(got, 4 * x) else 'shown')
