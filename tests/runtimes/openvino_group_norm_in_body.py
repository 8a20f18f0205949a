"""OpenVINO: asked for float32 arithmetic, it refuses GroupNormalization in the body of a Scan or Loop (in the outer graph it runs)."""
import numpy as np
import openvino as ov
from onnx import TensorProto as T, helper as h

info = lambda name, shape: h.make_tensor_value_info(name, T.FLOAT, shape)
constants = [h.make_tensor('scale', T.FLOAT, [5], [1] * 5), h.make_tensor('bias', T.FLOAT, [5], [0] * 5)]
nodes = [h.make_node('Relu', ['row'], ['r']), h.make_node('GroupNormalization', ['r', 'scale', 'bias'], ['n'], num_groups=1)]
body = h.make_graph(nodes, 'body', [info('row', [2, 5, 12])], [info('n', [2, 5, 12])], constants)
graph = h.make_graph([h.make_node('Scan', ['x'], ['y'], body=body, num_scan_inputs=1)], 'g', [info('x', [7, 2, 5, 12])], [info('y', [7, 2, 5, 12])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 21)], ir_version=10)

x = np.random.default_rng(1).random((7, 2, 5, 12), 'f4')
want = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
print('expected', want.ravel()[:3].tolist(), flush=True)
try:
    got = ov.compile_model(ov.Core().read_model(model.SerializeToString()), 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})(x)[0]
except RuntimeError as ex:
    print('got      error:', ' '.join(str(ex).split())[-300:])
    print('shown')
else:
    print('got     ', got.ravel()[:3].tolist())
    print('not shown' if np.allclose(got, want, atol=1e-4) else 'shown')
