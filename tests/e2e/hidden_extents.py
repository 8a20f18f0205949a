"""Graphs whose buffers wait for values of their shape. hidden_extents.py TOOL FOLDER"""
import json
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import nmse, outputs

tool, d = sys.argv[1:]
LARGE = 1 << 16


def levels(reshapes, size=96):
    """Sums along rows and columns, which cannot be cut, of more and more channels and back; reshapes: channels by products of matrices."""
    net, c = Net(seed=3), 16
    x = net.conv(net.input('x', [1, 3, size, size]), 3, c, pads=[1] * 4)
    for to in 32, 64, 128, 64, 32, 16:
        y = net.op('CumSum', net.op('CumSum', x, net.const(2, 'i8')), net.const(3, 'i8'))
        y = net.op('Mul', net.op('Sub', x, y), net.const(1e-3))
        if reshapes:
            y = net.op('Reshape', y, net.const([c, size * size], 'i8'))
            y = net.op('MatMul', net.const(net.rng.normal(0, .2, (to, c))), y)
            x = net.op('Reshape', y, net.const([1, to, size, size], 'i8'))
        else:
            x = net.conv(y, c, to, k=1)
        c = to
    net.output(net.conv(x, c, 3, pads=[1] * 4), [1, 3, size, size])
    return net.model()


def branch_of(m):
    return next(a.g for n in m.graph.node if n.op_type == 'If' for a in n.attribute if a.name == 'then_branch')


def known(m):
    """Large values of the branch that standard shape inference knows, but for what is made of constants alone."""
    m = onnx.shape_inference.infer_shapes(m, data_prop=True)
    branch = branch_of(m)
    constant = {t.name for g in (m.graph, branch) for t in g.initializer}
    for n in branch.node:
        if all(i in constant for i in n.input if i):
            constant |= set(n.output)
    found = []
    for v in branch.value_info:
        dims = [x.dim_value if x.HasField('dim_value') else 0 for x in v.type.tensor_type.shape.dim]
        if v.name not in constant and v.type.tensor_type.HasField('shape') and np.prod(dims) * 4 >= LARGE:
            found.append((v.name, dims))
    return found


def interface(m):
    return [(v.name, [x.dim_value for x in v.type.tensor_type.shape.dim]) for v in [*m.graph.input, *m.graph.output]]


for name, model in ('maps', levels(False)), ('products', levels(True)):
    path, out = save(model, f'{d}/{name}.onnx'), f'{d}/{name}_tiled.onnx'
    r = subprocess.run([tool, path, '-o', out, '--goal', 'memory', '--single-file', '--target', 'cpu-generic', '--json'], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    plan, written = json.loads(r.stdout), onnx.load(out)
    onnx.checker.check_model(written)
    assert plan['in_branch'] and plan['hides_extents'], (name, plan['in_branch'], plan['hides_extents'], plan['tiled'])
    assert interface(written) == interface(model), interface(written)
    assert not known(written), (name, known(written)[:5])
    fed = {'x': np.random.default_rng(0).standard_normal([1, 3, 96, 96], dtype='f4')}
    for want, got in zip(outputs(path, fed), outputs(out, fed)):
        assert got.shape == want.shape and nmse(got, want) < 1e-10, (name, nmse(got, want))
    r = subprocess.run([tool, path, '-o', f'{d}/v.onnx', '--goal', 'memory', '--verify'], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    table = subprocess.run([tool, 'inspect', path, '--goal', 'memory', '--target', 'cpu-generic'], capture_output=True, text=True).stdout
    assert 'states no extents of large values' in table, table
    again = f'{d}/again.onnx'  # goal time: nothing of it
    r = subprocess.run([tool, path, '-o', again, '--target', 'cpu-generic', '--json'], capture_output=True, text=True)
    assert r.returncode == 0 and not json.loads(r.stdout)['hides_extents'], r.stdout
