"""Weights of few bits: what ONNX Runtime loads untiled it loads tiled, and computes to the bit. narrow_types.py TOOL FOLDER"""
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

from builder import Net, save
from checks import graphs, outputs

tool, folder = sys.argv[1:3]
rng = np.random.default_rng(0)
YOUNG = {T.INT2: 25, T.UINT2: 25}  # opset; the others: 21


def weight(net, dtype, rows, columns, per_row_block=True):
    """A constant of that type behind DequantizeLinear."""
    low, high = {T.INT2: (-2, 2), T.UINT2: (0, 4), T.UINT4: (0, 16), T.UINT8: (0, 255)}.get(dtype, (-8, 8))
    name = net.fresh('wq')
    net.inits.append(helper.make_tensor(name, dtype, [rows, columns], rng.integers(low, high, rows * columns).tolist()))
    scale = net.const(rng.uniform(.01, .1, (rows // 32, columns)))
    return net.op('DequantizeLinear', name, scale, axis=0, block_size=32)


def mlp(dtype, tokens, width, hidden, readers=1):
    """x -> MatMul -> Gelu -> MatMul; readers 2: both products of a layer read one weight."""
    net = Net(opset=YOUNG.get(dtype, 21))
    x = net.input('x', [1, tokens, width])
    first, second = weight(net, dtype, width, hidden), weight(net, dtype, hidden, width)
    for k in range(readers):
        x = net.op('MatMul', net.op('Gelu', net.op('MatMul', x, first)), second)
    net.nodes[-1].output[0] = 'y'
    net.output('y', [1, tokens, width])
    return net.model(ir=11)


def one_channel(rows, columns):
    """Rows quantised each on its own beside a sum of theirs; each takes part of a tile alone if a tile may hold one."""
    net = Net(opset=17)
    scale, zero = net.const(np.full(rows, .1)), net.const(np.zeros(rows), 'i1')
    whole = net.const(np.float32(.1)), net.const(np.int8(0), 'i1')
    x = net.input('x', [rows, columns])
    a = net.op('DequantizeLinear', net.op('QuantizeLinear', net.op('Softmax', x), scale, zero, axis=0), scale, zero, axis=0)
    b = net.op('DequantizeLinear', net.op('QuantizeLinear', net.op('Neg', x), *whole), *whole)
    y = net.op('DequantizeLinear', net.op('QuantizeLinear', net.op('Add', a, b), scale, zero, axis=0), scale, zero, axis=0)
    net.op('Softmax', y, out='y')
    net.output('y', [rows, columns])
    return net.model()


def check(name, model, *args, tiled=True):
    path, out = save(model, f'{folder}/m.onnx'), f'{folder}/t.onnx'
    r = subprocess.run([tool, path, '-o', out, '-q', *args], capture_output=True, text=True)
    if r.returncode: sys.exit(f'{name} {args}: {r.stderr}')
    onnx.checker.check_model(out, full_check=True)
    regions = sum(n.name.startswith('tile/r') for g in graphs(onnx.load(out).graph) for n in g.node)
    if tiled and not regions: sys.exit(f'{name} {args}: not tiled')
    feeds = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype('f4') for i in model.graph.input}
    for want, got in zip(outputs(path, feeds), outputs(out, feeds)):
        if want.shape != got.shape or np.abs(want - got).max() > 1e-6 * np.abs(want).max():
            sys.exit(f'{name} {args}: off by {np.abs(want - got).max()}')


for dtype in (T.INT4, T.UINT4, T.INT2, T.UINT2, T.INT8, T.UINT8, T.FLOAT8E4M3FN, T.FLOAT8E5M2):
    kind = T.DataType.Name(dtype)
    check(kind, mlp(dtype, 2048, 128, 512), '--goal', 'memory')
    for runtime in ('onnxruntime', 'portable', 'loop'):
        check(kind, mlp(dtype, 500, 64, 64), '--force', '--l2', '64K', '--runtime', runtime)
        check(f'{kind}, read twice', mlp(dtype, 500, 64, 64, 2), '--force', '--l2', '64K', '--runtime', runtime)
check('one row', one_channel(24, 1024), '--force', '--l2', '8K', '--form', 'unrolled')
print('equal')
