#!/usr/bin/env python3
"""Every output form of every tiling against the untiled model, in ONNX Runtime.

  forms.py FORCE_TILE [--only MODEL] [--opset N]... [--keep DIR] [-v]

Small seeded networks at several opsets are tiled by force_tile (one region, whatever it costs) in each form that is
legal, along one and two axes, with Scan and with Loop. Each result must pass onnx.checker with full_check, keep names,
types and shapes of inputs and outputs, and give the same numbers. A form that `must` be legal for a model and is refused
counts as a failure. Ends with 'N passed, N failed, N not legal'.
"""
import argparse, collections, os, subprocess, sys, tempfile
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as TP, helper as H, numpy_helper as NH

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
import builder  # noqa: E402

ort.set_default_logger_severity(4)
OPSETS = (7, 8, 9, 10, 11, 13, 17, 21)


class Net(builder.Net):
    """Builds one model; values are called after what makes them, weights are seeded."""

    def __init__(self, opset, seed=0):
        super().__init__(seed, opset)

    def const(self, array, name=None):
        name = name or f'w{len(self.inits)}'
        self.inits.append(builder.constant(name, np.ascontiguousarray(array), None))
        return name

    def weight(self, *shape):
        return self.const((self.rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(np.float32))

    def op(self, kind, *ins, out=None, n_out=1, name=None, **attrs):
        outs = [out or f'{kind.lower()}{len(self.nodes)}'] if n_out == 1 else [f'{kind.lower()}{len(self.nodes)}_{k}' for k in range(n_out)]
        self.nodes.append(H.make_node(kind, list(ins), outs, name=f'{kind}_{len(self.nodes)}' if name is None else name, **attrs))
        return outs[0] if n_out == 1 else outs

    def conv(self, x, cin, cout, k=3, s=1, p=None, group=1, dil=1, bias=True, **kw):
        p = (k - 1) * dil // 2 if p is None else p
        ops = [x, self.weight(cout, cin // group, k, k)] + ([self.weight(cout)] if bias else [])
        pads = {} if 'auto_pad' in kw else {'pads': [p] * 4}
        return self.op('Conv', *ops, kernel_shape=[k, k], strides=[s, s], dilations=[dil, dil], group=group, **pads, **kw)

    def up(self, x, mode='nearest', by=2, **kw):
        if self.opset < 9:
            return self.op('Upsample', x, mode=mode, scales=[1., 1., float(by), float(by)])
        scales = self.const(np.array([1, 1, by, by], np.float32))
        if self.opset < 10:
            return self.op('Upsample', x, scales, mode=mode)
        if self.opset < 11:
            return self.op('Resize', x, scales, mode=mode)
        if self.opset < 13:
            return self.op('Resize', x, self.const(np.zeros(0, np.float32)), scales, mode=mode, **kw)
        return self.op('Resize', x, '', scales, mode=mode, **kw)

    def clip6(self, x):
        if self.opset < 11:
            return self.op('Clip', x, min=0., max=6.)
        return self.op('Clip', x, self.const(np.float32(0)), self.const(np.float32(6)))

    def model(self):
        ir = 3 if self.opset < 9 else 4 if self.opset < 10 else 6 if self.opset < 13 else 8 if self.opset < 21 else 10
        ins = self.inputs + ([builder.value(t.name, t.dims, t.data_type) for t in self.inits] if ir < 4 else [])
        return builder.model(self.nodes, ins, self.outputs, self.inits, self.opset, ir, name='net')


def chain(n):
    x = n.input('x', [1, 3, 48, 32])
    h = n.op('Relu', n.conv(x, 3, 8))
    n.op('Relu', n.conv(h, 8, 4), out='y')
    n.output('y', [1, 4, 48, 32])


def residual(n):
    x = n.input('x', [1, 8, 40, 24])
    h = n.op('Relu', n.conv(x, 8, 8))
    h = n.op('Add', n.conv(h, 8, 8), x)
    h = n.op('Relu', h)
    n.op('Add', n.conv(h, 8, 8, k=1), h, out='y')
    n.output('y', [1, 8, 40, 24])


def strided(n):
    x = n.input('x', [1, 3, 96, 64])
    h = n.conv(x, 3, 8, k=7, s=2)
    h = n.op('MaxPool', h, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    n.op('Relu', n.conv(h, 8, 8), out='y')
    n.output('y', [1, 8, 24, 16])


def depthwise(n):
    x = n.input('x', [2, 8, 36, 20])
    h = n.clip6(n.conv(x, 8, 8, group=8))
    h = n.clip6(n.conv(h, 8, 16, k=1))
    n.conv(h, 16, 16, group=16, s=1)
    n.nodes[-1].output[0] = 'y'
    n.output('y', [2, 16, 36, 20])


def unet(n):
    x = n.input('x', [1, 4, 48, 48])
    a = n.op('Relu', n.conv(x, 4, 8))
    b = n.op('MaxPool', a, kernel_shape=[2, 2], strides=[2, 2])
    b = n.op('Relu', n.conv(b, 8, 8))
    b = n.up(b, coordinate_transformation_mode='asymmetric', nearest_mode='floor') if n.opset >= 11 else n.up(b)
    c = n.op('Concat', a, b, axis=1)
    n.op('Relu', n.conv(c, 16, 4), out='y')
    n.output('y', [1, 4, 48, 48])


def deconv(n):
    x = n.input('x', [1, 4, 24, 16])
    h = n.op('Relu', n.conv(x, 4, 8))
    h = n.op('ConvTranspose', h, n.weight(8, 8, 4, 4), kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1])
    h = n.op('Relu', h)
    n.op('ConvTranspose', h, n.weight(8, 4, 3, 3), n.weight(4), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         output_padding=[1, 1], out='y')
    n.output('y', [1, 4, 96, 64])


def linear(n):
    x = n.input('x', [1, 4, 24, 16])
    h = n.op('Relu', n.conv(x, 4, 4))
    h = n.up(h, mode='linear', coordinate_transformation_mode='half_pixel') if n.opset >= 11 else n.up(h, mode='linear')
    n.op('Relu', n.conv(h, 4, 4), out='y')
    n.output('y', [1, 4, 48, 32])


def attention(n):
    q = n.input('q', [1, 4, 64, 16])
    k = n.input('k', [1, 4, 64, 16])
    v = n.input('v', [1, 4, 64, 16])
    t = n.op('Transpose', k, perm=[0, 1, 3, 2])
    s = n.op('Mul', n.op('MatMul', q, t), n.const(np.float32(0.25)))
    s = n.op('Softmax', s, axis=3)
    n.op('MatMul', s, v, out='y')
    n.output('y', [1, 4, 64, 16])


def batch(n):
    x = n.input('x', [8, 3, 16, 12])
    h = n.op('Relu', n.conv(x, 3, 8))
    n.op('Sigmoid', n.conv(h, 8, 4), out='y')
    n.output('y', [8, 4, 16, 12])


def nhwc(n):
    x = n.input('x', [1, 32, 20, 8])
    h = n.op('MatMul', x, n.weight(8, 16))
    h = n.op('Relu', n.op('Add', h, n.weight(16)))
    h = n.op('Mul', h, n.const(n.rng.random((1, 32, 1, 16)).astype(np.float32)))
    n.op('Tanh', h, out='y')
    n.output('y', [1, 32, 20, 16])


def turned(n):
    x = n.input('x', [1, 24, 20, 8])
    h = n.op('Transpose', x, perm=[0, 3, 1, 2])
    h = n.op('Relu', n.conv(h, 8, 8))
    h = n.op('Transpose', h, perm=[0, 2, 3, 1])
    n.op('Add', h, x, out='y')
    n.output('y', [1, 24, 20, 8])


def mlp(n):
    x = n.input('x', [96, 24])
    h = n.op('Relu', n.op('Gemm', x, n.weight(24, 48), n.weight(48)))
    h = n.op('Add', n.op('MatMul', h, n.weight(48, 24)), x)
    n.op('Softmax', h, axis=1, out='y')
    n.output('y', [96, 24])


def rows(n):
    x = n.input('x', [6, 2, 40, 10])
    h = n.op('Reshape', n.op('Sigmoid', x), n.const(np.array([12, 40, 10], np.int64)))
    h = n.op('Mul', h, n.const(n.rng.random((1, 40, 10)).astype(np.float32)))
    n.op('Exp', h, out='y')
    n.output('y', [12, 40, 10])


def pools(n):
    x = n.input('x', [1, 4, 37, 33])
    a = n.op('AveragePool', x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], count_include_pad=0)
    b = n.op('AveragePool', a, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], count_include_pad=1)
    b = n.conv(b, 4, 4, auto_pad='SAME_UPPER', s=2)
    n.op('Relu', b, out='y')
    n.output('y', [1, 4, 19, 17])


def outputs(n):
    x = n.input('x', [1, 4, 32, 24])
    a = n.conv(x, 4, 4)
    b = n.op('Relu', a)
    c = n.conv(b, 4, 4, s=2)
    n.op('Sigmoid', c, out='y')
    n.op('Neg', b, out='z')
    n.output('y', [1, 4, 16, 12])
    n.output('z', [1, 4, 32, 24])
    n.nodes[1].output[0] = 'mid'
    for m in n.nodes[2:]:
        m.input[:] = ['mid' if i == b else i for i in m.input]
    n.output('mid', [1, 4, 32, 24])


def made_weights(n):
    """Weights that nodes make: Constant, Identity of a constant, DequantizeLinear; and no node names at all."""
    x = n.input('x', [1, 4, 32, 24])
    w = n.op('Constant', value=NH.from_array(n.rng.standard_normal((4, 4, 3, 3)).astype(np.float32) / 6, 'c'), name='')
    h = n.op('Conv', x, w, kernel_shape=[3, 3], pads=[1, 1, 1, 1], name='')
    b = n.op('Identity', n.weight(4, 1, 1), name='')
    h = n.op('Add', h, b, name='')
    if n.opset >= 10:
        q = n.op('DequantizeLinear', n.const(n.rng.integers(-9, 9, (4, 4, 3, 3)).astype(np.int8)), n.const(np.float32(0.02)), name='')
    else:
        q = n.op('Mul', n.weight(4, 4, 3, 3), n.const(np.float32(0.5)), name='')
    h = n.op('Conv', n.op('Relu', h, name=''), q, kernel_shape=[3, 3], pads=[1, 1, 1, 1], name='')
    n.op('Add', h, n.const(n.rng.random((1, 4, 32, 24)).astype(np.float32)), out='y', name='')
    n.output('y', [1, 4, 32, 24])


def shuffle(n):
    """Pixel shuffle behind convolutions, then a Pad and a Slice along the cut axes."""
    x = n.input('x', [1, 4, 24, 16])
    h = n.op('Relu', n.conv(x, 4, 16))
    h = n.op('DepthToSpace', h, blocksize=2)
    n.op('Tanh', n.conv(h, 4, 4), out='y')
    n.output('y', [1, 4, 48, 32])


def norm(n):
    x = n.input('x', [1, 8, 32, 24])
    w = [n.const(n.rng.random(8).astype(np.float32) + 0.5) for _ in range(4)]
    h = n.op('BatchNormalization', n.conv(x, 8, 8, bias=False), *w)
    h = n.op('PRelu', h, n.weight(8, 1, 1))
    n.op('Concat', h, x, axis=1, out='y')
    n.output('y', [1, 16, 32, 24])


def shapes(n):
    """Shape arithmetic that reads a tiled value."""
    x = n.input('x', [1, 6, 32, 12])
    h = n.op('Relu', x)
    s = n.op('Shape', h)
    h = n.op('Reshape', n.op('Exp', h), s)
    n.op('Sqrt', h, out='y')
    n.output('y', [1, 6, 32, 12])


def padded(n):
    """Pad and Slice along the cut axis: tiles at the borders are written differently, some need no node at all."""
    x = n.input('x', [1, 4, 40, 24])
    h = n.op('Relu', n.conv(x, 4, 4))
    if n.opset < 11:
        h = n.op('Pad', h, mode='constant', value=0.5, pads=[0, 0, 5, 0, 0, 0, 3, 2])
    else:
        h = n.op('Pad', h, n.const(np.array([0, 0, 5, 0, 0, 0, 3, 2], np.int64)), n.const(np.float32(0.5)), mode='constant')
    h = n.conv(h, 4, 4)
    if n.opset < 10:
        h = n.op('Slice', h, axes=[2], starts=[4], ends=[44])
    else:
        h = n.op('Slice', h, *[n.const(np.array([k], np.int64)) for k in (4, 44, 2)])
    n.op('Sigmoid', h, out='y')
    n.output('y', [1, 4, 40, 26])


def parts(n):
    """Split, two branches, Concat along the channels; then Concat along the cut axis."""
    x = n.input('x', [1, 8, 32, 20])
    h = n.op('Relu', n.conv(x, 8, 8))
    a, b = n.op('Split', h, axis=1, n_out=2, **({'num_outputs': 2} if n.opset >= 18 else {}))
    a = n.op('MaxPool', n.conv(a, 4, 4), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
    c = n.op('Concat', a, n.op('Neg', b), axis=1)
    n.op('Concat', c, x, axis=2, out='y')
    n.output('y', [1, 8, 64, 20])


def sizes(n):
    """Resize to sizes, by an uneven factor in one axis."""
    x = n.input('x', [1, 4, 16, 12])
    h = n.op('Relu', n.conv(x, 4, 4))
    if n.opset < 11:
        h = n.up(h, by=3)
    elif n.opset < 13:
        e = n.const(np.zeros(0, np.float32))
        h = n.op('Resize', h, e, e, n.const(np.array([1, 4, 48, 36], np.int64)), mode='nearest',
                 coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    else:
        h = n.op('Resize', h, '', '', n.const(np.array([1, 4, 48, 36], np.int64)), mode='linear',
                 coordinate_transformation_mode='align_corners' if n.opset == 13 else 'half_pixel')
    n.op('Relu', n.conv(h, 4, 2), out='y')
    n.output('y', [1, 2, 48, 36])


def signal(n):
    """One spatial axis, and a reduction over the channels behind it."""
    x = n.input('x', [2, 6, 200])
    h = n.op('Conv', x, n.weight(8, 6, 5), n.weight(8), kernel_shape=[5], pads=[4, 4], dilations=[2])
    h = n.op('Tanh', h)
    h = n.op('Conv', h, n.weight(8, 8, 3), kernel_shape=[3], pads=[1, 1], strides=[2])
    n.op('ReduceMax', h, axes=[1], keepdims=0, out='y')
    if n.opset >= 18:
        n.nodes[-1].CopyFrom(H.make_node('ReduceMax', [h, n.const(np.array([1], np.int64))], ['y'], keepdims=0))
    n.output('y', [2, 100])


def volume(n):
    x = n.input('x', [1, 2, 12, 16, 14])
    h = n.op('Conv', x, n.weight(4, 2, 3, 3, 3), kernel_shape=[3, 3, 3], pads=[1] * 6)
    h = n.op('Relu', h)
    n.op('AveragePool', h, kernel_shape=[2, 2, 2], strides=[2, 2, 2], out='y')
    n.output('y', [1, 4, 6, 8, 7])


def softmax(n):
    """Heads in two dimensions with keys and values made from one input, residual around it."""
    x = n.input('x', [1, 64, 24])
    q, k, v = [n.op('MatMul', x, n.weight(24, 24)) for _ in range(3)]
    r = lambda t, p: n.op('Transpose', n.op('Reshape', t, n.const(np.array([1, 64, 4, 6], np.int64))), perm=p)
    s = n.op('MatMul', r(q, [0, 2, 1, 3]), r(k, [0, 2, 3, 1]))
    s = n.op('MatMul', n.op('Softmax', s, axis=3), r(v, [0, 2, 1, 3]))
    s = n.op('Reshape', n.op('Transpose', s, perm=[0, 2, 1, 3]), n.const(np.array([1, 64, 24], np.int64)))
    n.op('Add', n.op('MatMul', s, n.weight(24, 24)), x, out='y')
    n.output('y', [1, 64, 24])


def half(n):
    x = n.input('x', [4, 32, 16], TP.FLOAT16)
    w = n.const((n.rng.standard_normal((16, 16)) / 4).astype(np.float16))
    h = n.op('Relu', n.op('MatMul', x, w))
    n.op('Add', h, x, out='y')
    n.output('y', [4, 32, 16], TP.FLOAT16)


def integers(n):
    """uint8 in and out through a quantized convolution (opset 10 and newer), bool in between."""
    x = n.input('x', [1, 4, 32, 16], TP.UINT8)
    s, z = n.const(np.float32(0.05)), n.const(np.uint8(120))
    if n.opset < 10:
        n.op('Cast', n.op('Relu', n.conv(n.op('Cast', x, to=TP.FLOAT), 4, 4)), to=TP.INT32, out='y')
        n.output('y', [1, 4, 32, 16], TP.INT32)
        return
    w = n.const(n.rng.integers(-50, 50, (4, 4, 3, 3)).astype(np.int8))
    h = n.op('QLinearConv', x, s, z, w, n.const(np.float32(0.01)), n.const(np.int8(0)), s, z, kernel_shape=[3, 3], pads=[1] * 4)
    h = n.op('DequantizeLinear', h, s, z)
    h = n.op('Where', n.op('Greater', h, n.const(np.float32(0))), h, n.const(np.float32(1.5)))
    n.op('QuantizeLinear', h, s, z, out='y')
    n.output('y', [1, 4, 32, 16], TP.UINT8)


# model: (builder, [(form, axes, tiles, must be legal)])
F = {'u': 'unrolled', 'p': 'peeled', 's': 'scan', 'l': 'loop', 'r': 'prescan'}
IMG = ['u 2 4 !', 'u 2 5 !', 'u 2,3 3,2 !', 'p 2 8', 'p 2,3 6,6', 's 2 4']
MODELS = {
    'chain': (chain, ['u 2 4 !', 'u 2 5 !', 'u 2,3 3,2 !', 'p 2 8 !', 'p 2 7 !', 'p 2,3 6,4 !']),
    'residual': (residual, ['u 2 3 !', 'p 2 8 !', 'p 2 9 !', 'p 3,2 6,5 !']),
    'strided': (strided, ['u 2 3 !', 'u 2,3 3,3 !', 'p 2 8 !', 'p 2,3 8,8 !']),
    'depthwise': (depthwise, ['u 2 3 !', 'u 1 4', 'u 0 2 !', 's 0 2 !', 'p 2 6 !', 'p 0,2 2,6 !']),
    'unet': (unet, ['u 2 4 !', 'p 2 8 !', 'p 2,3 8,8 !']),
    'deconv': (deconv, ['u 2 4 !', 'p 2 12 !', 'p 2,3 12,8', 'u 2 5 !']),
    'linear': (linear, ['u 2 4', 'p 2 8']),
    'attention': (attention, ['u 2 4 !', 's 1 4 !', 'p 2 4 !', 'u 1,2 2,4 !', 's 1,2 4,4 !', 'p 2 5 !', 's 2 4']),
    'batch': (batch, ['s 0 8 !', 's 0 4 !', 's 0 2 !', 'u 0 3 !', 'p 0 8 !', 'p 0,2 8,4', 'p 0 3 !']),
    'nhwc': (nhwc, ['s 1 8 !', 's 1 32 !', 'u 1 3 !', 'p 1 5 !', 's 1,2 32,4 !', 's 1,2 8,4', 'u 3 4']),
    'turned': (turned, ['u 1 4 !', 'p 1 6 !', 'p 1,2 6,5 !']),
    'mlp': (mlp, ['s 0 8 !', 's 0 96 !', 'u 0 5 !', 'p 0 7 !']),
    'rows': (rows, ['s 0 6 !', 's 0 3 !', 's 0 12', 'u 1 3', 'p 0,1 4,4', 's 0,1 12,4']),
    'pools': (pools, ['u 2 4', 'p 2 6', 'u 2,3 3,3']),
    'outputs': (outputs, ['u 2 4 !', 'p 2 8 !', 'p 2,3 8,6 !', 'u 2 5']),
    'made_weights': (made_weights, ['u 2 4 !', 'p 2 8 !', 'p 2 7 !']),
    'shuffle': (shuffle, ['u 2 4 !', 'p 2 8 !', 'u 2 5', 'p 2 7']),
    'norm': (norm, ['u 2 4 !', 'p 2 8 !']),
    'padded': (padded, ['u 2 4 !', 'u 2 10 !', 'u 2,3 4,2 !', 'p 2 20 !', 'p 2,3 20,13', 'p 3 13 !']),
    'parts': (parts, ['u 2 5 !', 'u 2 8 !', 'p 3 10 !', 'p 2 16', 'p 2,3 16,10']),
    'sizes': (sizes, ['u 2 4', 'p 2 16', 'u 2,3 3,3']),
    'signal': (signal, ['u 1 4 !', 'p 1 10 !', 'u 0,1 2,4 !']),
    'volume': (volume, ['u 2 3 !', 'p 2 6 !', 'u 2,3,4 2,2,2 !', 'p 2,3,4 6,8,7']),
    'softmax': (softmax, ['u 1 4', 'p 1 8', 's 1 8', 's 1 16']),
    'half': (half, ['s 0 4 !', 'u 1 4 !']),
    'integers': (integers, ['u 2 4 !', 'p 2 8 !']),
    'shapes': (shapes, ['u 2 4', 's 2 4', 's 1 6']),
}


def run(model, feeds):
    so = ort.SessionOptions()
    so.intra_op_num_threads = so.inter_op_num_threads = 1
    so.log_severity_level = 4
    return ort.InferenceSession(model, so, providers=['CPUExecutionProvider']).run(None, feeds)


def io(m):
    """What a caller gives and gets: a model that is raised from IR 3 lists its constants as inputs no more."""
    constants = {i.name for i in m.graph.initializer} if m.ir_version < 4 else set()
    values = [v for v in m.graph.input if v.name not in constants] + list(m.graph.output)
    return [(v.name, v.type.SerializeToString()) for v in values]


def counts(g, c):
    for node in g.node:
        c[node.op_type] += 1
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                counts(a.g, c)
    return c


def bodies(g):
    """All loops of a graph: (node, body, names that the body reads from outside)."""
    for n in g.node:
        for a in n.attribute:
            if a.type != onnx.AttributeProto.GRAPH:
                continue
            own = {v.name for v in a.g.input} | {t.name for t in a.g.initializer} | {o for m in a.g.node for o in m.output}
            yield n, a.g, {i for m in a.g.node for i in m.input if i} - own
            yield from bodies(a.g)


def structure(m, form):
    """What is wrong with the loops of the tiled model; '' when nothing is."""
    for n, body, outer in bodies(m.graph):
        if n.op_type == 'Loop' and (len(n.input) < 2 or not n.input[0] or not n.input[1]):
            return 'a Loop without a trip count or a condition'
        if n.op_type == 'Loop' and not any(x.op_type == 'Identity' and x.input[0] == body.input[1].name for x in body.node):
            return 'a Loop does not pass its condition on'
        if form == 'l' and n.op_type == 'Scan' or form == 'r' and n.op_type == 'Loop':
            return f'a {n.op_type} in form {F[form]}'
        if form == 'r' and outer:
            return f'the body of a Scan captures {sorted(outer)}'
        if form == 'r' and any(a.name.startswith('scan_') for a in n.attribute):
            return 'a Scan with axes or directions'
    return ''


def judge(src, dst, want, feeds, spec, flag):
    """'' when the tiled model is right."""
    m = onnx.load(dst)
    before = onnx.load(src)
    try:
        onnx.checker.check_model(m, full_check=True)
    except Exception as ex:
        return 'checker: ' + str(ex).strip().split('\n')[0]
    if io(m) != io(before):
        return 'inputs or outputs changed'
    names = [n.name for n in m.graph.node]
    if len(set(names)) != len([x for x in names if x]) + ('' in names):
        return 'duplicate node names'
    c = counts(m.graph, collections.Counter())
    each = 2 + len(m.graph.output) if spec[0] == 'l' else 2      # form loop hands every result out through one
    if c['Identity'] > counts(before.graph, collections.Counter())['Identity'] * 64 + each * (c['Loop'] + c['Scan']):
        return 'needless Identity'
    form = spec.split()[0]
    if form == 'u' and c['Loop'] + c['Scan']:
        return 'a loop in the unrolled form'
    if form != 'u' and not c['Loop'] + c['Scan']:
        return 'no loop'
    why = structure(m, form)
    if why:
        return why
    if flag and c['Scan']:
        return 'Scan in spite of --loop'
    if form == 's' and not flag and c['Slice'] + c['Gather']:
        pass                                    # allowed for inputs with a halo or broadcast; see nhwc
    try:
        got = run(dst, feeds)
    except Exception as ex:
        return 'run: ' + str(ex).replace('\n', ' ')[:300]
    for a, b in zip(want, got):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f'{a.shape} became {b.shape}'
        err = float(np.abs(a.astype('f8') - b.astype('f8')).max())
        if not err <= (2e-3 if a.dtype == np.float16 else 2e-6) * max(1.0, float(np.abs(a).max())):
            return f'max error {err:.3e}'
    return ''


def sample(rng, t):
    dtype = H.tensor_dtype_to_np_dtype(t.elem_type)
    shape = [d.dim_value for d in t.shape.dim]
    return rng.integers(0, 255, shape).astype(dtype) if dtype.kind in 'iu' else rng.standard_normal(shape).astype(dtype)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('tool')
    ap.add_argument('--only', action='append')
    ap.add_argument('--opset', type=int, action='append')
    ap.add_argument('--keep')
    ap.add_argument('-v', action='store_true')
    args = ap.parse_args()
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as tmp:
        folder = args.keep or tmp
        os.makedirs(folder, exist_ok=True)
        for name, (build, specs) in MODELS.items():
            if args.only and name not in args.only:
                continue
            for opset in args.opset or OPSETS:
                net = Net(opset)
                build(net)
                model = net.model()
                src = os.path.join(folder, f'{name}_{opset}.onnx')
                onnx.save(model, src)
                rng = np.random.default_rng(1)
                weights = {t.name for t in model.graph.initializer}
                feeds = {v.name: sample(rng, v.type.tensor_type) for v in model.graph.input if v.name not in weights}
                want = run(src, feeds)
                # what is peeled may be written in the two forms for other runtimes as well
                for spec in specs + [f + s[1:].rstrip(' !') for s in specs if s[0] in 'ps' for f in 'lr']:
                    for flag in ([], ['--loop']) if spec[0] in 'psw' else ([],):
                        form, axes, tiles, *must = spec.split()
                        if form == 's' and opset < 9:
                            must = []
                        dst = os.path.join(folder, f'{name}_{opset}_{form}_{axes}_{tiles}{"_loop" if flag else ""}.onnx'.replace(',', '-'))
                        p = subprocess.run([args.tool, src, dst, F[form], axes, tiles] + flag, capture_output=True, text=True)
                        if p.returncode == 5:
                            verdict = 'failed' if must else 'not legal'
                            why = p.stdout.strip()
                        elif p.returncode:
                            verdict, why = 'failed', f'exit {p.returncode}: {p.stderr.strip()[-300:]}'
                        else:
                            why = judge(src, dst, want, feeds, spec, flag)
                            verdict = 'failed' if why else 'passed'
                        tally[verdict] += 1
                        if verdict == 'failed' or args.v:
                            print(f'{name:13s} opset {opset:2d}  {F[form]:9s} axes {axes:4s} tiles {tiles:5s} {" ".join(flag):7s}{verdict:10s}{why}', flush=True)
    print(f"{tally['passed']} passed, {tally['failed']} failed, {tally['not legal']} not legal")
    return 1 if tally['failed'] or not tally['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
