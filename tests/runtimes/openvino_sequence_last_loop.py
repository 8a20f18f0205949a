"""OpenVINO: two Loops that insert into one sequence; only the pieces of the last one come out."""
import numpy as np
import openvino as ov
from onnx import TensorProto as T, helper as h


def seq(name):
    return h.make_tensor_sequence_value_info(name, T.FLOAT, None)


def insert_row(k, row):
    """A body that inserts one row of x into the sequence it carries."""
    nodes = [h.make_node('Identity', [f'go{k}'], [f'go{k}_']),
             h.make_node('Gather', ['x', row], [f'v{k}'], axis=0),
             h.make_node('SequenceInsert', [f's{k}', f'v{k}'], [f's{k}_'])]
    ins = [h.make_tensor_value_info(f'i{k}', T.INT64, []), h.make_tensor_value_info(f'go{k}', T.BOOL, []), seq(f's{k}')]
    return h.make_graph(nodes, f'body{k}', ins, [h.make_tensor_value_info(f'go{k}_', T.BOOL, []), seq(f's{k}_')])


nodes = [h.make_node('SequenceEmpty', [], ['none'], dtype=T.FLOAT),
         h.make_node('Loop', ['once', 'yes', 'none'], ['first'], body=insert_row(1, 'r0')),
         h.make_node('Loop', ['once', 'yes', 'first'], ['both'], body=insert_row(2, 'r1')),
         h.make_node('ConcatFromSequence', ['both'], ['y'], axis=0)]
constants = [h.make_tensor('once', T.INT64, [], [1]), h.make_tensor('yes', T.BOOL, [], [True]),
             h.make_tensor('r0', T.INT64, [1], [0]), h.make_tensor('r1', T.INT64, [1], [1])]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [2, 3])], [h.make_tensor_value_info('y', T.FLOAT, [2, 3])], constants)
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

x = np.arange(6, dtype='f4').reshape(2, 3)
got = ov.compile_model(ov.Core().read_model(model.SerializeToString()), 'CPU')(x)[0]
print('expected', x.tolist())
print('got     ', got.tolist())
print('not shown' if np.array_equal(got, x) else 'shown')
