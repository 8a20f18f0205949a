"""MNN: a Loop with neither a condition nor a carried value crashes the converter or the run."""
import os
import tempfile
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h
import _tools
import MNN
import MNN.nn

nodes = [h.make_node('Identity', ['go'], ['go_']), h.make_node('Gather', ['x', 'i'], ['row'], axis=0)]
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go', T.BOOL, [])],
                    [h.make_tensor_value_info('go_', T.BOOL, []), h.make_tensor_value_info('row', T.FLOAT, [3])])
nodes = [h.make_node('Loop', ['trips', ''], ['y'], body=body)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [2, 3])], [h.make_tensor_value_info('y', T.FLOAT, [2, 3])],
                     [h.make_tensor('trips', T.INT64, [], [2])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 13)], ir_version=8)

x = np.arange(6, dtype='f4').reshape(2, 3)
print('expected', x.tolist(), flush=True)
with tempfile.TemporaryDirectory() as tmp:
    path, converted = os.path.join(tmp, 'm.onnx'), os.path.join(tmp, 'm.mnn')
    onnx.save(model, path)
    _tools.mnnconvert(['mnnconvert', '-f', 'ONNX', '--modelFile', path, '--MNNModel', converted, '--bizCode', 'test'])
    net = MNN.nn.load_module_from_file(converted, ['x'], ['y'])
    got = np.array(net.onForward([MNN.expr.const(x, [2, 3], MNN.expr.NCHW)])[0].read())
print('got     ', got.tolist())
print('not shown' if np.array_equal(got, x) else 'shown')
