#!/usr/bin/env python3
"""Generate ONNX models with seeded weights: the networks of the demo, the tests and the notes.

  make_models.py OUT NAME [NAME...] [--batch N] [--size N] [--width N] [--depth N] [--seed N] [--small]
  make_models.py --list

OUT is a folder (files are called NAME.onnx). "all" makes every model. --small shrinks spatial sizes and widths, for tests.
Needs onnx and numpy. The same arguments give the same bytes.
"""
import argparse
import inspect
import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Net:
    """A graph under construction. Methods append nodes and return the name of their output."""

    def __init__(self, name, seed):
        self.name, self.rng = name, np.random.default_rng(seed)
        self.nodes, self.inits, self.inputs, self.outputs, self.count = [], [], [], [], 0
        self.channels = {}                       # value -> channels, where a builder wants them

    # ---- basics ----
    def fresh(self, base):
        self.count += 1
        return f'{base}_{self.count}'

    def input(self, shape, name='x', dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        if len(shape) > 1:
            self.channels[name] = shape[1]
        return name

    def output(self, value, shape, dtype=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(value, dtype, shape))

    def const(self, array, base='w'):
        name = self.fresh(base)
        self.inits.append(numpy_helper.from_array(np.asarray(array, order='C'), name))
        return name

    def node(self, op, inputs, outputs=1, **attrs):
        name = self.fresh(op.lower())
        outs = [name + '_out'] if outputs == 1 else [f'{name}_out{k}' for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, outs, name=name, **attrs))
        if inputs and inputs[0] in self.channels:
            self.channels[outs[0]] = self.channels[inputs[0]]
        return outs[0] if outputs == 1 else outs

    def model(self, opset=OPSET):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.inits)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8,
                              producer_name='onnx-tile models')
        if m.ByteSize() < 2 ** 31:
            onnx.checker.check_model(m, full_check=True)
        return m

    # ---- layers ----
    def normal(self, shape, fan_in):
        return (self.rng.standard_normal(shape) * math.sqrt(2.0 / fan_in)).astype(np.float32)

    def conv(self, x, out, k=3, stride=1, group=1, bias=True, pad=None):
        c = self.channels[x]
        ins = [x, self.const(self.normal((out, c // group, k, k), c // group * k * k))]
        if bias:
            ins.append(self.const(self.rng.uniform(-.05, .05, out).astype(np.float32), 'b'))
        y = self.node('Conv', ins, kernel_shape=[k, k], strides=[stride] * 2, group=group,
                      pads=[(k // 2 if pad is None else pad)] * 4)
        self.channels[y] = out
        return y

    def norm(self, x):
        c = self.channels[x]
        u = self.rng.uniform
        return self.node('BatchNormalization', [x] + [self.const(a.astype(np.float32), 'bn') for a in (
            u(.8, 1.2, c), u(-.1, .1, c), u(-.1, .1, c), u(.8, 1.2, c))])

    def relu(self, x):
        return self.node('Relu', [x])

    def relu6(self, x):
        return self.node('Clip', [x, self.const(np.float32(0), 'lo'), self.const(np.float32(6), 'hi')])

    def conv_norm(self, x, out, k=3, stride=1, group=1, act=None):
        y = self.norm(self.conv(x, out, k, stride, group, bias=False))
        return act(y) if act else y

    def linear(self, x, n_in, n_out):
        y = self.node('MatMul', [x, self.const(self.normal((n_in, n_out), 2 * n_in))])
        return self.node('Add', [y, self.const(np.zeros(n_out, np.float32), 'b')])

    def head(self, x, classes, batch):
        c = self.channels[x]
        x = self.node('Flatten', [self.node('GlobalAveragePool', [x])], axis=1)
        x = self.node('Gemm', [x, self.const(self.normal((classes, c), c)), self.const(np.zeros(classes, np.float32), 'b')], transB=1)
        self.output(x, [batch, classes])


# ---- classification ----

def resnet50(batch=1, size=224, width=64, seed=1):
    """ResNet-50 with BatchNormalization kept apart, as frameworks export it for training."""
    n = Net('resnet50', seed)
    x = n.input([batch, 3, size, size])
    x = n.conv_norm(x, width, 7, 2, act=n.relu)
    x = n.node('MaxPool', [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        mid = width << stage
        for b in range(blocks):
            stride = 2 if stage and not b else 1
            y = n.conv_norm(x, mid, 1, act=n.relu)
            y = n.conv_norm(y, mid, 3, stride, act=n.relu)
            y = n.conv_norm(y, 4 * mid, 1)
            skip = x if b else n.conv_norm(x, 4 * mid, 1, stride)
            x = n.relu(n.node('Add', [y, skip]))
    n.head(x, 1000, batch)
    return n.model()


def mobilenet_blocks(width=1.0):
    """Inverted residual blocks of MobileNetV2: (expansion, channels, stride), one per block."""
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for t, c, repeat, stride in rows:
        for k in range(repeat):
            yield t, max(8, int(c * width + 4) // 8 * 8), stride if k == 0 else 1


def mobilenet_v2(batch=1, size=224, seed=2):
    """MobileNetV2 1.0, fp32, BatchNormalization folded."""
    n = Net('mobilenet_v2', seed)
    x = n.relu6(n.conv(n.input([batch, 3, size, size]), 32, 3, 2))
    for t, c, stride in mobilenet_blocks():
        inner = n.channels[x] * t
        y = x if t == 1 else n.relu6(n.conv(x, inner, 1))
        y = n.relu6(n.conv(y, inner, 3, stride, group=inner))
        y = n.conv(y, c, 1)
        x = n.node('Add', [x, y]) if stride == 1 and n.channels[x] == c else y
    x = n.relu6(n.conv(x, 1280, 1))
    n.head(x, 1000, batch)
    return n.model()


class Quantised(Net):
    """int8 weights per channel, uint8 activations; the clip of ReLU6 is the range of its uint8."""

    def scales(self, value):
        return [self.const(np.float32(value), 's'), self.const(np.uint8(0), 'z')]

    def weights(self, out, c, k):
        w = self.rng.integers(-127, 128, (out, c, k, k)).astype(np.int8)
        scale = np.full(out, math.sqrt(2.0 / (c * k * k)) / 73.0, np.float32)
        return w, scale

    def conv8(self, x, out, k=1, stride=1, group=1, x_scale=6 / 255):
        """A QLinearConv whose operands are one byte each."""
        c = self.channels[x]
        w, ws = self.weights(out, c // group, k)
        y = self.node('QLinearConv', [x] + self.scales(x_scale) + [self.const(w), self.const(ws, 's'), self.const(np.zeros(out, np.int8), 'z')]
                      + self.scales(x_scale) + [self.const(self.rng.integers(-50, 50, out).astype(np.int32), 'b')],
                      kernel_shape=[k, k], strides=[stride] * 2, group=group, pads=[k // 2] * 4)
        self.channels[y] = out
        return y


def mobilenet_v2_int8(batch=1, size=224, seed=3):
    """MobileNetV2 1.0 with QLinearConv: every activation is one byte (the form that microcontrollers run)."""
    n = Quantised('mobilenet_v2_int8', seed)
    x_scale = 6 / 255

    def add(a, b):
        fa, fb = (n.node('DequantizeLinear', [v] + n.scales(x_scale)) for v in (a, b))
        y = n.node('QuantizeLinear', [n.node('Add', [fa, fb])] + n.scales(x_scale))
        n.channels[y] = n.channels[a]
        return y

    x = n.input([batch, 3, size, size], dtype=TensorProto.UINT8)
    x = n.conv8(x, 32, 3, 2)
    for t, c, stride in mobilenet_blocks():
        inner = n.channels[x] * t
        y = x if t == 1 else n.conv8(x, inner)
        y = n.conv8(n.conv8(y, inner, 3, stride, inner), c)
        x = add(x, y) if stride == 1 and n.channels[x] == c else y
    x = n.conv8(x, 1280)
    x = n.node('DequantizeLinear', [x] + n.scales(x_scale))
    n.channels[x] = 1280
    n.head(x, 1000, batch)
    return n.model()


def mobilenet_v2_qdq(batch=1, size=224, seed=3):
    """The same network as QuantizeLinear/DequantizeLinear pairs around float operators."""
    n = Quantised('mobilenet_v2_qdq', seed)
    scale = 6 / 255

    def quantise(x):
        y = n.node('DequantizeLinear', [n.node('QuantizeLinear', [x] + n.scales(scale))] + n.scales(scale))
        n.channels[y] = n.channels[x]
        return y

    def conv(x, out, k=1, stride=1, group=1, act=True):
        c = n.channels[x]
        w, ws = n.weights(out, c // group, k)
        wf = n.node('DequantizeLinear', [n.const(w), n.const(ws, 's'), n.const(np.zeros(out, np.int8), 'z')], axis=0)
        y = n.node('Conv', [x, wf], kernel_shape=[k, k], strides=[stride] * 2, group=group, pads=[k // 2] * 4)
        n.channels[y] = out
        return quantise(n.relu6(y) if act else y)

    x = quantise(n.input([batch, 3, size, size]))
    x = conv(x, 32, 3, 2)
    for t, c, stride in mobilenet_blocks():
        inner = n.channels[x] * t
        y = x if t == 1 else conv(x, inner)
        y = conv(conv(y, inner, 3, stride, inner), c, act=False)
        x = quantise(n.node('Add', [x, y])) if stride == 1 and n.channels[x] == c else y
    n.head(conv(x, 1280), 1000, batch)
    return n.model()


def vgg16_head(batch=1, size=224, width=64, seed=4):
    """The first five convolutions of VGG with their two pools: the literature's example of layer fusion."""
    n = Net('vgg16_head', seed)
    x = n.input([batch, 3, size, size])
    for k, c in enumerate((width, width, 2 * width, 2 * width, 4 * width)):
        x = n.relu(n.conv(x, c))
        if k in (1, 3):
            x = n.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    n.output(x, [batch, 4 * width, size // 4, size // 4])
    return n.model()


def vgg16(batch=1, size=224, width=64, seed=12):
    """VGG-16: thirteen convolutions, five pools, three large matrix products (553 MB of weights at full width)."""
    n = Net('vgg16', seed)
    x, classes = n.input([batch, 3, size, size]), 1000
    for factor, repeat in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(repeat):
            x = n.relu(n.conv(x, factor * width))
        x = n.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    x = n.node('Flatten', [x], axis=1)
    sizes = (8 * width * (size // 32) ** 2, 64 * width, 64 * width, classes)
    for k in range(3):
        w, b = n.const(n.normal((sizes[k + 1], sizes[k]), sizes[k])), n.const(np.zeros(sizes[k + 1], np.float32), 'b')
        x = n.node('Gemm', [x, w, b], transB=1)
        x = n.relu(x) if k < 2 else x
    n.output(x, [batch, classes])
    return n.model()


def vgg16_features(batch=1, size=512, width=64, seed=13):
    """VGG-16 without its matrix products: thirteen convolutions, five pools."""
    n = Net('vgg16_features', seed)
    x = n.input([batch, 3, size, size])
    for factor, repeat in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(repeat):
            x = n.relu(n.conv(x, factor * width))
        x = n.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    n.output(x, [batch, 8 * width, size // 32, size // 32])
    return n.model()


def vit(batch=1, size=224, width=192, depth=4, patch=16, heads=3, seed=5):
    """A vision transformer; tokens = (size / patch)^2."""
    n = Net('vit', seed)
    tokens, dim = (size // patch) ** 2, width // heads
    x = n.input([batch, 3, size, size])
    w = n.const(n.normal((width, 3, patch, patch), 3 * patch * patch))
    x = n.node('Conv', [x, w], kernel_shape=[patch] * 2, strides=[patch] * 2)
    x = n.node('Reshape', [x, n.const(np.array([batch, width, tokens], np.int64), 'shape')])
    x = n.node('Transpose', [x], perm=[0, 2, 1])
    x = n.node('Add', [x, n.const(n.normal((1, tokens, width), width), 'pos')])
    split = n.const(np.array([batch, tokens, heads, dim], np.int64), 'shape')
    joined = n.const(np.array([batch, tokens, width], np.int64), 'shape')

    def layer_norm(v):
        return n.node('LayerNormalization', [v, n.const(np.ones(width, np.float32), 'g'), n.const(np.zeros(width, np.float32), 'b')],
                      axis=-1, epsilon=1e-5)

    for _ in range(depth):
        y = layer_norm(x)
        q, k, v = (n.node('Transpose', [n.node('Reshape', [n.linear(y, width, width), split])], perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        s = n.node('Mul', [n.node('MatMul', [q, k]), n.const(np.float32(dim ** -.5), 'scale')])
        y = n.node('MatMul', [n.node('Softmax', [s], axis=-1), v])
        y = n.node('Reshape', [n.node('Transpose', [y], perm=[0, 2, 1, 3]), joined])
        x = n.node('Add', [x, n.linear(y, width, width)])
        y = n.linear(layer_norm(x), width, 4 * width)
        half = n.node('Erf', [n.node('Mul', [y, n.const(np.float32(2 ** -.5), 'c')])])
        y = n.node('Mul', [n.node('Mul', [y, n.const(np.float32(.5), 'c')]), n.node('Add', [half, n.const(np.float32(1), 'c')])])
        x = n.node('Add', [x, n.linear(y, 4 * width, width)])
    x = layer_norm(x)
    x = n.node('ReduceMean', [x], axes=[1], keepdims=0)
    n.output(n.linear(x, width, 1000), [batch, 1000])
    return n.model()


# ---- images to images ----

def sr(batch=1, size=720, width=48, depth=6, scale=2, seed=6):
    """Super-resolution with a long residual body and a pixel shuffle; size is the height, the image is 16:9."""
    n = Net('sr', seed)
    wide = size * 16 // 9 // 8 * 8
    x = n.input([batch, 3, size, wide])
    head = n.relu(n.conv(x, width, 5))
    y = head
    for _ in range(depth // 2):
        z = n.conv(n.relu(n.conv(y, width)), width)
        y = n.node('Add', [y, z])
    y = n.conv(n.node('Add', [head, y]), 3 * scale * scale)
    y = n.node('DepthToSpace', [y], blocksize=scale, mode='CRD')
    up = n.node('Resize', [x, '', n.const(np.array([1, 1, scale, scale], np.float32), 'scales')], mode='linear',
                coordinate_transformation_mode='half_pixel')
    n.output(n.node('Add', [up, y]), [batch, 3, scale * size, scale * wide])
    return n.model()


def prelu(n, x):
    c = n.channels[x]
    return n.node('PRelu', [x, n.const(n.rng.uniform(.1, .3, (c, 1, 1)).astype(np.float32), 'slope')])


def fsrcnn(batch=1, size=540, width=56, depth=4, scale=2, seed=14):
    """FSRCNN: shrink, map, expand with PRelu, one transposed convolution at the end; size is the height, the image is 16:9."""
    n = Net('fsrcnn', seed)
    wide, small = size * 16 // 9 // 8 * 8, max(width * 3 // 14, 4)
    x = prelu(n, n.conv(n.input([batch, 1, size, wide]), width, 5))
    x = prelu(n, n.conv(x, small, 1))
    for _ in range(depth):
        x = prelu(n, n.conv(x, small))
    x = prelu(n, n.conv(x, width, 1))
    w = n.const(n.normal((width, 1, 9, 9), width * 81 // scale ** 2))
    x = n.node('ConvTranspose', [x, w, n.const(np.zeros(1, np.float32), 'b')], kernel_shape=[9, 9], strides=[scale] * 2,
               pads=[4] * 4, output_padding=[scale - 1] * 2)
    n.output(x, [batch, 1, scale * size, scale * wide])
    return n.model()


def espcn(batch=1, size=360, width=64, scale=3, seed=15):
    """ESPCN: three convolutions with Tanh, then a pixel shuffle; size is the height, the image is 16:9."""
    n = Net('espcn', seed)
    wide = size * 16 // 9 // 8 * 8
    x = n.node('Tanh', [n.conv(n.input([batch, 1, size, wide]), width, 5)])
    x = n.node('Tanh', [n.conv(x, width // 2)])
    x = n.node('DepthToSpace', [n.conv(x, scale * scale)], blocksize=scale, mode='CRD')
    n.output(x, [batch, 1, scale * size, scale * wide])
    return n.model()


def unet(batch=1, size=512, width=16, depth=4, seed=7):
    """U-Net with transposed convolutions and skip connections joined by Concat."""
    n = Net('unet', seed)

    def double(x, c):
        return n.relu(n.conv(n.relu(n.conv(x, c)), c))

    x, skips = n.input([batch, 3, size, size]), []
    for k in range(depth):
        x = double(x, width << k)
        skips.append(x)
        x = n.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    x = double(x, width << depth)
    for k in reversed(range(depth)):
        c = width << k
        x = n.node('ConvTranspose', [x, n.const(n.normal((2 * c, c, 2, 2), 2 * c)), n.const(np.zeros(c, np.float32), 'b')],
                   kernel_shape=[2, 2], strides=[2, 2])
        x = n.node('Concat', [skips[k], x], axis=1)
        n.channels[x] = 2 * c
        x = double(x, c)
    n.output(n.conv(x, 2, 1), [batch, 2, size, size])
    return n.model()


def dncnn(batch=1, size=512, width=64, depth=20, seed=8):
    """Denoiser: a deep chain of 3x3 convolutions at full resolution."""
    n = Net('dncnn', seed)
    x = n.input([batch, 1, size, size])
    y = n.relu(n.conv(x, width))
    for _ in range(depth - 2):
        y = n.conv_norm(y, width, act=n.relu)
    n.output(n.node('Sub', [x, n.conv(y, 1)]), [batch, 1, size, size])
    return n.model()


def decoder(batch=1, size=128, width=32, depth=1, groups=8, seed=17):
    """The decoder of a latent diffusion model in small: GroupNorm as torch exports it, SiLU, residual blocks, attention at the lowest
    resolution, two nearest up-samplings; `depth` + 1 blocks a level."""
    n = Net('decoder', seed)

    def silu_norm(x, side):
        c = n.channels[x]
        r = n.node('Reshape', [x, n.const(np.array([0, groups, -1]), 'shape')])
        r = n.node('InstanceNormalization', [r, n.const(np.ones(groups, np.float32), 'one'), n.const(np.zeros(groups, np.float32), 'zero')],
                   epsilon=1e-6)
        r = n.node('Reshape', [r, n.const(np.array([batch, c, side, side]), 'shape')])
        y = n.node('Mul', [r, n.const(n.rng.uniform(.8, 1.2, (c, 1, 1)).astype(np.float32), 'gamma')])
        y = n.node('Add', [y, n.const(n.rng.uniform(-.1, .1, (c, 1, 1)).astype(np.float32), 'beta')])
        y = n.node('Mul', [y, n.node('Sigmoid', [y])])
        n.channels[y] = c
        return y

    def block(x, out, side):
        y = n.conv(silu_norm(n.conv(silu_norm(x, side), out), side), out)
        y = n.node('Add', [x if n.channels[x] == out else n.conv(x, out, 1), y])
        n.channels[y] = out
        return y

    def attention(x, side):
        c = n.channels[x]
        flat = n.const(np.array([batch, c, side * side]), 'shape')
        q, k, v = (n.node('Reshape', [n.conv(x, c, 1), flat]) for _ in range(3))
        s = n.node('MatMul', [n.node('Transpose', [q], perm=[0, 2, 1]), k])
        s = n.node('Softmax', [n.node('Mul', [s, n.const(np.float32(c ** -.5), 'scale')])], axis=-1)
        y = n.node('MatMul', [s, n.node('Transpose', [v], perm=[0, 2, 1])])
        y = n.node('Reshape', [n.node('Transpose', [y], perm=[0, 2, 1]), n.const(np.array([batch, c, side, side]), 'shape')])
        n.channels[y] = c
        y = n.node('Add', [x, n.conv(y, c, 1)])
        n.channels[y] = c
        return y

    side = size // 4
    x = n.conv(n.input([batch, 4, side, side], 'z'), 4 * width)
    x = block(attention(block(x, 4 * width, side), side), 4 * width, side)
    for level in (4, 2, 1):
        for _ in range(depth + 1):
            x = block(x, level * width, side)
        if level > 1:
            side *= 2
            up = n.node('Resize', [x, '', n.const(np.array([1, 1, 2, 2], np.float32), 'scales')], mode='nearest',
                        coordinate_transformation_mode='asymmetric', nearest_mode='floor')
            n.channels[up] = n.channels[x]
            x = n.conv(up, n.channels[x])
    n.output(n.conv(silu_norm(x, side), 3), [batch, 3, size, size])
    return n.model()


# ---- chains ----

def elementwise(batch=1, size=1024, width=32, depth=5, seed=9):
    """Add, Sigmoid, Mul over and over: nothing but memory traffic."""
    n = Net('elementwise', seed)
    x = n.input([batch, width, size, size])
    for _ in range(depth):
        a = n.node('Add', [x, n.const(n.rng.random((1, width, 1, 1)).astype(np.float32), 'b')])
        x = n.node('Mul', [a, n.node('Sigmoid', [a])])
    n.output(x, [batch, width, size, size])
    return n.model()


def depth(batch=1, size=192, width=16, depth=8, seed=16):
    """A small depth estimator: inverted residual blocks in five stages, a decoder that joins them again; `depth` blocks a stage, some
    150 steps of which none takes long."""
    n = Net('depth', seed)
    x = n.relu6(n.conv(n.input([batch, 3, size, size]), width, 3, 2))
    scales = []
    for stage in range(5):
        for b in range(depth):
            inner, stride, c = 4 * n.channels[x], 2 if stage and not b else 1, width + width // 2 * stage
            y = n.relu6(n.conv(x, inner, 1))
            y = n.conv(n.relu6(n.conv(y, inner, 3, stride, group=inner)), c, 1)
            x = n.node('Add', [x, y]) if stride == 1 and n.channels[x] == c else y
        scales.append(x)
    for skip in scales[-2::-1]:
        x = n.node('Resize', [n.conv(x, n.channels[skip], 1), '', n.const(np.array([1, 1, 2, 2], np.float32), 'scales')],
                   mode='linear', coordinate_transformation_mode='half_pixel')
        x = n.relu(n.conv(n.node('Add', [x, skip]), n.channels[skip]))
    x = n.node('Resize', [n.conv(x, 1), '', n.const(np.array([1, 1, 2, 2], np.float32), 'scales')],
               mode='linear', coordinate_transformation_mode='half_pixel')
    n.output(n.node('Sigmoid', [x]), [batch, 1, size, size])
    return n.model()


def depthwise(batch=8, size=256, width=32, depth=6, seed=10):
    """Depthwise 3x3 and pointwise 1x1 convolutions in turn."""
    n = Net('depthwise', seed)
    x = n.input([batch, width, size, size])
    for _ in range(depth):
        x = n.relu(n.conv(n.relu(n.conv(x, width, 3, group=width)), width, 1))
    n.output(x, [batch, width, size, size])
    return n.model()


def seed_case(batch=32, size=1024, width=256, seed=11):
    """The worked example: one residual block on [32, 256, 1024, 1024], then global pooling.

    The model file is small (weights only); one activation is 32 GiB, so this is for `inspect`."""
    n = Net('seed_case', seed)
    x = n.input([batch, width, size, size])
    y = n.conv_norm(x, width // 4, 1, act=n.relu)
    y = n.conv_norm(y, width // 4, 3, act=n.relu)
    y = n.conv_norm(y, width, 1)
    n.head(n.relu(n.node('Add', [y, x])), 1000, batch)
    return n.model()


MODELS = {f.__name__: f for f in (resnet50, mobilenet_v2, mobilenet_v2_int8, mobilenet_v2_qdq, vgg16_head, vgg16,
                                  vgg16_features, vit, sr, fsrcnn, espcn, unet, dncnn, elementwise, depthwise, seed_case,
                                  depth, decoder)}
# Small enough for sanitizers and quick runs.
SMALL = dict(size=64, width=16, depth=4)
SMALL_OF = {'resnet50': dict(size=64, width=8), 'vgg16': dict(size=64, width=8), 'vit': dict(size=64, width=48, depth=2),
            'sr': dict(size=45, width=8, depth=4), 'fsrcnn': dict(size=45, width=28, depth=2), 'espcn': dict(size=45, width=16),
            'seed_case': dict(size=64, width=32, batch=4),
            'depth': dict(size=64, width=8, depth=2),
            'decoder': dict(size=64, width=8, depth=1),
            'depthwise': dict(batch=4, size=32, width=16, depth=3)}


def build(name, small=False, **given):
    """Model `name`; arguments that its builder does not know are an error."""
    f = MODELS[name]
    known = inspect.signature(f).parameters
    args = dict(SMALL_OF.get(name, SMALL)) if small else {}
    args = {k: v for k, v in args.items() if k in known}
    for k, v in given.items():
        if v is None:
            continue
        if k not in known:
            raise SystemExit(f'{name} has no --{k}')
        args[k] = v
    return f(**args)


def write_named(doc, models, options=()):
    """The command of the other scripts of this folder: OUT NAME [NAME...] or --list. models: {name: function that makes one}, which takes
    the numbers that are given of `options`."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('out', nargs='?')
    p.add_argument('names', nargs='*')
    for option in options:
        p.add_argument('--' + option, type=int)
    p.add_argument('--list', action='store_true')
    a = p.parse_args()
    if a.list:
        print('\n'.join(models))
        return 0
    unknown = [x for x in a.names if x not in models]
    if not a.out or not a.names or unknown:
        p.error(f'no model {unknown[0]!r}' if unknown else 'OUT and NAME are needed (see --list)')
    given = {k: v for k, v in vars(a).items() if k in options and v}
    os.makedirs(a.out, exist_ok=True)
    for name in a.names:
        onnx.save(models[name](**given), os.path.join(a.out, name + '.onnx'))
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('out', nargs='?')
    p.add_argument('names', nargs='*')
    for option in ('batch', 'size', 'width', 'depth', 'seed'):
        p.add_argument('--' + option, type=int)
    p.add_argument('--small', action='store_true')
    p.add_argument('--list', action='store_true')
    a = p.parse_intermixed_args()
    if a.list:
        for name, f in MODELS.items():
            print(f'{name:20s} {f.__doc__.splitlines()[0]}')
        return 0
    if not a.out or not a.names:
        p.error('OUT and NAME are needed (see --list)')
    names = list(MODELS) if a.names == ['all'] else a.names
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        p.error(f'no model {unknown[0]!r}; one of {", ".join(MODELS)}')
    os.makedirs(a.out, exist_ok=True)
    for name in names:
        m = build(name, a.small, batch=a.batch, size=a.size, width=a.width, depth=a.depth, seed=a.seed)
        onnx.save(m, os.path.join(a.out, name + '.onnx'))
    return 0


if __name__ == '__main__':
    sys.exit(main())
