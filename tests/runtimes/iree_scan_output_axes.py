"""IREE: a Scan that puts its outputs along another axis than the first computes other values, without a word."""
import os
import subprocess
import sys
import tempfile
import iree.compiler as compiler
import iree.runtime as rt
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

body = h.make_graph([h.make_node('Neg', ['row'], ['row_'])], 'body', [h.make_tensor_value_info('row', T.FLOAT, [3])],
                    [h.make_tensor_value_info('row_', T.FLOAT, [3])])
nodes = [h.make_node('Scan', ['x'], ['y'], num_scan_inputs=1, scan_output_axes=[1], body=body)]
graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [3, 3])], [h.make_tensor_value_info('y', T.FLOAT, [3, 3])])
model = h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8)

x = np.arange(9, dtype='f4').reshape(3, 3)
with tempfile.TemporaryDirectory() as tmp:
    path, mlir = os.path.join(tmp, 'm.onnx'), os.path.join(tmp, 'm.mlir')
    onnx.save(model, path)
    subprocess.run([sys.executable, '-m', 'iree.compiler.tools.import_onnx', path, '-o', mlir], check=True)
    binary = compiler.compile_file(mlir, input_type='onnx', target_backends=['llvm-cpu'], extra_args=['--iree-llvmcpu-target-cpu=host'])
context = rt.SystemContext(config=rt.Config('local-sync'))
context.add_vm_module(rt.VmModule.copy_buffer(context.instance, binary))
got = context.modules.module['g'](x).to_host()
print('expected', (-x.T).tolist())
print('got     ', got.tolist())
print('not shown' if np.array_equal(got, -x.T) else 'shown')
