"""Models with local functions: tiled as their inlined twins. local_functions.py TOOL FOLDER"""
import filecmp
import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper
from onnx.inliner import inline_local_functions

from builder import Net, save
from checks import outputs

TILES = ('--force', '--l2', '16K', '--threads', '1', '--target', 'cpu-generic')
tool, folder = sys.argv[1:3]
FLOAT, INTS = onnx.AttributeProto.FLOAT, onnx.AttributeProto.INTS


def call(*words):
    p = subprocess.run([tool, *words], capture_output=True, text=True)
    if p.returncode: sys.exit(f'{" ".join(words)}: exit {p.returncode}: {p.stderr}')
    return p.stdout


def function(name, ins, outs, nodes, attributes=(), defaults=(), opset=17, own=False):
    sets = [helper.make_opsetid('', opset)] + ([helper.make_opsetid('own', 1)] if own else [])
    return helper.make_function('own', name, ins, outs, nodes, sets, attributes=list(attributes), attribute_protos=list(defaults))


def refers(node, name, to, kind):
    node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=kind))
    return node


def block(opset=17):
    """Convolution, whose bias may be absent, and LeakyRelu; an attribute that is given, and one that may be."""
    conv = refers(helper.make_node('Conv', ['x', 'w', 'b'], ['c']), 'pads', 'border', INTS)
    act = refers(helper.make_node('LeakyRelu', ['c'], ['y'], name='act'), 'alpha', 'slope', FLOAT)
    return function('Block', ['x', 'w', 'b'], ['y', 'c'], [conv, act], ['border'], [helper.make_attribute('slope', .2)], opset)


def pair():
    """Two blocks and a residual sum: functions in a function, and one of its attributes handed on."""
    first = refers(helper.make_node('Block', ['x', 'w'], ['a', 'unread'], domain='own', border=[1] * 4), 'slope', 'slope', FLOAT)
    second = helper.make_node('Block', ['a', 'w'], ['active', 'b'], domain='own', border=[1] * 4)
    return function('Pair', ['x', 'w'], ['y'], [first, second, helper.make_node('Add', ['b', 'x'], ['y'])], ['slope'], own=True)


def network(functions, opset=17):
    net = Net(3, opset=opset)
    v = net.input('x', [1, 3, 64, 48])
    w, c = (net.const(net.rng.normal(0, .2, s)) for s in ([8, 3, 3, 3], [8, 8, 3, 3]))
    b = net.const(net.rng.normal(0, .1, 8))
    net.nodes.append(helper.make_node('Block', [v, w, b], ['block', 'inner'], domain='own', border=[1] * 4, slope=.3))
    v = 'block'
    for k in range(2): v = net.op('Pair', v, c, domain='own', **({'slope': .4} if k else {'slope': .1}))
    net.nodes.append(helper.make_node('Block', [v, c, ''], ['y', 'last'], name='tail', domain='own', border=[1] * 4))
    net.output('y', [1, 8, 64, 48])
    m = net.model()
    m.opset_import.append(helper.make_opsetid('own', 1))
    m.functions.extend(functions)
    onnx.checker.check_model(m)
    return m


def regions_of(path):
    return [r['nodes'] and (r['form'], r['dims'], len(r['nodes'])) for r in json.loads(call('inspect', path, '--json', *TILES))['regions']]


def as_twin():
    m = network([block(), pair()])
    path, out = save(m, f'{folder}/calls.onnx'), f'{folder}/out.onnx'
    twin = save(inline_local_functions(m), f'{folder}/twin.onnx')
    fed = {'x': np.random.default_rng(1).standard_normal((1, 3, 64, 48)).astype('f4')}
    got, want = regions_of(path), regions_of(twin)
    if not want or got != want: sys.exit(f'regions {got}, of the inlined model {want}')
    for more in (TILES, ('--goal', 'memory', '--threads', '1')):
        call(path, '-o', out, '-q', *more)
        for a, b in zip(outputs(out, fed), outputs(path, fed), strict=True):
            if not np.allclose(a, b, atol=1e-5): sys.exit(f'{more}: off by {np.abs(a - b).max()}')
        onnx.checker.check_model(out)
    call(path, '-o', out, '-q', '--emit', 'engine', '--verify', *TILES)
    call(path, '-o', out, '-q', '--l2', '1G', '--target', 'cpu-generic')
    if not filecmp.cmp(path, out, shallow=False): sys.exit('changed, though nothing is tiled')


def left_alone():
    """Functions of another opset, of a body that is not in order, with a subgraph, and more nodes than are written: their calls stay."""
    other = block(opset=13)
    turned = block()
    turned.node[0].CopyFrom(block().node[1])
    turned.node[1].CopyFrom(block().node[0])
    for name, f in (('other', other), ('turned', turned)):
        m = network([block(), pair()])
        m.functions[0].CopyFrom(f)
        path = save(m, f'{folder}/{name}.onnx')
        text = call('inspect', path, '--json', *TILES)
        if 'local-function' not in text: sys.exit(f'{name}: {text}')
    laughs = [function('L0', ['x'], ['y'], [helper.make_node('Relu', ['x'], ['y'])])]
    for k in range(1, 40):
        twice = [helper.make_node(f'L{k - 1}', ['x'], ['a'], domain='own'), helper.make_node(f'L{k - 1}', ['a'], ['y'], domain='own')]
        laughs.append(function(f'L{k}', ['x'], ['y'], twice, own=True))
    net = Net(1)
    net.op('L39', net.input('x', [4, 4]), domain='own', out='y')
    net.output('y', [4, 4])
    m = net.model()
    m.opset_import.append(helper.make_opsetid('own', 1))
    m.functions.extend(laughs)
    p = subprocess.run([tool, save(m, f'{folder}/laughs.onnx'), '-o', f'{folder}/out.onnx', '-q', *TILES], capture_output=True, text=True, timeout=100)
    if p.returncode not in (0, 1): sys.exit(f'laughs: exit {p.returncode}: {p.stderr}')


as_twin()
left_alone()
