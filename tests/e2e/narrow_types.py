"""Weights of few bits: what ONNX Runtime loads untiled it loads tiled, and computes to the bit; the engine computes the same.
narrow_types.py TOOL FOLDER"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from builder import Net, save
from checks import graphs, outputs

tool, folder = sys.argv[1:3]
rng = np.random.default_rng(0)
NARROW = (T.INT4, T.UINT4, T.INT2, T.UINT2, T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ)
RANGES = {T.INT2: (-2, 2), T.UINT2: (0, 4), T.UINT4: (0, 16), T.UINT8: (0, 255)}
PRODUCTS = (T.INT4, T.UINT4, T.INT2, T.UINT2, T.INT8, T.UINT8, T.FLOAT8E4M3FN, T.FLOAT8E5M2)
RUNTIMES = ('onnxruntime', 'portable', 'loop')
READ = ('inside', 'clip', 'twice', 'beside', 'last')  # how a Relu or Clip and a product are
READ_TYPES = (T.UINT4, T.INT2, T.INT8)
WAYS = (('--l2', '16K'), ('--l2', '64K', '--form', 'unrolled'), ('--l2', '16K', '--runtime', 'loop'))
HALF_TYPES = (T.INT4, T.UINT4, T.INT8)
YOUNG = {T.INT2: 25, T.UINT2: 25}  # opset; the others: 21


def weight(net, dtype, rows, columns, per_row_block=True):
    """A constant of that type behind DequantizeLinear."""
    low, high = RANGES.get(dtype, (-8, 8))
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


def limited(dtype, kind, tokens=512, width=64, hidden=512):
    """Products before a Relu or Clip: ONNX Runtime multiplies by the weight's own bits, or by floats, as it is read."""
    net = Net(opset=YOUNG.get(dtype, 21))
    x = net.input('x', [1, tokens, width])
    m = net.op('MatMul', x, weight(net, dtype, width, hidden))
    r = net.op('Clip', m, net.const(-1.), net.const(6.)) if kind == 'clip' else net.op('Relu', m)
    if kind == 'twice':
        r = net.op('Mul', net.op('Sigmoid', r), net.op('Sqrt', r))
    elif kind == 'beside':
        r = net.op('Mul', r, net.op('Sigmoid', m))
    elif kind == 'last':
        net.output(r, [1, tokens, hidden])
        return net.model(ir=11)
    net.output(net.op('MatMul', r, weight(net, dtype, hidden, width)), [1, tokens, width])
    return net.model(ir=11)


def half(dtype, tokens=512, width=64, hidden=256):
    """Products in half precision, which ONNX Runtime makes zeros of in subgraphs."""
    net = Net(opset=21, dtype=T.FLOAT16)
    x = net.input('x', [1, tokens, width])
    for rows, columns in (width, hidden), (hidden, width):
        x = net.op('Tanh', net.op('MatMul', x, weight(net, dtype, rows, columns)))
    net.output(x, [1, tokens, width])
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


def engine(name, path, feeds, want):
    """`run` computes what ONNX Runtime does."""
    for k, v in feeds.items(): np.save(f'{folder}/{k}.npy', v)
    given = [a for k in feeds for a in ('--input', f'{k}={folder}/{k}.npy')]
    r = subprocess.run([tool, 'run', path, '-q', '--output-dir', f'{folder}/results', *given], capture_output=True, text=True)
    if r.returncode: sys.exit(f'{name}: {r.stderr}')
    for k, a in enumerate(want):
        got = np.load(f'{folder}/results/{k}.npy')
        same = got.dtype == a.dtype and got.shape == a.shape and np.allclose(got, a, rtol=1e-5, atol=1e-5, equal_nan=True)
        if not same: sys.exit(f'{name}: output {k} is {got}, not {a}')


