"""MNN: an average pool whose input is shorter than its kernel (padding makes up for it) divides by another count."""
import os
import tempfile
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h
import _tools
import MNN
import MNN.nn

nodes = [h.make_node('AveragePool', ['x'], ['y'], kernel_shape=[3, 3], pads=[0, 1, 1, 1], count_include_pad=1)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [1, 1, 2, 3])], [h.make_tensor_value_info('y', T.FLOAT, [1, 1, 1, 3])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 13)], ir_version=8)

x = np.full((1, 1, 2, 3), 3, 'f4')
want = np.array([8, 12, 8], 'f4') / 3 * 1.0
print('expected', want, flush=True)
with tempfile.TemporaryDirectory() as tmp:
    path, converted = os.path.join(tmp, 'm.onnx'), os.path.join(tmp, 'm.mnn')
    onnx.save(model, path)
    _tools.mnnconvert(['mnnconvert', '-f', 'ONNX', '--modelFile', path, '--MNNModel', converted, '--bizCode', 'test'])
    net = MNN.nn.load_module_from_file(converted, ['x'], ['y'])
    got = float(np.array(MNN.expr.convert(net.onForward([MNN.expr.const(x, [1, 1, 2, 3], MNN.expr.NCHW)])[0], MNN.expr.NCHW).read()).reshape(-1)[0])
print('got     ', got)
print('not shown' if abs(got - want) < 1e-6 else 'shown')
