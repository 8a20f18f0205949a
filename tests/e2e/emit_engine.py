"""What emit_engine.sh has in Python."""
import json
import os
import sys

import onnx
from onnx import helper as H

from command_line import commands


def weights():
    """Weights of t.onnx are those of chain.onnx, byte for byte."""
    a, b = onnx.load('chain.onnx'), onnx.load('t.onnx')
    assert {t.name: t.raw_data for t in a.graph.initializer} == {t.name: t.raw_data for t in b.graph.initializer}
    assert {(o.domain, o.version) for o in b.opset_import} == {('', 17), ('onnx_tile', 1)}


def large():
    """A U-Net for pictures of any size."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'scripts'))
    import large_pictures
    onnx.save(large_pictures.unet(), 'large.onnx')


def peaks():
    """The plan for two threads holds about what that for one holds, and its tiles run one at a time."""
    one, two = (json.load(open(f'large{k}.json', encoding='utf-8'))['tiled']['peak_bytes'] for k in (1, 2))
    assert two <= 1.5 * one, (one, two)
    whiles = [n for n in onnx.load('in_order.onnx').graph.node if n.op_type == 'While']
    assert whiles and all(a.i == 1 for n in whiles for a in n.attribute if a.name == 'in_order')
    assert all(any(a.name == 'in_order' for a in n.attribute) for n in whiles)


def broken():
    """Files that each break one rule of the engine's form: broken_RULE.onnx."""
    m = onnx.load('t.onnx')
    def attr(n, name): return next(a for a in n.attribute if a.name == name)
    def loop(m): return [n for n in m.graph.node if n.op_type == 'While'][1]
    def node(m, op): return next(n for n in attr(loop(m), 'body').g.node if n.op_type == op and n.domain == 'onnx_tile')
    def drop(n, name): n.attribute.remove(attr(n, name))
    def count(m): attr(loop(m), 'count').i += 1
    def far(m): attr(node(m, 'Slice'), 'starts').ints[0] = 1 << 40
    def negative(m): attr(node(m, 'Deslice'), 'starts').ints[0] = -1
    def short(m): attr(node(m, 'Deslice'), 'starts').ints.pop()
    def size(m): attr(node(m, 'Slice'), 'sizes').ints[0] = 0
    def axis(m): attr(node(m, 'Slice'), 'axes').ints[0] = 9
    def body(m): drop(loop(m), 'body')
    def shape(m): drop(next(n for n in m.graph.node if n.op_type == 'Alloc'), 'shape')
    def huge(m): attr(next(n for n in m.graph.node if n.op_type == 'Alloc'), 'shape').ints[:] = [1 << 40, 1 << 40]
    def buffers(m): attr(loop(m), 'body').g.output.pop()
    def outside(m): m.graph.node.append(H.make_node('Slice', ['x', 'x'], ['stray'], 'stray', domain='onnx_tile', axes=[0], sizes=[1], starts=[0]))
    def unknown(m): next(n for n in m.graph.node if n.op_type == 'Alloc').op_type = 'Free'
    for f in (count, far, negative, short, size, axis, body, shape, huge, buffers, outside, unknown):
        x = onnx.ModelProto()
        x.CopyFrom(m)
        f(x)
        onnx.save(x, 'broken_' + f.__name__ + '.onnx')


if __name__ == '__main__':
    commands(weights, large, peaks, broken)
