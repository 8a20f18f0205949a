#!/usr/bin/env python3
"""Networks of the classes that people run out of memory with, seeded; scripts/out_of_memory.py measures them.

  memory_models.py OUT NAME [NAME...]      OUT/NAME.onnx; --list names them

Architectures as published, weights random: memory depends on neither training nor data.
"""
import sys

import numpy as np

from make_models import Net, build, prelu, write_named


def dilated(n, x, out, rate, dims=2, k=3):
    c = n.channels[x]
    w = n.const(n.normal((out, c) + (k,) * dims, c * k ** dims))
    y = n.node('Conv', [x, w, n.const(np.zeros(out, np.float32), 'b')], kernel_shape=[k] * dims, dilations=[rate] * dims,
               pads=[rate * (k // 2)] * 2 * dims)
    n.channels[y] = out
    return y


def grow(n, x, times):
    """Nearest up-sampling."""
    y = n.node('Resize', [x, '', n.const(np.array([1, 1, times, times], np.float32), 'scales')], mode='nearest',
               coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    n.channels[y] = n.channels[x]
    return y


def join(n, values):
    y = n.node('Concat', values, axis=1)
    n.channels[y] = sum(n.channels[v] for v in values)
    return y


def slices(batch=8, size=200, width=32):
    """Segmentation of the slices of a volume at full resolution: dilated convolutions, and parallel ones of several rates."""
    n = Net('slices', 31)
    x = n.input([batch, 1, size, size])
    for rate in (1, 1, 2, 2):
        x = n.relu(n.norm(dilated(n, x, width, rate)))
    x = join(n, [n.relu(dilated(n, x, width, rate)) for rate in (1, 6, 12, 18)])
    x = n.relu(n.norm(n.conv(x, width, 1)))
    n.output(n.node('Sigmoid', [n.conv(x, 1, 1)]), [batch, 1, size, size])
    return n.model()


def srgan(height=270, wide=480, width=32, depth=4):
    """Generator of an SRGAN, four times: residual blocks with PRelu, two pixel shuffles, 9 x 9 at both ends."""
    n = Net('srgan', 32)
    x = n.input([1, 3, height, wide])
    head = prelu(n, n.conv(x, width, 9))
    y = head
    for _ in range(depth):
        y = n.node('Add', [y, n.norm(n.conv(prelu(n, n.norm(n.conv(y, width, bias=False))), width, bias=False))])
        n.channels[y] = width
    y = n.node('Add', [head, n.conv(y, width)])
    n.channels[y] = width
    for _ in range(2):
        y = n.node('DepthToSpace', [n.conv(y, 4 * width)], blocksize=2, mode='CRD')
        n.channels[y] = width
        y = prelu(n, y)
    n.output(n.node('Tanh', [n.conv(y, 3, 9)]), [1, 3, 4 * height, 4 * wide])
    return n.model()


def early_upscale(size=128, width=64):
    """Features are made four times as large before the last convolutions: 64 channels at the size of the result."""
    n = Net('early_upscale', 33)
    x = n.relu(n.conv(n.input([1, 3, size, size]), width))
    x = n.relu(n.conv(grow(n, x, 4), width))
    n.output(n.conv(x, 3), [1, 3, 4 * size, 4 * size])
    return n.model()


def esrgan(size=128, width=32, more=16, depth=2):
    """ESRGAN: dense blocks in residual ones, two up-samplings."""
    n = Net('esrgan', 34)
    leaky = lambda v: n.node('LeakyRelu', [v], alpha=.2)

    def add(a, b, share=None):
        if share:
            b = n.node('Mul', [b, n.const(np.float32(share), 'share')])
        y = n.node('Add', [a, b])
        n.channels[y] = width
        return y

    def dense(v):
        have = [v]
        for _ in range(4):
            have.append(leaky(n.conv(join(n, have) if len(have) > 1 else v, more)))
        return add(v, n.conv(join(n, have), width), .2)

    head = y = n.conv(n.input([1, 3, size, size]), width)
    for _ in range(depth):
        y = add(y, dense(dense(dense(y))), .2)
    y = add(head, n.conv(y, width))
    for _ in range(2):
        y = leaky(n.conv(grow(n, y, 2), width))
    n.output(n.conv(leaky(n.conv(y, width)), 3), [1, 3, 4 * size, 4 * size])
    return n.model()


def compact(height=270, wide=480, width=32, depth=8):
    """The compact form of Real-ESRGAN: convolutions with PRelu at the small size, one pixel shuffle, the image added."""
    n = Net('compact', 35)
    x = n.input([1, 3, height, wide])
    y = x
    for _ in range(depth):
        y = prelu(n, n.conv(y, width))
    y = n.node('DepthToSpace', [n.conv(y, 48)], blocksize=4, mode='CRD')
    n.output(n.node('Add', [y, grow(n, x, 4)]), [1, 3, 4 * height, 4 * wide])
    return n.model()


def meshnet(size=96, width=5, classes=3):
    """MeshNet: a chain of dilated convolutions over a whole volume."""
    n = Net('meshnet', 36)
    x = n.input([1, 1, size, size, size])
    for rate in (1, 2, 4, 8, 16, 8, 4, 2, 1):
        x = n.relu(dilated(n, x, width, rate, dims=3))
    n.output(dilated(n, x, classes, 1, dims=3, k=1), [1, classes, size, size, size])
    return n.model()


MODELS = {
    'slices': slices, 'srgan': srgan, 'early_upscale': early_upscale, 'esrgan': esrgan, 'compact': compact, 'meshnet': meshnet,
    'volume_unet': lambda: build('unet', batch=8, size=208, width=16, depth=4),
    'wide_tensors': lambda: build('espcn', size=720),
    'vae_decoder': lambda: build('decoder', size=256, width=32),
    'mobilenet': lambda: build('mobilenet_v2', size=448),
}


if __name__ == '__main__':
    sys.exit(write_named(__doc__, MODELS))
