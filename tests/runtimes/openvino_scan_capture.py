"""OpenVINO: a Scan whose body reads a value of the outer graph is refused."""
import numpy as np
import openvino as ov
from onnx import TensorProto as T, helper as h

body = h.make_graph([h.make_node('Add', ['row', 'c'], ['row_'])], 'body', [h.make_tensor_value_info('row', T.FLOAT, [3])],
                    [h.make_tensor_value_info('row_', T.FLOAT, [3])])
nodes = [h.make_node('Scan', ['x'], ['y'], num_scan_inputs=1, body=body)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [2, 3]), h.make_tensor_value_info('c', T.FLOAT, [3])],
                     [h.make_tensor_value_info('y', T.FLOAT, [2, 3])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

x, c = np.arange(6, dtype='f4').reshape(2, 3), np.ones(3, 'f4')
print('expected', (x + c).tolist(), flush=True)
try:
    got = ov.compile_model(ov.Core().read_model(model.SerializeToString()), 'CPU')({'x': x, 'c': c})[0]
except RuntimeError as ex:
    print('got      error:', ' '.join(str(ex).split())[:300])
    print('shown')
else:
    print('got     ', got.tolist())
    print('not shown' if np.array_equal(got, x + c) else 'shown')
