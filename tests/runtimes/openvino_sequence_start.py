"""OpenVINO: a Loop inserts into a sequence that already holds a tensor; that tensor is dropped."""
import numpy as np
import openvino as ov
from onnx import TensorProto as T, helper as h

seq = lambda name: h.make_tensor_sequence_value_info(name, T.FLOAT, None)
nodes = [h.make_node('Identity', ['go'], ['go_']), h.make_node('Gather', ['x', 'r1'], ['v'], axis=0), h.make_node('SequenceInsert', ['s', 'v'], ['s_'])]
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go', T.BOOL, []), seq('s')],
                    [h.make_tensor_value_info('go_', T.BOOL, []), seq('s_')])
nodes = [h.make_node('Gather', ['x', 'r0'], ['first'], axis=0),
         h.make_node('SequenceConstruct', ['first'], ['start']),
         h.make_node('Loop', ['once', 'yes', 'start'], ['all'], body=body),
         h.make_node('ConcatFromSequence', ['all'], ['y'], axis=0)]
constants = [h.make_tensor('once', T.INT64, [], [1]), h.make_tensor('yes', T.BOOL, [], [True]),
             h.make_tensor('r0', T.INT64, [1], [0]), h.make_tensor('r1', T.INT64, [1], [1])]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [2, 3])], [h.make_tensor_value_info('y', T.FLOAT, [2, 3])], constants)
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

x = np.arange(6, dtype='f4').reshape(2, 3)
got = ov.compile_model(ov.Core().read_model(model.SerializeToString()), 'CPU')(x)[0]
print('expected', x.tolist())
print('got     ', got.tolist())
print('not shown' if np.array_equal(got, x) else 'shown')
