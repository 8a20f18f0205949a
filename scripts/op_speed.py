#!/usr/bin/env python3
"""Operators one by one: the engine next to ONNX Runtime, section operators of docs/results.md.

  op_speed.py [--only GLOB]... [--turns N] [--threads N] [--worst N] [--json FILE]

A model of one node and of a size that models have, for each operator that is not a plain convolution, pool or chain of element-wise
operators. Both runtimes are sessions of this process and take turns; the least processor time of a run counts, so that what else
the machine does falls away. Outputs are compared: the largest difference over the largest value. The library is that of the
environment variable ONNX_TILE_LIBRARY, or of the installed package. Prints Markdown, the slowest first; exit 1 when an output
differs.
"""
import argparse
import fnmatch
import json
import math
import os
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f'{ROOT}/python')
TURN_S = 0.05  # of a runtime in a turn; at least two runs
MS = 'com.microsoft'


# ---- operands ----

rng = np.random.default_rng(0)


def f32(*dims):
    return rng.standard_normal(dims, np.float32)


def f16(*dims):
    return f32(*dims).astype(np.float16)


def u8(*dims):
    return rng.integers(0, 256, dims, np.uint8)


def i8(*dims):
    return rng.integers(-127, 128, dims).astype(np.int8)


def index(below, *dims):
    return rng.integers(0, below, dims, np.int64)


def one(x, dtype=np.float32):
    return np.array(x, dtype)


def rois(n, side):
    corner, size = rng.uniform(0, side / 2, (n, 2)), rng.uniform(8, side / 2, (n, 2))
    return np.concatenate([corner, corner + size], 1).astype(np.float32)


def grid(*dims):
    return (rng.uniform(-1.1, 1.1, dims)).astype(np.float32)


def scales(n):
    return rng.uniform(0.01, 0.02, n).astype(np.float32)


class Case:
    """A node and its operands; those of `fixed` are initializers."""

    def __init__(self, name, op, operands, fixed=(), outputs=1, domain='', opset=17, **attributes):
        self.name, self.op, self.operands, self.fixed = name, op, operands, fixed
        self.outputs, self.domain, self.opset, self.attributes = outputs, domain, opset, attributes

    def model(self):
        names = [f'x{k}' if x is not None else '' for k, x in enumerate(self.operands)]
        y = [f'y{k}' for k in range(self.outputs)]
        node = helper.make_node(self.op, names, y, domain=self.domain, **self.attributes)
        given = [(k, n, x) for k, (n, x) in enumerate(zip(names, self.operands)) if x is not None]
        graph = helper.make_graph(
            [node], 'g',
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, n, x in given if k not in self.fixed],
            [onnx.ValueInfoProto(name=n) for n in y], [numpy_helper.from_array(x, n) for k, n, x in given if k in self.fixed])
        imports = [helper.make_opsetid('', self.opset)] + ([helper.make_opsetid(self.domain, 1)] if self.domain else [])
        feeds = {n: x for k, n, x in given if k not in self.fixed}
        return helper.make_model(graph, opset_imports=imports, ir_version=9), feeds


def einsum(name, equation, *shapes):
    return Case(f'Einsum {equation}' + (f' {name}' if name else ''), 'Einsum', [f32(*s) for s in shapes], equation=equation)


def linear_q(n):
    return [one(0.02), one(3, np.uint8)][:n]


