"""OpenVINO: one Loop that inserts pieces of unequal length into a sequence; wrong values, or a corrupted heap."""
import numpy as np
import openvino as ov
from onnx import TensorProto as T, helper as h

N, STEPS = 4096, 8                     # pieces of 1, 2, 4... rows
ENDS = [2 ** (k + 1) - 1 for k in range(STEPS)]
seq = lambda name: h.make_tensor_sequence_value_info(name, T.FLOAT, None)
nodes = [h.make_node('Identity', ['go'], ['go_']),
         h.make_node('Gather', ['starts', 'i'], ['from'], axis=0), h.make_node('Gather', ['ends', 'i'], ['to'], axis=0),
         h.make_node('Slice', ['x', 'from', 'to', 'zero'], ['v']),
         h.make_node('SequenceInsert', ['s', 'v'], ['s_'])]
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go', T.BOOL, []), seq('s')],
                    [h.make_tensor_value_info('go_', T.BOOL, []), seq('s_')])
nodes = [h.make_node('SequenceEmpty', [], ['none'], dtype=T.FLOAT),
         h.make_node('Loop', ['steps', 'yes', 'none'], ['all'], body=body),
         h.make_node('ConcatFromSequence', ['all'], ['y'], axis=0)]
constants = [h.make_tensor('steps', T.INT64, [], [STEPS]), h.make_tensor('yes', T.BOOL, [], [True]), h.make_tensor('zero', T.INT64, [1], [0]),
             h.make_tensor('starts', T.INT64, [STEPS, 1], [0] + ENDS[:-1]), h.make_tensor('ends', T.INT64, [STEPS, 1], ENDS)]
shape = [ENDS[-1], N]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, shape)], [h.make_tensor_value_info('y', T.FLOAT, shape)], constants)
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

x = np.arange(shape[0] * N, dtype='f4').reshape(shape)
print('expected', x.shape, flush=True)
got = ov.compile_model(ov.Core().read_model(model.SerializeToString()), 'CPU')(x)[0]
print('got     ', got.shape, 'equal' if np.array_equal(got, x) else 'other values')
print('not shown' if np.array_equal(got, x) else 'shown')
