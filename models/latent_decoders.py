#!/usr/bin/env python3
"""Decoders of video and image autoencoders at small widths, seeded; scripts/latent_decoders.py measures them.

  latent_decoders.py OUT NAME [NAME...]      OUT/NAME.onnx; --list names them
    --width, --frames, --height, --wide       of the first level's channels; of the latent

The shapes are those of the published networks, written as exporters write them; weights are random: memory depends on neither training nor
data.

  network     time                                   normalisation                       growth                             middle
  wan         zeros in front (Pad)                   L2 over channels                    Resize per frame, time by channels attention per frame
  qwen        the same, of one frame                 L2 over channels                    Resize per frame                   attention per frame
  hunyuan     first frame repeated (Pad edge)        groups of channels, all frames      Resize of all axes                 attention of all frames
  cogvideox   first frame repeated (Slice, Concat)   groups, then scaled by the latent   Resize per frame                   none
  ltx         both ends repeated (Slice, Tile)       mean square over channels           channels to time and space         none
  image       none: pictures                         groups of channels                  Resize                             attention
"""
import sys

import numpy as np

from make_models import Net, write_named

EPS = np.float32(1e-6)
LAST = 2 ** 63 - 1


class Decoder(Net):
    """What the networks are made of. Values have five axes: batch, channels, frames, rows, columns (pictures: four)."""

    def __init__(self, name, seed, extents):
        super().__init__(name, seed)
        self.latent = self.input(extents, 'z')
        self.at = {self.latent: list(extents)}   # value -> extents

    def made(self, value, extents):
        self.at[value] = list(extents)
        return value

    def op(self, op, inputs, extents=None, **attrs):
        """A node whose result has the extents of its first input, or others."""
        return self.made(self.node(op, inputs, **attrs), extents or self.at[inputs[0]])

    def ints(self, *values):
        return self.const(np.array(values, np.int64), 'i')

    def reshape(self, x, extents):
        return self.op('Reshape', [x, self.ints(*extents)], extents)

    def transpose(self, x, perm):
        return self.op('Transpose', [x], [self.at[x][k] for k in perm], perm=perm)

    def silu(self, x):
        return self.op('Mul', [x, self.op('Sigmoid', [x])])

    def slice(self, x, axis, lo, hi, length):
        extents = self.at[x][:axis] + [length] + self.at[x][axis + 1:]
        return self.op('Slice', [x, self.ints(lo), self.ints(hi), self.ints(axis), self.ints(1)], extents)

    def concat(self, values, axis):
        extents = list(self.at[values[0]])
        extents[axis] = sum(self.at[v][axis] for v in values)
        return self.op('Concat', values, extents, axis=axis)

    def convolve(self, x, out, kernel, pads):
        """pads: of each axis, before and behind alike."""
        c = self.at[x][1]
        inside = [e + 2 * p - k + 1 for e, p, k in zip(self.at[x][2:], pads, kernel)]
        ins = [x, self.const(self.normal([out, c, *kernel], c * int(np.prod(kernel)))), self.const(self.rng.uniform(-.05, .05, out).astype('f4'), 'b')]
        return self.op('Conv', ins, [self.at[x][0], out, *inside], kernel_shape=list(kernel), pads=[*pads, *pads])

    def pad(self, x, before, mode):
        """Of the last axes, before them alone in time and on both sides in space: (frames, rows, columns)."""
        t, h, w = before
        n, c, frames, rows, columns = self.at[x]
        ins = [x, self.ints(0, 0, t, h, w, 0, 0, 0, h, w)] + ([self.const(np.float32(0), 'zero')] if mode == 'constant' else [])
        return self.op('Pad', ins, [n, c, frames + t, rows + 2 * h, columns + 2 * w], mode=mode)

    def frames_apart(self, x):
        """Frames as batch: n * t pictures."""
        n, c, t, h, w = self.at[x]
        return self.reshape(self.transpose(x, [0, 2, 1, 3, 4]), [n * t, c, h, w])

    def frames_together(self, x, n, t):
        _, c, h, w = self.at[x]
        return self.transpose(self.reshape(x, [n, t, c, h, w]), [0, 2, 1, 3, 4])

    def enlarge(self, x, factors):
        """Nearest up-sampling."""
        extents = [int(e * f) for e, f in zip(self.at[x], factors)]
        return self.op('Resize', [x, '', self.const(np.array(factors, 'f4'), 'scales')], extents, mode='nearest',
                       coordinate_transformation_mode='asymmetric', nearest_mode='floor')

    def scaled(self, x, rank):
        """By a factor of each channel."""
        c = self.at[x][1]
        return self.op('Mul', [x, self.const(self.rng.uniform(.8, 1.2, (c,) + (1,) * (rank - 2)).astype('f4'), 'g')])

    def groups(self, x, count=8):
        """GroupNorm as it is exported: an InstanceNormalization of groups."""
        extents = self.at[x]
        n, c = extents[:2]
        flat = self.reshape(x, [n, count, int(np.prod(extents[1:])) // count])
        y = self.op('InstanceNormalization', [flat, self.const(np.ones(count, 'f4'), 'one'), self.const(np.zeros(count, 'f4'), 'zero')], epsilon=1e-6)
        y = self.scaled(self.reshape(y, extents), len(extents))
        return self.op('Add', [y, self.const(self.rng.uniform(-.1, .1, (c,) + (1,) * (len(extents) - 2)).astype('f4'), 's')])

    def length_norm(self, x):
        """By the length over channels."""
        extents = self.at[x]
        length = self.op('ReduceL2', [x], [extents[0], 1, *extents[2:]], axes=[1], keepdims=1)
        length = self.op('Clip', [length, self.const(np.float32(1e-12), 'low')])
        y = self.op('Div', [x, self.op('Expand', [length, self.ints(*extents)], extents)])
        y = self.op('Mul', [y, self.const(np.float32(extents[1] ** .5), 'root')])
        return self.scaled(y, len(extents))

    def mean_square_norm(self, x):
        """By the root of the mean square over channels, which come last for it."""
        y = self.transpose(x, [0, 2, 3, 4, 1])
        mean = self.op('ReduceMean', [self.op('Pow', [y, self.const(np.float32(2), 'two')])], self.at[y][:4] + [1], axes=[-1], keepdims=1)
        y = self.op('Mul', [y, self.op('Reciprocal', [self.op('Sqrt', [self.op('Add', [mean, self.const(EPS, 'eps')])])])])
        return self.transpose(y, [0, 4, 1, 2, 3])

    def attend(self, x, pictures=False):
        """x and attention over all positions of each batch entry, of one head."""
        n, c, h, w = self.at[x]
        def project(v, out):
            flat = self.transpose(self.reshape(v, [n, c, h * w]), [0, 2, 1])
            return self.op('MatMul', [flat, self.const(self.normal((c, out), 2 * c))], [n, h * w, out])
        q, k, v = (project(x, c) for _ in range(3))
        scores = self.op('MatMul', [q, self.transpose(k, [0, 2, 1])], [n, h * w, h * w])
        scores = self.op('Softmax', [self.op('Mul', [scores, self.const(np.float32(c ** -.5), 'scale')])], axis=-1)
        y = self.op('MatMul', [scores, v], [n, h * w, c])
        return self.op('Add', [x, self.reshape(self.transpose(y, [0, 2, 1]), [n, c, h, w])])

    def result(self, x):
        self.output(x, self.at[x])
        return self.model()


def residual(net, x, out, norm, conv):
    """Two convolutions behind normalisations, and the input or a convolution of it."""
    y = conv(net.silu(norm(x)), out)
    y = conv(net.silu(norm(y)), out)
    if net.at[x][1] != out:
        x = net.convolve(x, out, [1] * (len(net.at[x]) - 2), [0] * (len(net.at[x]) - 2))
    return net.op('Add', [y, x])


def per_frame(net, x, f):
    """f of all frames as pictures."""
    n, _, t, _, _ = net.at[x]
    return net.frames_together(f(net.frames_apart(x)), n, t)


def wan(width=16, frames=3, height=20, wide=32, name='wan', seed=41):
    net = Decoder(name, seed, [1, 16, frames, height, wide])

    def conv(x, out):
        return net.convolve(net.pad(x, (2, 1, 1), 'constant'), out, [3, 3, 3], [0, 0, 0])

    def grow(x, out, time):
        if time and net.at[x][2] > 1:  # the first frame stays one, each other becomes two
            n, c, t, h, w = net.at[x]
            rest = net.slice(x, 2, 1, LAST, t - 1)
            rest = net.convolve(net.pad(rest, (2, 0, 0), 'constant'), 2 * c, [3, 1, 1], [0, 0, 0])
            rest = net.reshape(rest, [n, 2, c, t - 1, h, w])
            rest = net.reshape(net.transpose(rest, [0, 2, 3, 1, 4, 5]), [n, c, 2 * (t - 1), h, w])
            x = net.concat([net.slice(x, 2, 0, 1, 1), rest], 2)
        return per_frame(net, x, lambda p: net.convolve(net.enlarge(p, [1, 1, 2, 2]), out, [3, 3], [1, 1]))
    x = conv(net.latent, 4 * width)
    x = residual(net, x, 4 * width, net.length_norm, conv)
    x = per_frame(net, x, lambda p: net.attend(net.length_norm(p)))
    x = residual(net, x, 4 * width, net.length_norm, conv)
    for level, out in enumerate((4 * width, 2 * width, width)):
        x = residual(net, x, out, net.length_norm, conv)
        x = residual(net, x, out, net.length_norm, conv)
        x = grow(x, out, level < 2)
    x = residual(net, x, width, net.length_norm, conv)
    return net.result(net.op('Clip', [conv(net.silu(net.length_norm(x)), 3), net.const(np.float32(-1), 'low'), net.const(np.float32(1), 'high')]))


def hunyuan(width=16, frames=3, height=20, wide=32):
    net = Decoder('hunyuan', 42, [1, 16, frames, height, wide])

    def conv(x, out):
        return net.convolve(net.pad(x, (2, 1, 1), 'edge'), out, [3, 3, 3], [0, 0, 0])

    def grow(x, time):
        """The first frame by itself."""
        t = net.at[x][2]
        first, rest = net.slice(x, 2, 0, 1, 1), net.slice(x, 2, 1, LAST, t - 1)
        x = net.concat([net.enlarge(first, [1, 1, 1, 2, 2]), net.enlarge(rest, [1, 1, 2 if time else 1, 2, 2])], 2)
        return conv(x, net.at[x][1])

    def all_frames(x):
        n, c, t, h, w = net.at[x]
        return net.reshape(net.attend(net.reshape(net.groups(x), [n, c, t * h, w])), [n, c, t, h, w])
    x = conv(net.latent, 4 * width)
    x = residual(net, x, 4 * width, net.groups, conv)
    x = residual(net, all_frames(x), 4 * width, net.groups, conv)
    for level, out in enumerate((4 * width, 2 * width, width)):
        x = grow(residual(net, x, out, net.groups, conv), level > 0)
    x = residual(net, x, width, net.groups, conv)
    return net.result(conv(net.silu(net.groups(x)), 3))


def cogvideox(width=16, frames=3, height=20, wide=32):
    net = Decoder('cogvideox', 43, [1, 16, frames, height, wide])

    def conv(x, out):
        first = net.slice(x, 2, 0, 1, 1)
        return net.convolve(net.concat([first, first, x], 2), out, [3, 3, 3], [0, 1, 1])

    def norm(x):
        """The latent at the size of x scales and shifts it."""
        t, h, w = net.at[x][2:]
        zt, zh, zw = net.at[net.latent][2:]
        z = net.enlarge(net.slice(net.latent, 2, 0, 1, 1), [1, 1, 1, h // zh, w // zw])
        rest = net.slice(net.latent, 2, 1, LAST, zt - 1)
        if t > 1:
            z = net.concat([z, net.enlarge(rest, [1, 1, (t - 1) // (zt - 1), h // zh, w // zw])], 2)
        factor, shift = (net.convolve(z, net.at[x][1], [1, 1, 1], [0, 0, 0]) for _ in range(2))
        return net.op('Add', [net.op('Mul', [net.groups(x), factor]), shift])

    def grow(x, time):
        n, c, t, h, w = net.at[x]
        if time:
            x = net.concat([net.slice(x, 2, 0, 1, 1), net.enlarge(net.slice(x, 2, 1, LAST, t - 1), [1, 1, 2, 1, 1])], 2)
        return per_frame(net, x, lambda p: net.convolve(net.enlarge(p, [1, 1, 2, 2]), c, [3, 3], [1, 1]))
    x = conv(net.latent, 4 * width)
    x = residual(net, x, 4 * width, norm, conv)
    for level, out in enumerate((4 * width, 2 * width, width)):
        x = grow(residual(net, x, out, norm, conv), level < 2)
    x = residual(net, x, width, norm, conv)
    return net.result(conv(net.silu(norm(x)), 3))


def ltx(width=16, frames=3, height=16, wide=24, causal=False):
    net = Decoder('ltx', 44, [1, 32, frames, height, wide])

    def repeated(x, lo, hi, times):
        extents = list(net.at[x])
        extents[2] = times
        return net.op('Tile', [net.slice(x, 2, lo, hi, 1), net.ints(1, 1, times, 1, 1)], extents)

    def conv(x, out):
        ends = [repeated(x, 0, 1, 2), x] if causal else [repeated(x, 0, 1, 1), x, repeated(x, -1, LAST, 1)]
        return net.convolve(net.concat(ends, 2), out, [3, 3, 3], [0, 1, 1])

    def shuffle(x, out, time, space):
        """Channels to time and space; of time, all but the first frames."""
        n, _, t, h, w = net.at[x]
        y = net.reshape(x, [n, out, time, space, space, t, h, w])
        y = net.reshape(net.transpose(y, [0, 1, 5, 2, 6, 3, 7, 4]), [n, out, t * time, h * space, w * space])
        return net.slice(y, 2, time - 1, LAST, t * time - time + 1) if time > 1 else y
    x = conv(net.latent, 4 * width)
    x = residual(net, x, 4 * width, net.mean_square_norm, conv)
    for out in (4 * width, 2 * width, width):
        x = shuffle(conv(x, 8 * out), out, 2, 2)
        x = residual(net, x, out, net.mean_square_norm, conv)
    x = residual(net, x, width, net.mean_square_norm, conv)
    return net.result(shuffle(conv(net.silu(net.mean_square_norm(x)), 48), 3, 1, 4))


def image(width=16, height=32, wide=32):
    net = Decoder('image', 45, [1, 16, height, wide])

    def conv(x, out):
        return net.convolve(x, out, [3, 3], [1, 1])
    x = conv(net.latent, 4 * width)
    x = residual(net, x, 4 * width, net.groups, conv)
    x = residual(net, net.attend(net.groups(x)), 4 * width, net.groups, conv)
    for out in (4 * width, 2 * width, width):
        x = residual(net, residual(net, x, out, net.groups, conv), out, net.groups, conv)
        x = conv(net.enlarge(x, [1, 1, 2, 2]), out)
    x = residual(net, x, width, net.groups, conv)
    return net.result(conv(net.silu(net.groups(x)), 3))


MODELS = {
    'wan': wan,
    'qwen': lambda frames=1, **k: wan(frames=frames, name='qwen', seed=46, **k),
    'hunyuan': hunyuan,
    'cogvideox': cogvideox,
    'ltx': ltx,
    'ltx_causal': lambda **k: ltx(causal=True, **k),
    'image': image,
}


if __name__ == '__main__':
    sys.exit(write_named(__doc__, MODELS, ('width', 'frames', 'height', 'wide')))