def cases():
    yield einsum('', 'bij,bjk->bik', (8, 256, 256), (8, 256, 256))
    yield einsum('', 'bhid,bhjd->bhij', (1, 8, 512, 64), (1, 8, 512, 64))
    yield einsum('', 'bhid,bjhd->bihj', (1, 8, 256, 64), (1, 256, 8, 64))
    yield einsum('', 'bqc,bchw->bqhw', (1, 100, 256), (1, 256, 64, 64))
    yield einsum('', 'hbwpc,hcd->hbwpd', (8, 1, 64, 64, 32), (8, 32, 32))
    yield einsum('', 'bchw,c->bhw', (1, 64, 128, 128), (64,))
    yield einsum('', '...ij,...j->...i', (64, 64, 64), (64, 64))
    yield einsum('', 'i,j->ij', (1024,), (1024,))
    yield einsum('', 'ijkl->lkji', (16, 32, 32, 64))
    yield einsum('', 'bii->bi', (64, 256, 256))
    yield einsum('', 'bij->', (16, 256, 256))
    yield einsum('', 'bi,bj,bk->bijk', (4, 32), (4, 32), (4, 32))
    yield einsum('', 'bnd,bmd,nm->bd', (4, 64, 32), (4, 64, 32), (64, 64))
    for k, groups in ((3, 1), (3, 4)):
        yield Case(f'DeformConv {k}x{k}, {groups} offset groups', 'DeformConv',
                   [f32(1, 64, 48, 48), f32(64, 64, k, k), f32(1, 2 * groups * k * k, 48, 48), f32(64), f32(1, groups * k * k, 48, 48)],
                   fixed=(1, 3), opset=19, kernel_shape=[k, k], pads=[1, 1, 1, 1], offset_group=groups)
    yield Case('DeformConv depthwise', 'DeformConv', [f32(1, 32, 64, 64), f32(32, 1, 3, 3), f32(1, 18, 64, 64)], fixed=(1,), opset=19,
               kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=32)
    for mode in ('linear', 'cubic', 'nearest'):
        for padding in ('zeros', 'border', 'reflection') if mode == 'linear' else ('zeros',):
            yield Case(f'GridSample {mode}, {padding}', 'GridSample', [f32(1, 64, 96, 96), grid(1, 96, 96, 2)], opset=20, mode=mode,
                       padding_mode=padding)
    yield Case('GridSample of many small images', 'GridSample', [f32(1024, 1, 16, 16), grid(1024, 9, 9, 2)], opset=20, align_corners=1)
    yield Case('GridSample 3-D', 'GridSample', [f32(1, 16, 24, 24, 24), grid(1, 24, 24, 24, 3)], opset=20)
    for mode in ('avg', 'max'):
        yield Case(f'RoiAlign {mode}', 'RoiAlign', [f32(1, 64, 64, 64), rois(64, 60), index(1, 64)], output_height=7, output_width=7,
                   sampling_ratio=2, mode=mode)
    yield Case('MaxRoiPool', 'MaxRoiPool', [f32(1, 64, 64, 64), np.concatenate([np.zeros((64, 1), np.float32), rois(64, 60)], 1)],
               pooled_shape=[7, 7])
    yield Case('AffineGrid', 'AffineGrid', [f32(2, 2, 3), np.array([2, 3, 256, 256])], fixed=(1,), opset=20)
    yield Case('GatherElements last axis', 'GatherElements', [f32(64, 4096), index(4096, 64, 4096)], axis=1)
    yield Case('GatherElements first axis', 'GatherElements', [f32(512, 1024), index(512, 512, 1024)], axis=0)
    yield Case('GatherND', 'GatherND', [f32(64, 64, 64), index(64, 4096, 2)])
    yield Case('Gather', 'Gather', [f32(4096, 256), index(4096, 2048)])
    yield Case('ScatterElements', 'ScatterElements', [f32(512, 1024), index(512, 512, 1024), f32(512, 1024)], axis=0, opset=18)
    yield Case('ScatterElements add', 'ScatterElements', [f32(512, 1024), index(1024, 512, 1024), f32(512, 1024)], axis=1, opset=18,
               reduction='add')
    yield Case('ScatterND', 'ScatterND', [f32(4096, 64), index(4096, 2048, 1), f32(2048, 64)], opset=18)
    yield Case('ScatterND add', 'ScatterND', [f32(256, 256), index(256, 16384, 2), f32(16384)], opset=18, reduction='add')
    yield Case('TopK 100 of 8400', 'TopK', [f32(16, 8400), np.array([100])], fixed=(1,), outputs=2)
    yield Case('TopK 1 of 64 channels', 'TopK', [f32(1, 64, 96, 96), np.array([1])], fixed=(1,), outputs=2, axis=1)
    yield Case('TopK 1000 of 100000', 'TopK', [f32(1, 100000), np.array([1000])], fixed=(1,), outputs=2)
    for op, gates in (('LSTM', 4), ('GRU', 3), ('RNN', 1)):
        h, x = 128, 64
        yield Case(op, op, [f32(64, 1, x), f32(1, gates * h, x) / 8, f32(1, gates * h, h) / 8, f32(1, 2 * gates * h)], fixed=(1, 2, 3), hidden_size=h)
        yield Case(f'{op} with lengths', op, [f32(64, 4, x), f32(1, gates * h, x) / 8, f32(1, gates * h, h) / 8, f32(1, 2 * gates * h),
                                              np.array([64, 50, 33, 9], np.int32)], fixed=(1, 2, 3), hidden_size=h)
    yield Case('LSTM bidirectional, batch 8', 'LSTM', [f32(64, 8, 64), f32(2, 512, 64) / 8, f32(2, 512, 128) / 8, f32(2, 1024)], fixed=(1, 2, 3),
               hidden_size=128, direction='bidirectional')
    yield Case('LSTM with peepholes', 'LSTM', [f32(64, 2, 64), f32(1, 512, 64) / 8, f32(1, 512, 128) / 8, f32(1, 1024), None, None, None,
                                               f32(1, 384)], fixed=(1, 2, 3, 7), hidden_size=128)
    yield Case('DFT 512', 'DFT', [f32(64, 512, 1)], axis=1)
    yield Case('DFT 480, one side', 'DFT', [f32(64, 480, 1)], axis=1, onesided=1)
    yield Case('DFT inverse', 'DFT', [f32(64, 512, 2)], axis=1, inverse=1)
    yield Case('DFT of columns', 'DFT', [f32(1, 256, 256, 2)], axis=1)
    yield Case('STFT', 'STFT', [f32(1, 16000), one(160, np.int64), f32(400)], fixed=(1, 2))
    q = [one(0.02), one(128, np.uint8), one(0.01), one(0, np.int8), one(0.5), one(120, np.uint8)]
    yield Case('QLinearConv 3x3', 'QLinearConv', [u8(1, 64, 56, 56), q[0], q[1], i8(64, 64, 3, 3), q[2], q[3], q[4], q[5]], fixed=range(1, 8),
               pads=[1, 1, 1, 1])
    yield Case('QLinearConv 1x1, by channel', 'QLinearConv', [u8(1, 128, 28, 28), q[0], q[1], i8(256, 128, 1, 1), scales(256), np.zeros(256, np.int8), q[4], q[5]],
               fixed=range(1, 8))
    yield Case('QLinearMatMul', 'QLinearMatMul', [u8(256, 512), q[0], q[1], i8(512, 512), q[2], q[3], q[4], q[5]], fixed=range(1, 8))
    yield Case('MatMulInteger', 'MatMulInteger', [u8(256, 512), i8(512, 512), q[1]], fixed=(1, 2))
    yield Case('MatMulInteger, two inputs', 'MatMulInteger', [u8(4, 128, 128), u8(4, 128, 128)])
    yield Case('ConvInteger', 'ConvInteger', [u8(1, 64, 28, 28), u8(64, 64, 3, 3), q[1], one(128, np.uint8)], fixed=(1, 2, 3), pads=[1, 1, 1, 1])
    yield Case('DynamicQuantizeLinear', 'DynamicQuantizeLinear', [f32(256, 4096)], outputs=3)
    yield Case('QuantizeLinear', 'QuantizeLinear', [f32(256, 4096), q[0], q[1]], fixed=(1, 2))
    yield Case('DequantizeLinear by channel', 'DequantizeLinear', [i8(256, 4096), scales(256), np.zeros(256, np.int8)], fixed=(1, 2), axis=0)
    for rows in (1, 64):
        yield Case(f'MatMulNBits, {rows} rows', 'MatMulNBits', [f32(rows, 1024), u8(1024, 32, 16), scales(1024 * 32), u8(1024 * 16)], fixed=(1, 2, 3),
                   domain=MS, K=1024, N=1024, bits=4, block_size=32)
    yield Case('QLinearAdd', 'QLinearAdd', [u8(1, 64, 56, 56), q[0], q[1], u8(1, 64, 56, 56), q[0], q[1], q[0], q[1]], fixed=(1, 2, 4, 5, 6, 7), domain=MS)
    yield Case('QLinearMul', 'QLinearMul', [u8(1, 64, 56, 56), q[0], q[1], u8(1, 64, 56, 56), q[0], q[1], q[0], q[1]], fixed=(1, 2, 4, 5, 6, 7), domain=MS)
    yield Case('QLinearSigmoid', 'QLinearSigmoid', [u8(1, 64, 56, 56), q[0], q[1], q[0], q[1]], fixed=range(1, 5), domain=MS)
    yield Case('QLinearLeakyRelu', 'QLinearLeakyRelu', [u8(1, 64, 56, 56), q[0], q[1], q[0], q[1]], fixed=range(1, 5), domain=MS, alpha=0.1)
    yield Case('QLinearGlobalAveragePool', 'QLinearGlobalAveragePool', [u8(1, 512, 14, 14), q[0], q[1], q[0], q[1]], fixed=range(1, 5), domain=MS)
    yield Case('QLinearAveragePool', 'QLinearAveragePool', [u8(1, 64, 56, 56), q[0], q[1], q[0], q[1]], fixed=range(1, 5), domain=MS,
               kernel_shape=[3, 3], strides=[2, 2])
    yield Case('QLinearConcat', 'QLinearConcat', [q[0], q[1], u8(1, 64, 56, 56), q[0], q[1], u8(1, 64, 56, 56), one(0.03), q[1]], fixed=(0, 1, 3, 4, 6, 7),
               domain=MS, axis=1)
    yield Case('CumSum last axis', 'CumSum', [f32(256, 4096), one(1, np.int64)], fixed=(1,))
    yield Case('CumSum first axis', 'CumSum', [f32(512, 1024), one(0, np.int64)], fixed=(1,))
    yield Case('CumSum int64', 'CumSum', [index(9, 64, 1024), one(1, np.int64)], fixed=(1,))
    for mode in ('cubic', 'linear', 'nearest'):
        yield Case(f'Resize {mode} x2', 'Resize', [f32(1, 32, 96, 96), None, np.array([1, 1, 2, 2], np.float32)], fixed=(2,), mode=mode)
    yield Case('Resize cubic, smoothed', 'Resize', [f32(1, 3, 256, 256), None, np.array([1, 1, .5, .5], np.float32)], fixed=(2,), opset=18, mode='cubic',
               antialias=1)
    yield Case('Resize 3-D', 'Resize', [f32(1, 8, 24, 24, 24), None, np.array([1, 1, 2, 2, 2], np.float32)], fixed=(2,), mode='linear')
    for mode in ('reflect', 'edge', 'constant'):
        yield Case(f'Pad {mode}', 'Pad', [f32(1, 64, 128, 128), np.array([0, 0, 3, 3, 0, 0, 3, 3])], fixed=(1,), mode=mode)
    yield Case('Pad wrap', 'Pad', [f32(1, 64, 128, 128), np.array([0, 0, 3, 3, 0, 0, 3, 3])], fixed=(1,), opset=19, mode='wrap')
    yield Case('Conv 3-D', 'Conv', [f32(1, 16, 24, 48, 48), f32(16, 16, 3, 3, 3)], fixed=(1,), pads=[1] * 6)
    for d in (2, 4):
        yield Case(f'Conv 3-D, dilation {d}', 'Conv', [f32(1, 16, 24, 48, 48), f32(16, 16, 3, 3, 3)], fixed=(1,), pads=[d] * 6, dilations=[d] * 3)
    yield Case('Conv 2-D, dilation 4', 'Conv', [f32(1, 64, 64, 64), f32(64, 64, 3, 3)], fixed=(1,), pads=[4] * 4, dilations=[4] * 2)
    yield Case('Conv 1-D, dilation 8', 'Conv', [f32(1, 64, 4096), f32(64, 64, 3)], fixed=(1,), pads=[8] * 2, dilations=[8])
    yield Case('Conv of two inputs', 'Conv', [f32(1, 32, 64, 64), f32(32, 32, 3, 3)], pads=[1] * 4)
    yield Case('ConvTranspose 3-D', 'ConvTranspose', [f32(1, 32, 12, 24, 24), f32(32, 16, 2, 2, 2)], fixed=(1,), strides=[2] * 3)
    yield Case('ConvTranspose 3-D, overlapping', 'ConvTranspose', [f32(1, 32, 12, 24, 24), f32(32, 16, 4, 4, 4)], fixed=(1,), strides=[2] * 3, pads=[1] * 6)
    yield Case('ConvTranspose, groups', 'ConvTranspose', [f32(1, 64, 64, 64), f32(64, 1, 4, 4)], fixed=(1,), strides=[2] * 2, pads=[1] * 4, group=64)
    yield Case('ConvTranspose 1-D', 'ConvTranspose', [f32(1, 64, 1024), f32(64, 32, 16)], fixed=(1,), strides=[8], pads=[4, 4])
    yield Case('ConvTranspose, dilation 2', 'ConvTranspose', [f32(1, 32, 48, 48), f32(32, 32, 3, 3)], fixed=(1,), dilations=[2, 2])
    yield Case('AveragePool 3-D', 'AveragePool', [f32(1, 32, 24, 48, 48)], kernel_shape=[2] * 3, strides=[2] * 3)
    yield Case('MaxPool with indices', 'MaxPool', [f32(1, 64, 112, 112)], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    yield Case('MaxPool, dilation 2', 'MaxPool', [f32(1, 64, 112, 112)], kernel_shape=[3, 3], dilations=[2, 2])
    yield Case('LpPool', 'LpPool', [f32(1, 64, 112, 112)], opset=18, kernel_shape=[3, 3], strides=[2, 2])
    yield Case('GlobalLpPool', 'GlobalLpPool', [f32(1, 64, 112, 112)])
    yield Case('MaxUnpool', 'MaxUnpool', [f32(1, 64, 56, 56), np.arange(64 * 56 * 56).reshape(1, 64, 56, 56) * 4], kernel_shape=[2, 2], strides=[2, 2])
    yield Case('Col2Im', 'Col2Im', [f32(1, 64 * 9, 64 * 64), np.array([64, 64]), np.array([3, 3])], fixed=(1, 2), opset=18, pads=[1] * 4)
    yield Case('OneHot', 'OneHot', [index(128, 4096), one(128, np.int64), np.array([0, 1], np.float32)], fixed=(1, 2))
    yield Case('NonZero', 'NonZero', [(f32(512, 512) > 1).astype(np.float32)])
    yield Case('Where, broadcast', 'Where', [f32(1, 1, 256, 256) > 0, f32(8, 1, 256, 256), one(0)], fixed=(2,))
    yield Case('Trilu', 'Trilu', [f32(16, 256, 256)])
    yield Case('ReverseSequence', 'ReverseSequence', [f32(128, 16, 64), index(100, 16) + 1], batch_axis=1, time_axis=0)
    yield Case('Compress', 'Compress', [f32(4096, 128), f32(4096) > 0], axis=0)
    yield Case('Unique', 'Unique', [index(100, 20000)], outputs=4)
    yield Case('EyeLike', 'EyeLike', [f32(512, 512)])
    yield Case('Range', 'Range', [one(0), one(100000), one(1)])
    yield Case('NonMaxSuppression', 'NonMaxSuppression', [np.sort(rng.uniform(0, 1, (1, 2000, 2, 2)), 2).reshape(1, 2000, 4).astype(np.float32),
                                                       rng.uniform(0, 1, (1, 4, 2000)).astype(np.float32), np.array([100]), one([0.5]), one([0.3])], fixed=(2, 3, 4))
    yield Case('Det', 'Det', [f32(256, 16, 16)])
    yield Case('RotaryEmbedding', 'RotaryEmbedding', [f32(1, 8, 256, 64), f32(512, 32), f32(512, 32), np.arange(256).reshape(1, 256)], fixed=(1, 2), opset=23)
    yield Case('Attention', 'Attention', [f32(1, 8, 256, 64)] * 3, opset=23)
    yield Case('MatMul', 'MatMul', [f32(256, 512), f32(512, 512)], fixed=(1,))
    yield Case('MatMul float64', 'MatMul', [f32(256, 256).astype(np.float64), f32(256, 256).astype(np.float64)])
    yield Case('MatMul int32', 'MatMul', [index(99, 128, 128).astype(np.int32), index(99, 128, 128).astype(np.int32)])
    yield Case('Gemm float64', 'Gemm', [f32(256, 256).astype(np.float64), f32(256, 256).astype(np.float64)])
    yield Case('Conv float64', 'Conv', [f32(1, 16, 32, 32).astype(np.float64), f32(16, 16, 3, 3).astype(np.float64)], pads=[1] * 4)
    for op in ('Add', 'Mul', 'Div'):
        for t in (np.float64, np.int64, np.int32, np.uint8):
            yield Case(f'{op} {np.dtype(t).name}', op, [(index(9, 256, 1024) + 1).astype(t), (index(9, 256, 1024) + 1).astype(t)])
    yield Case('Mod int64', 'Mod', [index(99, 256, 1024), index(9, 256, 1024) + 1])
    yield Case('Pow float64', 'Pow', [np.abs(f32(256, 1024)).astype(np.float64), one(2, np.float64)], fixed=(1,))
    for op in ('Exp', 'Erf', 'Sqrt', 'Tanh', 'Abs', 'Neg', 'Floor'):
        yield Case(f'{op} float64', op, [np.abs(f32(256, 1024)).astype(np.float64)])
    for op in ('Sin', 'Cos', 'Tan', 'Asin', 'Atan', 'Acosh', 'Sinh', 'Log', 'Round', 'Sign', 'Softplus', 'Softsign', 'Mish', 'Celu', 'Selu', 'HardSwish', 'IsNaN',
               'Reciprocal', 'ThresholdedRelu', 'Shrink'):
        yield Case(op, op, [np.abs(f32(256, 1024)) + (op == 'Acosh') if op not in ('Asin',) else rng.uniform(-1, 1, (256, 1024)).astype(np.float32)], opset=18)
    yield Case('Gelu', 'Gelu', [f32(256, 1024)], opset=20)
    yield Case('PRelu', 'PRelu', [f32(1, 64, 64, 64), f32(64, 1, 1)], fixed=(1,))
    yield Case('And', 'And', [f32(256, 1024) > 0, f32(256, 1024) > 0])
    yield Case('Not', 'Not', [f32(256, 1024) > 0])
    yield Case('BitwiseAnd', 'BitwiseAnd', [index(99, 256, 1024), index(99, 256, 1024)], opset=18)
    yield Case('BitShift', 'BitShift', [u8(256, 1024), u8(256, 1024) % 8], direction='LEFT')
    for t in (np.int64, np.int32, np.float64):
        for op in ('ReduceSum', 'ReduceMax'):
            yield Case(f'{op} {np.dtype(t).name}', op, [index(99, 256, 1024).astype(t)] + [np.array([1])], fixed=(1,), opset=18)
    yield Case('ArgMax int64', 'ArgMax', [index(99, 256, 1024)], axis=1)
    yield Case('Softmax float64', 'Softmax', [f32(256, 1024).astype(np.float64)])
    yield Case('LayerNormalization float64', 'LayerNormalization', [f32(256, 1024).astype(np.float64), f32(1024).astype(np.float64)])
    yield Case('BatchNormalization', 'BatchNormalization', [f32(1, 64, 64, 64), *(np.abs(f32(64)) for _ in range(4))], fixed=range(1, 5))
    yield Case('Hardmax', 'Hardmax', [f32(256, 1024)])
    yield Case('LpNormalization', 'LpNormalization', [f32(256, 1024)])
    yield Case('LRN', 'LRN', [f32(1, 64, 56, 56)], size=5)
    yield Case('MeanVarianceNormalization', 'MeanVarianceNormalization', [f32(4, 16, 64, 64)])
    yield Case('Sum of three', 'Sum', [f32(256, 1024)] * 3)
    yield Case('Max of two', 'Max', [f32(256, 1024)] * 2)
    yield Case('Cast to int64', 'Cast', [f32(256, 1024)], to=T.INT64)
    yield Case('Cast to float16', 'Cast', [f32(256, 1024)], to=T.FLOAT16)
    yield Case('Clip int64', 'Clip', [index(99, 256, 1024), one(9, np.int64), one(50, np.int64)], fixed=(1, 2))
    yield Case('SoftmaxCrossEntropyLoss', 'SoftmaxCrossEntropyLoss', [f32(256, 1000), index(1000, 256)])


# ---- measuring ----

def least(run, seconds):
    """The least processor time of a run; a turn of that long."""
    best, start, n = math.inf, time.perf_counter(), 0
    while n < 2 or time.perf_counter() - start < seconds:
        at = time.process_time_ns()
        run()
        best, n = min(best, time.process_time_ns() - at), n + 1
    return best / 1e6


def difference(got, want):
    """The largest one, over the largest value; infinite where types, shapes or what is no number differ."""
    worst = 0.0
    for a, b in zip(got, want):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return math.inf
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(np.isfinite(a), finite):
            return math.inf
        if finite.any():
            worst = max(worst, np.abs(a - b)[finite].max() / max(np.abs(b[finite]).max(), 1e-30))
    return worst


def look(case, a):
    """Milliseconds of both runtimes and the difference, or why there is none."""
    import onnx_tile
    import onnxruntime as ort
    model, feeds = case.model()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = a.threads, 4
    data, row = model.SerializeToString(), {'name': case.name}
    theirs = ours = None
    try:
        theirs = ort.InferenceSession(data, options, providers=['CPUExecutionProvider'])
        ours = onnx_tile.Session(data, threads=a.threads)
    except Exception as e:  # one of them does not have the operator
        return {**row, 'why': f'{"ONNX Runtime" if theirs is None else "engine"}: {str(e).strip().splitlines()[-1][:120]}'}
    row['difference'] = difference(ours.run(feeds), theirs.run(None, feeds))
    sides = {'engine_ms': lambda: ours.run(feeds), 'onnxruntime_ms': lambda: theirs.run(None, feeds)}
    for _ in range(a.turns):
        for key, run in sides.items():
            row[key] = min(row.get(key, math.inf), least(run, TURN_S))
    row['ratio'] = row['engine_ms'] / row['onnxruntime_ms']
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--only', action='append', metavar='GLOB')
    p.add_argument('--turns', type=int, default=3)
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--worst', type=int, help='rows that are printed; default: all')
    p.add_argument('--tolerance', type=float, default=1e-3)
    p.add_argument('--json')
    a = p.parse_args()
    rows = [look(c, a) for c in cases() if not a.only or any(fnmatch.fnmatch(c.name, g) for g in a.only)]
    timed = sorted((r for r in rows if 'ratio' in r), key=lambda r: -r['ratio'])
    if a.json:
        with open(a.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    print('| operator | ONNX Runtime, ms | engine, ms | ratio | difference |\n|---|--:|--:|--:|--:|')
    for r in timed[:a.worst]:
        print(f'| {r["name"]} | {r["onnxruntime_ms"]:.3f} | {r["engine_ms"]:.3f} | x{r["ratio"]:.2f} | {r["difference"]:.0e} |')
    if timed:
        mean = math.exp(sum(math.log(r['ratio']) for r in timed) / len(timed))
        print(f'\n{len(timed)} operators, geometric mean x{mean:.2f}; above x2: {sum(r["ratio"] > 2 for r in timed)}.')
    for r in rows:
        if 'why' in r:
            print(f'not compared: {r["name"]}: {r["why"]}', file=sys.stderr)
    return any(r['difference'] > a.tolerance for r in timed)


if __name__ == '__main__':
    sys.exit(main())
