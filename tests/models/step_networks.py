"""Networks that run on what never ends: sound, frames, lines, sensors. From fixed seeds; weights are random, shapes are those of their kinds.

    for name, (model, axis) in networks().items(): ...      axis: "INPUT:AXIS", the one that is free
    step_networks.py FOLDER                                 writes them all; prints each name and axis
"""
import os
import sys

import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from builder import Net, quantised_conv, save  # noqa: E402,F401


class Kind(Net):
    """A network whose values are [1, channels, ...]."""

    def layer(self, x, c_in, c_out, k, groups=1, act=None, **attrs):
        """A convolution of any number of axes: k is the kernel, a number for 1-D."""
        k = [k] if isinstance(k, int) else list(k)
        fan = c_in // groups * int(np.prod(k))
        y = self.op('Conv', x, self.const(self.rng.normal(0, (1.5 / fan) ** .5, (c_out, c_in // groups, *k))),
                    self.const(self.rng.normal(0, .1, c_out)), kernel_shape=k, group=groups, **attrs)
        return self.op(act, y) if act else y

    def up(self, x, c_in, c_out, k, s, axes=1, **attrs):
        """A transposed convolution along the last `axes` axes."""
        w = self.const(self.rng.normal(0, (1.5 * s / (k * c_in)) ** .5, (c_in, c_out, *[k] * axes)))
        return self.op('ConvTranspose', x, w, kernel_shape=[k] * axes, strides=[s] * axes, **attrs)

    def causal(self, x, c_in, c_out, k, d=1, groups=1, act=None):
        """As exporters write it: padding of its own on the left."""
        x = self.op('Pad', x, self.const([0, 0, (k - 1) * d, 0, 0, 0], 'i8'))
        return self.layer(x, c_in, c_out, k, groups, act, dilations=[d])

    def cells(self, x, c, hidden, kind='GRU', **attrs):
        """[1, c, t] -> [1, hidden, t] by a recurrent layer."""
        gates = {'LSTM': 4, 'GRU': 3, 'RNN': 1}[kind] * hidden
        y = self.op(kind, self.op('Transpose', x, perm=[2, 0, 1]), self.const(self.rng.normal(0, .3, (1, gates, c))),
                    self.const(self.rng.normal(0, .3, (1, gates, hidden))), self.const(self.rng.normal(0, .1, (1, 2 * gates))),
                    hidden_size=hidden, **attrs)
        return self.op('Transpose', self.op('Squeeze', y, self.const([1], 'i8')), perm=[1, 2, 0])

    def so_far(self, x, c):
        """Cumulative layer normalisation: over channels and all rows up to each."""
        def total(v):
            return self.op('CumSum', self.reduce('ReduceSum', v, [1], since=13, keepdims=1), self.const(2, 'i8'))
        s = total(x)
        ones = self.op('ConstantOfShape', self.op('Shape', s), value=helper.make_tensor('v', TensorProto.FLOAT, [1], [float(c)]))
        n = self.op('CumSum', ones, self.const(2, 'i8'))
        mean = self.op('Div', s, n)
        var = self.op('Sub', self.op('Div', total(self.op('Mul', x, x)), n), self.op('Mul', mean, mean))
        x = self.op('Div', self.op('Sub', x, mean), self.op('Sqrt', self.op('Add', var, self.const(1e-5))))
        return self.op('Add', self.op('Mul', x, self.uniform((1, c, 1))), self.uniform((1, c, 1), -1, 1))

    def done(self, v, extents=None):
        self.op('Identity', v, out='y')
        self.output('y', extents or [None] * 3)
        return self.model()


def tcn(kind):
    """Dilated residual blocks: 'causal' by Pad, 'chomp' by cutting off the end, 'centred'."""
    net = Kind(11)
    v = net.layer(net.input('x', [1, 8, 't']), 8, 16, 1)
    for d in (1, 2, 4, 8):
        if kind == 'causal':
            h = net.causal(v, 16, 16, 3, d, act='Relu')
        elif kind == 'chomp':
            h = net.layer(v, 16, 16, 3, act='Relu', dilations=[d], pads=[2 * d] * 2)
            h = net.op('Slice', h, net.const([0], 'i8'), net.const([-2 * d], 'i8'), net.const([2], 'i8'))
        else:
            h = net.layer(v, 16, 16, 3, act='Relu', dilations=[d], pads=[d] * 2)
        v = net.op('Add', v, net.layer(h, 16, 16, 1))
    return net.done(net.layer(v, 16, 4, 1), [1, 4, 't'])


def wavenet():
    """Gated dilated convolutions, whose skips are summed."""
    net = Kind(12)
    v, skips = net.causal(net.input('x', [1, 1, 't']), 1, 16, 2), None
    for d in (1, 2, 4, 8, 16, 32):
        gate = net.op('Mul', net.op('Tanh', net.causal(v, 16, 16, 2, d)), net.op('Sigmoid', net.causal(v, 16, 16, 2, d)))
        s = net.layer(gate, 16, 16, 1)
        skips = net.op('Add', skips, s) if skips else s
        v = net.op('Add', v, net.layer(gate, 16, 16, 1))
    return net.done(net.layer(net.op('Relu', skips), 16, 8, 1), [1, 8, 't'])


def speech_denoiser():
    """An encoder of strided convolutions, an LSTM, and a decoder of transposed ones, with skips between."""
    net = Kind(13)
    v, c, skips = net.input('x', [1, 1, 't']), 1, []
    for width in (8, 16, 32):
        v = net.layer(v, c, width, 4, act='Relu', strides=[2], pads=[1, 1])
        skips.append((v, width))
        c = width
    v = net.cells(v, c, 32, 'LSTM')
    for j, (skip, width) in enumerate(reversed(skips)):
        to = [16, 8, 1][j]
        v = net.up(net.op('Add', v, skip), width, to, 4, 2, pads=[1, 1])
        v = net.op('Relu', v) if j < 2 else v
    return net.done(v, [1, 1, None])


def separator():
    """Learned frames, depthwise blocks with cumulative normalisation, a mask, and back to sound."""
    net = Kind(14)
    frames = net.layer(net.input('x', [1, 1, 't']), 1, 32, 16, act='Relu', strides=[8])
    v = net.layer(net.so_far(frames, 32), 32, 16, 1)
    for d in (1, 2, 4):
        h = net.so_far(net.op('PRelu', net.layer(v, 16, 32, 1), net.const(np.full((1, 1), .25))), 32)
        h = net.so_far(net.op('PRelu', net.causal(h, 32, 32, 3, d, 32), net.const(np.full((1, 1), .25))), 32)
        v = net.op('Add', v, net.layer(h, 32, 16, 1))
    mask = net.op('Sigmoid', net.layer(v, 16, 32, 1))
    return net.done(net.up(net.op('Mul', frames, mask), 32, 1, 16, 8), [1, 1, None])


def noise_gate():
    """GRU over the bands of frames, gains of bands."""
    net = Kind(15)
    x = net.input('x', [1, 22, 't'])
    v = net.op('Tanh', net.layer(x, 22, 24, 1))
    v = net.cells(v, 24, 24, linear_before_reset=1)
    v = net.cells(net.op('Concat', v, x, axis=1), 46, 48, linear_before_reset=1)
    return net.done(net.op('Mul', x, net.op('Sigmoid', net.layer(v, 48, 22, 1))), [1, 22, 't'])


def keyword_spotter():
    """Depthwise separable convolutions of frames, a GRU, probabilities for each frame."""
    net = Kind(16)
    v = net.layer(net.input('x', [1, 20, 't']), 20, 32, 5, act='Relu', pads=[4, 0])
    for d in (1, 2, 4):
        v = net.layer(v, 32, 32, 3, 32, dilations=[d], pads=[2 * d, 0])
        v = net.op('Relu', net.op('BatchNormalization', net.layer(v, 32, 32, 1), *[net.uniform(32) for _ in range(4)]))
    v = net.cells(v, 32, 24)
    return net.done(net.op('Softmax', net.layer(v, 24, 12, 1), axis=1), [1, 12, 't'])


def keyword_images():
    """Frames as rows of a picture: two-dimensional convolutions, mean over the bands, every fourth frame a verdict."""
    net = Kind(17)
    v = net.layer(net.input('x', [1, 1, 't', 40]), 1, 8, (9, 7), act='Relu', pads=[4, 3, 4, 3], strides=[2, 2])
    v = net.layer(v, 8, 8, (3, 3), 8, act='Relu', pads=[1] * 4)
    v = net.op('MaxPool', net.layer(v, 8, 16, (1, 1), act='Relu'), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    return net.done(net.layer(net.reduce('ReduceMean', v, [3], keepdims=1), 16, 6, (1, 1)), [1, 6, None, 1])


def vocoder(mirrored):
    """Transposed convolutions up to the rate of sound, with dilated blocks between; mirrored: reflection as padding."""
    net = Kind(18 + mirrored)

    def same(x, c, to, k, d=1):
        p = (k - 1) * d // 2
        if not mirrored:
            return net.layer(x, c, to, k, dilations=[d], pads=[p, p])
        return net.layer(net.op('Pad', x, net.const([0, 0, p, 0, 0, p], 'i8'), mode='reflect'), c, to, k, dilations=[d])
    v, c = same(net.input('x', [1, 20, 't']), 20, 32, 7), 32
    for s in (4, 4, 2):
        v = net.up(net.op('LeakyRelu', v, alpha=.1), c, c // 2, 2 * s, s, pads=[s // 2] * 2)
        c //= 2
        for d in (1, 3):
            h = same(net.op('LeakyRelu', v, alpha=.1), c, c, 3, d)
            v = net.op('Add', v, same(net.op('LeakyRelu', h, alpha=.1), c, c, 3))
    return net.done(net.op('Tanh', same(net.op('LeakyRelu', v, alpha=.1), c, 1, 7)), [1, 1, None])


def speech_encoder():
    """Two convolutions of stride 2 over frames and bands, then LSTMs."""
    net = Kind(20)
    v = net.layer(net.input('x', [1, 1, 't', 24]), 1, 8, (3, 3), act='Relu', strides=[2, 2], pads=[1] * 4)
    v = net.layer(v, 8, 8, (3, 3), act='Relu', strides=[2, 2], pads=[1] * 4)
    v = net.op('Reshape', net.op('Transpose', v, perm=[0, 2, 1, 3]), net.const([1, -1, 48], 'i8'))
    v = net.op('Transpose', v, perm=[0, 2, 1])
    v = net.cells(net.cells(v, 48, 32, 'LSTM'), 32, 32, 'LSTM')
    return net.done(net.op('LogSoftmax', net.layer(v, 32, 29, 1), axis=1), [1, 29, None])


def line_reader():
    """Writing, column by column: convolutions and pools of a strip of 32 rows, a GRU along it."""
    net = Kind(21)
    v = net.layer(net.input('x', [1, 1, 32, 't']), 1, 8, (3, 3), act='Relu', pads=[1] * 4)
    v = net.op('MaxPool', v, kernel_shape=[2, 2], strides=[2, 2])
    v = net.op('MaxPool', net.layer(v, 8, 16, (3, 3), act='Relu', pads=[1] * 4), kernel_shape=[4, 1], strides=[4, 1])
    v = net.layer(v, 16, 24, (4, 1), act='Relu')
    v = net.cells(net.op('Squeeze', v, net.const([2], 'i8')), 24, 24)
    return net.done(net.layer(v, 24, 30, 1), [1, 30, None])


def unet_rows(up):
    """A U-Net over lines of a scanner of 48 columns; up: 'nearest' or 'linear' Resize, or 'transposed'."""
    net = Kind(22)

    def both(x, c, to):
        return net.layer(net.layer(x, c, to, (3, 3), act='Relu', pads=[1] * 4), to, to, (3, 3), act='Relu', pads=[1] * 4)
    v, c, skips = net.input('x', [1, 3, 't', 48]), 3, []
    for width in (8, 16):
        v = both(v, c, width)
        skips.append(v)
        v, c = net.op('MaxPool', v, kernel_shape=[2, 2], strides=[2, 2]), width
    v = both(v, c, 32)
    for skip, width in ((skips[1], 16), (skips[0], 8)):
        if up == 'transposed':
            v = net.up(v, 2 * width, width, 2, 2, axes=2)
        else:
            v = net.op('Resize', v, '', net.const([1, 1, 2, 2], 'f4'), mode=up)
            v = net.layer(v, 2 * width, width, (1, 1))
        v = both(net.op('Concat', v, skip, axis=1), 2 * width, width)
    return net.done(net.layer(v, 8, 2, (1, 1)), [1, 2, 't', 48])


def enlarger_rows():
    """Residual blocks and a shuffle of channels to twice the lines and columns."""
    net = Kind(23)
    v = head = net.layer(net.input('x', [1, 3, 't', 32]), 3, 16, (3, 3), pads=[1] * 4)
    for _ in range(3):
        v = net.op('Add', v, net.layer(net.layer(v, 16, 16, (3, 3), act='Relu', pads=[1] * 4), 16, 16, (3, 3), pads=[1] * 4))
    v = net.layer(net.op('Add', v, head), 16, 12, (3, 3), pads=[1] * 4)
    return net.done(net.op('DepthToSpace', v, blocksize=2, mode='CRD'), [1, 3, None, 64])


def inspection_rows():
    """Dilated branches, joined: defects on a moving web, with averages around each pixel as a branch."""
    net = Kind(24)
    v = net.layer(net.input('x', [1, 1, 't', 64]), 1, 8, (3, 3), act='Relu', pads=[1] * 4)
    branches = [net.layer(v, 8, 8, (3, 3), act='Relu', dilations=[d, d], pads=[d] * 4) for d in (1, 3, 6)]
    branches.append(net.op('AveragePool', v, kernel_shape=[7, 7], pads=[3] * 4, count_include_pad=1))
    return net.done(net.op('Sigmoid', net.layer(net.op('Concat', *branches, axis=1), 32, 1, (1, 1))), [1, 1, 't', 64])


def video(kind):
    """Frames of 12 x 16: 'filter' by five of them, 'enlarger' by three and a shuffle, 'events' at half the rate."""
    net = Kind(25)
    v = net.layer(net.input('x', [1, 3, 't', 12, 16]), 3, 8, (3, 3, 3), act='Relu', pads=[1] * 6)
    v = net.layer(v, 8, 8, (3, 3, 3), act='Relu', pads=[1] * 6)
    if kind == 'filter':
        return net.done(net.op('Sub', 'x', net.layer(v, 8, 3, (1, 3, 3), pads=[0, 1, 1] * 2)), [1, 3, 't', 12, 16])
    if kind == 'enlarger':
        v = net.reshape(net.layer(v, 8, 12, (1, 3, 3), pads=[0, 1, 1] * 2), [1, 3, 2, 2, -1, 12, 16])
        v = net.op('Transpose', v, perm=[0, 1, 4, 5, 2, 6, 3])
        v = net.reshape(v, [1, 3, -1, 24, 32])
        up = net.op('Resize', 'x', '', net.const([1, 1, 1, 2, 2], 'f4'), mode='nearest')
        return net.done(net.op('Add', v, up), [1, 3, 't', 24, 32])
    v = net.op('MaxPool', v, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    v = net.reduce('ReduceMean', net.layer(v, 8, 16, (3, 3, 3), act='Relu', pads=[1] * 6), [3, 4], keepdims=0)
    return net.done(net.op('Softmax', net.layer(v, 16, 5, 1), axis=1), [1, 5, None])


def machine_watch():
    """A recording of a machine, down to an eighth and up again by repeating: what cannot be told again is odd."""
    net = Kind(26)
    v, c = net.input('x', [1, 4, 't']), 4
    for width in (8, 16, 8):
        v, c = net.layer(v, c, width, 5, act='Relu', strides=[2], pads=[2, 2]), width
    for width in (16, 8, 4):
        v = net.op('Resize', v, '', net.const([1, 1, 2], 'f4'), mode='nearest')
        v, c = net.layer(v, c, width, 5, pads=[2, 2]), width
    return net.done(v, [1, 4, None])


def heartbeat():
    """Averages that leave out what is not there, highest values, smaller and smaller rates."""
    net = Kind(27)
    x = net.input('x', [1, 2, 't'])
    v = net.op('Sub', x, net.op('AveragePool', x, kernel_shape=[9], pads=[4, 4]))
    for c, to in ((2, 8), (8, 16)):
        v = net.op('MaxPool', net.layer(v, c, to, 7, act='Relu', pads=[3, 3]), kernel_shape=[3], strides=[2], pads=[1, 1])
    return net.done(net.layer(v, 16, 4, 1), [1, 4, None])


def quantised_lines():
    """Bytes and back around a convolution, by lines."""
    return quantised_conv(extents=(1, 't', 32))


def networks():
    """name -> (model, axis)"""
    return {
        'tcn_causal': (tcn('causal'), 'x:2'), 'tcn_chomp': (tcn('chomp'), 'x:2'), 'tcn_centred': (tcn('centred'), 'x:2'),
        'wavenet': (wavenet(), 'x:2'), 'speech_denoiser': (speech_denoiser(), 'x:2'), 'separator': (separator(), 'x:2'),
        'noise_gate': (noise_gate(), 'x:2'), 'keyword_spotter': (keyword_spotter(), 'x:2'), 'keyword_images': (keyword_images(), 'x:2'),
        'vocoder': (vocoder(False), 'x:2'), 'vocoder_mirrored': (vocoder(True), 'x:2'), 'speech_encoder': (speech_encoder(), 'x:2'),
        'line_reader': (line_reader(), 'x:3'), 'unet_nearest': (unet_rows('nearest'), 'x:2'), 'unet_linear': (unet_rows('linear'), 'x:2'),
        'unet_transposed': (unet_rows('transposed'), 'x:2'), 'enlarger_rows': (enlarger_rows(), 'x:2'),
        'inspection_rows': (inspection_rows(), 'x:2'), 'video_filter': (video('filter'), 'x:2'), 'video_enlarger': (video('enlarger'), 'x:2'),
        'video_events': (video('events'), 'x:2'), 'machine_watch': (machine_watch(), 'x:2'), 'heartbeat': (heartbeat(), 'x:2'),
        'quantised_lines': (quantised_lines(), 'x:2')}


if __name__ == '__main__':
    for name, (model, axis) in networks().items():
        save(model, os.path.join(sys.argv[1], f'{name}.onnx'))
        print(name, axis)
