"""MNN: an average pool that counts padding (count_include_pad) divides its last windows by too little where it is padded more behind than in front."""
import os
import tempfile
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h
import _tools
import MNN
import MNN.nn

nodes = [h.make_node('AveragePool', ['x'], ['y'], kernel_shape=[3, 3], strides=[1, 1], pads=[0, 1, 1, 1], count_include_pad=1)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [1, 1, 4, 3])], [h.make_tensor_value_info('y', T.FLOAT, [1, 1, 3, 3])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 13)], ir_version=8)

x = np.full((1, 1, 4, 3), 3, 'f4')
want = np.array([[6, 9, 6], [6, 9, 6], [4, 6, 4]], 'f4') / 3          # of nine elements, those outside are zeros
print('expected', want.tolist(), flush=True)
with tempfile.TemporaryDirectory() as tmp:
    path, converted = os.path.join(tmp, 'm.onnx'), os.path.join(tmp, 'm.mnn')
    onnx.save(model, path)
    _tools.mnnconvert(['mnnconvert', '-f', 'ONNX', '--modelFile', path, '--MNNModel', converted, '--bizCode', 'test'])
    net = MNN.nn.load_module_from_file(converted, ['x'], ['y'])
    out = MNN.expr.convert(net.onForward([MNN.expr.const(x, [1, 1, 4, 3], MNN.expr.NCHW)])[0], MNN.expr.NCHW)
    got = np.array(out.read()).reshape(3, 3)
print('got     ', got.tolist())
print('not shown' if np.allclose(got, want) else 'shown')
