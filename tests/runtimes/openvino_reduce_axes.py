"""OpenVINO: ReduceL1, ReduceLogSum and ReduceLogSumExp before opset 18 reduce all axes, whatever `axes` says."""
import numpy as np
import openvino
from onnx import TensorProto as T, helper as h

nodes = [h.make_node('ReduceL1', ['x'], ['y'], axes=[0], keepdims=0)]
info = lambda name, shape: h.make_tensor_value_info(name, T.FLOAT, shape)
model = h.make_model(h.make_graph(nodes, 'g', [info('x', [2, 3])], [info('y', [3])]), opset_imports=[h.make_opsetid('', 13)], ir_version=8)

x = np.array([[1, 2, 3], [4, 5, 6]], 'f4')
want = x.sum(0)
print('expected', want.tolist())
core = openvino.Core()
got = core.compile_model(core.read_model(model.SerializeToString()), 'CPU')(x)[0]
print('got     ', got.tolist())
print('not shown' if got.shape == want.shape and np.allclose(got, want) else 'shown')
