"""Networks that compute masks and biases of constants alone, as exporters of shifted windows write them. fold_constants.py TOOL FOLDER

With --goal memory what they compute is in the file, once for all layers, but for what a step follows: there, and with --bit-exact, nothing that rounds is.
"""
import json
import subprocess
import sys

import numpy as np
import onnx

import builder
from checks import nodes, outputs

tool, d = sys.argv[1], sys.argv[2]
WINDOWS, ROWS, WIDTH = 96, 64, 32


def mask(net, x, layer, kind):
    """[WINDOWS, ROWS, ROWS]: which rows of a window belong together; every layer computes it anew."""
    i = lambda *v: net.const(v, 'i8')
    if kind == 'of shapes':  # the number of windows is what the input says
        count = net.op('Gather', net.op('Shape', x), i(0), axis=0)
    else:
        count = net.op('Add', i(WINDOWS - 1), i(1))
    zeros = net.op('ConstantOfShape', net.op('Concat', count, i(ROWS), axis=0), value=onnx.numpy_helper.from_array(np.zeros(1, 'f4')))
    at = net.const([[w, r] for w in range(0, WINDOWS, 2) for r in range(ROWS // 2)], 'i8')
    ids = net.op('ScatterND', zeros, at, net.const(np.full(WINDOWS // 2 * (ROWS // 2), 1)))
    apart = net.op('Sub', net.op('Unsqueeze', ids, i(1)), net.op('Unsqueeze', ids, i(2)))
    same = net.op('Equal', apart, net.const(0))
    far = net.const(-100 - (layer if kind == 'each its own' else 0))
    m = net.op('Where', same, net.const(0), far)
    if kind == 'rounded': return net.op('Exp', net.op('Mul', m, net.const(.01)))
    if kind == 'stepped':  # a whole number is made of what rounds, as of distances between tokens
        near = net.op('Exp', net.op('Mul', m, net.const(.01)))
        row = net.op('Cast', net.op('Mul', near, net.const(3.5)), to=onnx.TensorProto.INT64)
        return net.op('Gather', net.const([-3, -2, -1, 0]), row)
    return m


def windows(kind, depth=6):
    net = builder.Net(depth, 17)
    x = net.input('x', [WINDOWS, ROWS, WIDTH])
    for layer in range(depth):
        q, k, v = (net.op('MatMul', x, net.const(net.rng.normal(0, .2, (WIDTH, WIDTH)))) for _ in range(3))
        a = net.op('MatMul', q, net.op('Transpose', k, perm=[0, 2, 1]))
        a = net.op('Softmax', net.op('Add', a, mask(net, x, layer, kind)), axis=-1)
        x = net.op('Add', x, net.op('MatMul', a, v))
    net.op('MatMul', x, net.const(net.rng.normal(0, .2, (WIDTH, WIDTH))), out='y')
    net.output('y', [WINDOWS, ROWS, WIDTH])
    return net


# what the masks follow from, options, how many of them are in the file (0: few distinct values are), and the operators that stay
EXACT = ['--bit-exact']
for kind, options, kept, stay in [('constants', [], 1, []), ('of shapes', [], 1, []), ('each its own', [], 6, []), ('rounded', [], 1, []), ('rounded', EXACT, 0, ['Exp']),
                                  ('stepped', [], 0, ['Exp', 'Cast', 'Gather'])]:
    path, out = f'{d}/windows.onnx', f'{d}/windows_out.onnx'
    builder.save(windows(kind).model(), path)
    x = {'x': np.random.default_rng(0).standard_normal([WINDOWS, ROWS, WIDTH]).astype('f4')}
    want = outputs(path, x)
    for goal in 'memory', 'time':
        p = subprocess.run([tool, path, '-o', out, '--goal', goal, '--threads', '1', '--target', 'cpu-generic', '--json', *options], capture_output=True, text=True)
        if p.returncode: sys.exit(f'{kind} {goal}: exit {p.returncode}: {p.stderr}')
        facts = json.loads(p.stdout)
        folded, g = facts.get('folded_nodes', 0), onnx.load(out)
        held = [i for n in [g.graph] + [a.g for n in nodes(g.graph) for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
                for i in n.initializer if 'tile/constant/' in i.name and np.prod(i.dims) >= WINDOWS * ROWS * ROWS]
        ops = {n.op_type for n in nodes(g.graph)}
        print(f'{kind} {goal}: {folded} nodes folded, {len(held)} masks in the file, process {facts["untiled"]["process_bytes"]} -> {facts["tiled"]["process_bytes"]}')
        if goal == 'memory' and not (folded > 0 and 'ScatterND' not in ops): sys.exit(f'{kind}: the masks are computed still')
        if goal == 'memory' and len({i.name for i in held}) != kept: sys.exit(f'{kind}: {len(held)} masks')
        if goal == 'time' and folded: sys.exit(f'{kind}: folded for time')
        if not ops >= set(stay): sys.exit(f'{kind}: {stay} were computed')
        if goal == 'memory' and not stay and 'Exp' in ops: sys.exit(f'{kind}: Exp is computed still')
        for a, b in zip(want, outputs(out, x), strict=True):
            if a.shape != b.shape or not np.abs(a - b).max() <= 1e-5 * np.abs(a).max(): sys.exit(f'{kind} {goal}: differs')
