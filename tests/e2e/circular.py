"""Circular padding: kinds of networks that wrap around again and again, in each way that files write it. circular.py TOOL FOLDER

With --goal memory they are tiled along the axis that they wrap around, with the results that they have in ONNX Runtime.
"""
import json
import subprocess
import sys

import numpy as np
import onnx

import builder
from checks import nodes, outputs

tool, d = sys.argv[1], sys.argv[2]
LAST = 2**63 - 1


def pad(net, x, by, axes=None):
    """by: rows before and behind, of each spatial axis; axes: those that are listed."""
    pads = [0, 0] + [b for b, _ in by] + [0, 0] + [e for _, e in by]
    if axes is None:
        return net.op('Pad', x, net.const(pads, 'i8'), mode='wrap')
    listed = [b for b, _ in by] + [e for _, e in by]
    return net.op('Pad', x, net.const(listed, 'i8'), '', net.const(axes, 'i8'), mode='wrap')


def concat(net, x, by):
    """As exporters write it where there is no wrap: Slices and a Concat of each axis."""
    for axis, (before, behind) in enumerate(by, 2):
        def part(lo, hi): return net.op('Slice', x, *(net.const([v], 'i8') for v in (lo, hi, axis, 1)))
        parts = ([part(-before, LAST)] if before else []) + [x] + ([part(0, behind)] if behind else [])
        x = net.op('Concat', *parts, axis=axis) if len(parts) > 1 else x
    return x


def chain(wrap, by=((1, 1), (1, 1)), depth=4, opset=19, **more):
    net = builder.Net(depth, opset)
    x, c = net.input('x', [1, 3, 320, 200]), 3
    for _ in range(depth):
        x, c = net.op('Relu', net.conv(wrap(net, x, by, **more), c, 16, bias=.1)), 16
    net.op('Conv', x, net.const(net.rng.normal(0, .1, (2, 16, 1, 1))), out='y')
    net.output('y', [1, 2, 320, 200])
    return net


def residual(wrap, inner=False):
    """Skips, a gate of all rows, a value that is read under its name."""
    net = builder.Net(7, 19)
    x = net.op('Relu', net.conv(wrap(net, net.input('x', [1, 3, 320, 200]), ((1, 1), (1, 1))), 3, 16))
    for k in range(3):
        a = net.op('Relu', net.conv(wrap(net, x, ((2, 2), (0, 0))), 16, 16, dilations=[2, 1], pads=[0, 1, 0, 1]))
        a = net.op('BatchNormalization', net.conv(wrap(net, a, ((1, 1), (1, 1))), 16, 16), *builder.norm_constants(net, 'BatchNormalization', 16))
        x = net.op('Add', x, a, out='kept' if inner and k == 1 else None)
    y = net.op('Mul', x, net.op('Sigmoid', net.op('GlobalAveragePool', x)))
    net.op('Conv', y, net.const(net.rng.normal(0, .1, (2, 16, 1, 1))), out='y')
    net.output('y', [1, 2, 320, 200])
    if inner: net.output('kept', [1, 16, 320, 200])
    return net


def strides(wrap):
    """An encoder: strides and a pool halve the period."""
    net = builder.Net(9, 19)
    x = net.op('Relu', net.conv(wrap(net, net.input('x', [1, 3, 384, 256]), ((1, 1), (1, 1))), 3, 16))
    x = net.op('Relu', net.conv(wrap(net, x, ((1, 0), (1, 0))), 16, 16, strides=[2, 2], k=2, pads=[0] * 4)) if wrap is pad else x
    x = net.op('MaxPool', net.op('Relu', net.conv(wrap(net, x, ((1, 1), (1, 1))), 16, 24)), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op('Relu', net.conv(wrap(net, x, ((1, 1), (1, 1))), 24, 24))
    net.op('Conv', x, net.const(net.rng.normal(0, .1, (2, 24, 1, 1))), out='y')
    net.output('y', None)
    return net


# name, network, the most that the process grows by, of the untiled model's
CASES = [('pad', chain(pad), .25), ('pad_listed', chain(pad, axes=[2, 3]), .25), ('pad_rows', chain(pad, ((1, 1), (1, 1)), 6), .25),
         ('concat', chain(concat), .25), ('concat_13', chain(concat, opset=13), .25), ('one_sided', chain(concat, ((2, 0), (0, 2))), .25),
         ('once', chain(pad, depth=1), 1), ('residual', residual(pad), .7), ('residual_concat', residual(concat), .7),
         ('kept', residual(pad, True), 1), ('strides', strides(pad), .8), ('strides_concat', strides(concat), .8)]

for name, net, most in CASES:
    path, out = f'{d}/{name}.onnx', f'{d}/{name}_out.onnx'
    builder.save(net.model(), path)
    x = {'x': np.random.default_rng(0).standard_normal([e.dim_value for e in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]).astype('f4')}
    want, seen = outputs(path, x), False
    for options in ['--goal', 'memory'], ['--force', '--l2', '128K']:
        p = subprocess.run([tool, path, '-o', out, *options, '--threads', '1', '--target', 'cpu-generic', '--json'], capture_output=True, text=True)
        if p.returncode: sys.exit(f'{name} {options}: exit {p.returncode}: {p.stderr}')
        facts = json.loads(p.stdout)
        seen |= any('tile/wrap/' in o for n in nodes(onnx.load(out).graph) for o in n.output)
        left = facts['tiled']['growth_bytes'] / facts['untiled']['growth_bytes']
        if '--force' not in options and not left <= most: sys.exit(f'{name} {options}: x{left:.2f} of the growth is left')
        for a, b in zip(want, outputs(out, x), strict=True):
            if a.shape != b.shape or not np.abs(a - b).max() <= 1e-5 * np.abs(a).max(): sys.exit(f'{name} {options}: differs')
        print(f'{name} {options}: x{left:.2f} {seen}')
    if (name == 'once') == seen: sys.exit(f'{name}: wraps {"were" if seen else "were not"} moved')
