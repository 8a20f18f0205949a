#!/usr/bin/env python3
"""Networks of microcontrollers as chains of 8-bit convolutions, as papers on fusion count them: no skips, no pooling at the end.

  chain_models.py OUT NAME [NAME...]      OUT/NAME.onnx; --list names them

The blocks are those of msf-CNN (Huang and Baccelli, NeurIPS 2025), weights random. A block is a convolution 1 x 1 to `expansion` times the
channels, one of each channel, and one 1 x 1; published widths that are no whole numbers are rounded down, as there.
"""
import sys

from onnx import TensorProto

from make_models import Quantised, write_named

# (channels, expansion, stride, kernel) of each block; behind a first convolution 3 x 3 of stride 2.
W = .35
MOBILENET = [(16 * W, 1, 1, 3), (24 * W, 6, 2, 3), (24 * W, 6, 1, 3), (32 * W, 6, 2, 3), (32 * W, 6, 1, 3), (32 * W, 6, 1, 3), (64 * W, 6, 2, 3)] + [
    (64 * W, 6, 1, 3)] * 3 + [(96 * W, 6, 1, 3)] * 3 + [(160 * W, 6, 2, 3)] + [(160 * W, 6, 1, 3)] * 2 + [(320 * W, 6, 1, 3)]
MCUNET_VWW = [(16, 6, 2, 3), (16, 3, 1, 3), (16, 3, 1, 3), (24, 3, 2, 7), (24, 6, 1, 3), (24, 5, 1, 5), (40, 6, 2, 7), (40, 6, 1, 7), (48, 6, 1, 3),
              (48, 4, 1, 3), (96, 5, 2, 5), (96, 5, 1, 3), (96, 4, 1, 3), (160, 3, 1, 7)]
MCUNET_320K = [(16, 3, 2, 7), (16, 5, 1, 3), (16, 5, 1, 7), (16, 4, 1, 5), (24, 5, 2, 5), (24, 5, 1, 5), (24, 5, 1, 5), (40, 5, 2, 3), (40, 6, 1, 7),
               (40, 4, 1, 5), (48, 5, 1, 5), (48, 5, 1, 7), (48, 5, 1, 3), (96, 6, 2, 3), (96, 5, 1, 7), (96, 4, 1, 3), (160, 5, 1, 7)]


def chain(name, size, first, blocks, last=0, separable=0):
    """first: channels of the first convolution; separable: behind it a convolution of each channel and one 1 x 1 to so many;
    last: channels of a 1 x 1 at the end."""
    n = Quantised(name, 41)
    x = n.conv8(n.input([1, 3, size, size], dtype=TensorProto.UINT8), first, 3, 2)
    if separable:
        x = n.conv8(n.conv8(x, first, 3, 1, first), separable)
    rows = size // 2
    for out, expansion, stride, kernel in blocks:
        inner = n.channels[x] * expansion
        x = n.conv8(n.conv8(n.conv8(x, inner), inner, kernel, stride, inner), int(out))
        rows = -(-rows // stride)
    if last:
        x = n.conv8(x, last)
    n.output(x, [1, n.channels[x], rows, rows], TensorProto.UINT8)
    return n.model()


MODELS = {
    'mobilenet_chain_144': lambda: chain('mobilenet_chain', 144, int(32 * W), MOBILENET),
    'mcunet_chain_176': lambda: chain('mcunet_chain', 176, 16, MCUNET_320K, separable=8),
    'mcunet_vww_chain_80': lambda: chain('mcunet_vww_chain', 80, 16, MCUNET_VWW, separable=8),
}


if __name__ == '__main__':
    sys.exit(write_named(__doc__, MODELS))