def element_types():
    """Every type, quantised as a whole, along an axis and in blocks, stored in each way; rows of an odd number of elements. Those of a type and a
    way of storing are one model."""
    for dtype in NARROW:
        kind, opset = T.DataType.Name(dtype), YOUNG.get(dtype, 21)
        floats = kind.startswith('FLOAT')
        low, high = RANGES.get(dtype, (-8, 8))
        for stored in ('raw', 'typed', 'external'):
            net, feeds = Net(opset=opset), {}
            for k, (extents, axis, block, scale_of) in enumerate((([5, 3], 0, 0, []), ([3, 7], 1, 0, [7]), ([7, 3], 0, 0, [7]), ([6, 5], 0, 2, [3, 5]),
                                                                  ([3, 9], 1, 4, [3, 3]), ([2, 5, 3], 1, 5, [2, 1, 3]))):
                t = helper.make_tensor(f'q{k}', dtype, extents, rng.integers(low, high, int(np.prod(extents))).tolist())
                if stored != 'typed': t = numpy_helper.from_array(numpy_helper.to_array(t), f'q{k}')
                net.inits.append(t)
                zeros = rng.integers(low, high, int(np.prod(scale_of))) * (not floats)
                net.inits.append(helper.make_tensor(f'z{k}', dtype, scale_of, zeros.tolist()))
                scale = net.const(rng.uniform(.1, 1, scale_of))
                attrs = dict(block_size=block) if block else {}
                x = net.input(f'x{k}', extents)
                y = net.op('DequantizeLinear', f'q{k}', scale, f'z{k}', axis=axis, **attrs)
                q = net.op('QuantizeLinear', x, scale, f'z{k}', axis=axis, **attrs)
                net.output(net.op('Add', y, x), extents)
                net.output(net.op('DequantizeLinear', q, scale, f'z{k}', axis=axis, **attrs), extents)
                if not block: casts(net, dtype, floats, x)
                feeds[x] = (rng.standard_normal(extents) * 9).astype('f4')
            path = save(net.model(ir=11), f'{folder}/e.onnx', outside='e.bin' if stored == 'external' else None)
            engine(f'{kind} {stored}', path, feeds, outputs(path, feeds))
            if os.path.exists(f'{folder}/e.bin'): os.remove(f'{folder}/e.bin')


def casts(net, dtype, floats, x):
    """To the type and back: of floats in and out of its range, of integers."""
    net.output(net.op('Cast', net.op('Cast', x, to=dtype), to=T.FLOAT), None)
    if floats: return
    whole = net.op('Cast', net.op('Mul', x, net.const(np.float32(20))), to=T.INT32)
    net.output(net.op('Cast', net.op('Cast', whole, to=dtype), to=T.INT64), None, T.INT64)


def check(name, model, *args, tiled=True, verifies=True):
    path, out = save(model, f'{folder}/m.onnx'), f'{folder}/t.onnx'
    r = subprocess.run([tool, path, '-o', out, '-q', *['--verify'] * verifies, *args], capture_output=True, text=True)
    if r.returncode: sys.exit(f'{name} {args}: {r.stderr}')
    onnx.checker.check_model(out, full_check=True)
    regions = sum(n.name.startswith('tile/r') for g in graphs(onnx.load(out).graph) for n in g.node)
    if tiled and not regions: sys.exit(f'{name} {args}: not tiled')
    feeds = {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(
        helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)) for i in model.graph.input}
    for want, got in zip(outputs(path, feeds), outputs(out, feeds)):
        want, got, small = want.astype('f8'), got.astype('f8'), want.dtype == np.float16
        error = np.square(want - got).sum() / np.square(want).sum() if small else np.abs(want - got).max() / np.abs(want).max()
        if want.shape != got.shape or error > (1e-4 if small else 1e-6):  # NMSE, since 8 bits are in between; of the largest value
            sys.exit(f'{name} {args}: off by {error}')


for dtype in PRODUCTS:
    type_name = T.DataType.Name(dtype)
    check(type_name, mlp(dtype, 2048, 128, 512), '--goal', 'memory')
    for runtime in RUNTIMES:
        check(type_name, mlp(dtype, 500, 64, 64), '--force', '--l2', '64K', '--runtime', runtime)
        check(f'{type_name}, read twice', mlp(dtype, 500, 64, 64, 2), '--force', '--l2', '64K', '--runtime', runtime)
for dtype in READ_TYPES:
    for read in READ:
        for way in WAYS:
            check(f'{T.DataType.Name(dtype)}, {read}', limited(dtype, read), '--force', *way, verifies=False)
for dtype in HALF_TYPES:
    for args in ('--goal', 'memory'), ('--goal', 'memory', '--force', '--l2', '32K'), ('--force', '--l2', '16K', '--runtime', 'loop'):
        check(f'{T.DataType.Name(dtype)}, half', half(dtype), *args, tiled=False)
check('one row', one_channel(24, 1024), '--force', '--l2', '8K', '--form', 'unrolled')
element_types()
print('equal')
