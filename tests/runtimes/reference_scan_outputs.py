"""onnx reference: scan outputs of a Loop are concatenated along their first axis where the standard stacks them."""
import numpy as np
from onnx import TensorProto as T, helper as h
from onnx.reference import ReferenceEvaluator

nodes = [h.make_node('Identity', ['go'], ['go_']), h.make_node('Neg', ['x'], ['v'])]
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go', T.BOOL, [])],
                    [h.make_tensor_value_info('go_', T.BOOL, []), h.make_tensor_value_info('v', T.FLOAT, [2, 3])])
nodes = [h.make_node('Loop', ['trips', 'yes'], ['y'], body=body)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [2, 3])], [h.make_tensor_value_info('y', T.FLOAT, [4, 2, 3])],
                     [h.make_tensor('trips', T.INT64, [], [4]), h.make_tensor('yes', T.BOOL, [], [True])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

print('expected', (4, 2, 3))
got = ReferenceEvaluator(model).run(None, {'x': np.ones((2, 3), 'f4')})[0]
print('got     ', got.shape)
print('not shown' if got.shape == (4, 2, 3) else 'shown')
