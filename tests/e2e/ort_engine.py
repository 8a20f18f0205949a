"""What ort_engine.sh has in Python: models, and what the operator of the engine holds. Files are of the current folder."""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from builder import Net, model, save, value
from command_line import commands


def one():
    """one.onnx: the form of the engine in one operator."""
    one, whole = onnx.load('one.onnx'), onnx.load('residual.onnx')
    onnx.checker.check_model(one)
    n, = one.graph.node
    assert (n.domain, n.op_type) == ('onnx_tile', 'Engine')
    assert n.attribute[0].s == open('engine.onnx', 'rb').read()
    assert list(n.input) == [v.name for v in whole.graph.input] and list(n.output) == [v.name for v in whole.graph.output]
    assert not one.graph.initializer


def strange():
    """outside.onnx: weights in a file of their own; text.onnx: a tensor of strings."""
    save(onnx.load('residual.onnx'), 'outside.onnx', outside='outside.bin')
    x, y = (value(name, [2], TensorProto.STRING) for name in 'xy')
    save(model([helper.make_node('Identity', ['x'], ['y'])], [x], [y]), 'text.onnx')


def unknown():
    """bar.onnx: an operator that nobody has."""
    node = helper.make_node('Bar', ['x'], ['y'], 'the_bar', domain='foo')
    save(model([node], [value('x', [2])], [value('y', [2])], domains=[('foo', 1)]), 'bar.onnx')


def barred():
    """barred.onnx: residual.onnx with operators behind it that nobody has."""
    m = onnx.load('residual.onnx')
    for k, old in enumerate(list(m.graph.output)):
        m.graph.value_info.append(old)
        m.graph.node.append(helper.make_node('Bar', [old.name], [f'bar{k}'], f'the_bar{k}', domain='foo'))
        new = onnx.ValueInfoProto()
        new.CopyFrom(old)
        new.name = f'bar{k}'
        old.CopyFrom(new)
    m.opset_import.append(helper.make_opsetid('foo', 1))
    onnx.save(m, 'barred.onnx')


def parts():
    """parts.onnx and regions.onnx: the strange operators stay, the others are in operators of the engine."""
    barred = onnx.load('barred.onnx')
    n_bars = sum(n.op_type == 'Bar' for n in barred.graph.node)
    for kind in 'parts', 'regions':
        m = onnx.load(kind + '.onnx')
        onnx.checker.check_model(m)
        kinds = [n.op_type for n in m.graph.node]
        assert kinds.count('Bar') == n_bars and kinds.count('Engine') >= 1, kinds
        if kind == 'parts':
            assert set(kinds) == {'Bar', 'Engine'}, kinds
        assert all(v.type.tensor_type.elem_type for v in m.graph.value_info)
        assert [v.name for v in m.graph.output] == [v.name for v in barred.graph.output]


def as_one():
    """Parts are read as one graph."""
    form = json.load(open('form.json'))
    for kind in 'parts', 'regions':
        assert json.load(open(kind + '.json')) == form, kind


def twice():
    """twice.onnx: a body one of whose names the graph has, too."""
    m = onnx.load('regions.onnx')
    engine = next(n for n in m.graph.node if n.op_type == 'Engine')
    inside = onnx.load_from_string(engine.attribute[0].s)
    m.graph.node.append(helper.make_node('Identity', [m.graph.input[0].name], [inside.graph.node[0].output[0]]))  # within the body, too
    onnx.save(m, 'twice.onnx')


def large():
    """large.onnx: a weight of 16 GiB that is made from a number, and as large a result."""
    net = Net()
    x = net.input('x', [1, 4, 8, 8])
    w = net.op('Expand', net.const(np.float32(.5)), net.const(np.array([1 << 18, 4, 64, 64]), 'i8'))
    net.op('Conv', x, w, pads=[40] * 4, out='y')
    net.output('y', [1, 1 << 18, 25, 25])
    save(net.model(), 'large.onnx')


def copies():
    """What is written of 64 MiB of weights holds the file once more than the other form, which holds it once. Asked of a process that holds little."""
    net = Net(seed=3)
    x = net.input('x', [1, 16, 2048])
    for _ in range(4): x = net.op('MatMul', x, net.const(net.rng.normal(size=(2048, 2048)).astype('f4')))
    net.output(x, [1, 16, 2048])
    save(net.model(), 'copies.onnx')
    ask = ("import os, sys\n"
           "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n"
           "_, status, usage = os.wait4(pid, 0)\n"
           "print(usage.ru_maxrss << 10 if status == 0 else 'failed')")
    held = {e: int(subprocess.run([sys.executable, '-c', ask, os.environ['TOOL'], 'copies.onnx', '-o', 'copied.onnx', '-q', '--emit', e], capture_output=True,
                                  text=True, check=True).stdout) for e in ('engine', 'ort-engine')}
    size = os.path.getsize('copies.onnx')
    assert held['engine'] < 1.5 * size and held['ort-engine'] - held['engine'] < 1.25 * size, (held, size)


if __name__ == '__main__':
    commands(one, strange, unknown, barred, parts, as_one, twice, large, copies)
