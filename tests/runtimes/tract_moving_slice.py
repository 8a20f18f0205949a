"""tract: a Slice whose start moves with the steps of a Scan is refused, although its length is given by the shape behind it."""
import os
import tempfile
import numpy as np
import onnx
import tract
from onnx import TensorProto as T, helper as h

nodes = [h.make_node('Slice', ['state', 'from', 'to', 'zero'], ['piece']), h.make_node('Reshape', ['piece', 'shape'], ['v']),
         h.make_node('Identity', ['state'], ['state_'])]
constants = [h.make_tensor('zero', T.INT64, [1], [0]), h.make_tensor('shape', T.INT64, [2], [2, 3])]
body = h.make_graph(nodes, 'body', [h.make_tensor_value_info('state', T.FLOAT, [4, 3]), h.make_tensor_value_info('from', T.INT64, [1]),
                                    h.make_tensor_value_info('to', T.INT64, [1])],
                    [h.make_tensor_value_info('state_', T.FLOAT, [4, 3]), h.make_tensor_value_info('v', T.FLOAT, [2, 3])], constants)
nodes = [h.make_node('Scan', ['x', 'starts', 'ends'], ['x_', 'y'], num_scan_inputs=2, body=body)]
constants = [h.make_tensor('starts', T.INT64, [2, 1], [0, 2]), h.make_tensor('ends', T.INT64, [2, 1], [2, 4])]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [4, 3])], [h.make_tensor_value_info('y', T.FLOAT, [2, 2, 3])], constants)
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)

x = np.arange(12, dtype='f4').reshape(4, 3)
want = x.reshape(2, 2, 3)
print('expected', want.tolist(), flush=True)
with tempfile.TemporaryDirectory() as tmp:
    path = os.path.join(tmp, 'm.onnx')
    onnx.save(model, path)
    try:
        got = tract.onnx().load(path).into_model().into_runnable().run([x])[0].to_numpy()
    except tract.TractError as ex:
        print('got      error:', ' '.join(str(ex).split('Stack backtrace')[0].split())[:300])
        print('shown')
    else:
        print('got     ', got.tolist())
        print('not shown' if np.array_equal(got, want) else 'shown')
