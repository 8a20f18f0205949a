"""What nested_bodies.sh has in Python: every order of two and of three kinds of bodies, and deep ones. nested_bodies.py TOOL DUMP_SHAPES FOLDER"""
import itertools
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from builder import save, value
from checks import session

tool, dump, folder = sys.argv[1:4]
EXTENTS = [2, 3, 4, 5, 6]
KINDS = ['if', 'carried', 'stacked', 'scan', 'call']


class Nest:
    """A model of bodies inside of one another; whatever is about values in them is said by `stated`."""

    def __init__(self, kinds, stated=None):
        self.count, self.functions, self.stated = 0, [], stated
        nodes, y = self.of(kinds, 'x', 'yes')
        graph = helper.make_graph(nodes, 'g', [value('x', EXTENTS), value('yes', [], T.BOOL)], [value(y, None)])
        sets = [helper.make_opsetid('', 17), helper.make_opsetid('f', 1)]
        self.model, self.y = helper.make_model(graph, opset_imports=sets, ir_version=8, functions=self.functions), y

    def name(self, what):
        self.count += 1
        return f'{what}{self.count}'

    def graph(self, nodes, inputs, outputs, fixed=()):
        """fixed: values of these are no floats."""
        def of(name): return value(name, *((self.stated, T.FLOAT) if name not in fixed else ([], fixed[name])))
        made = [o for n in nodes for o in n.output if o not in fixed]
        about = [of(m) for m in made if m not in outputs] if self.stated is not None else []
        return helper.make_graph(nodes, self.name('body'), [of(v) for v in inputs], [of(v) for v in outputs], value_info=about)

    def of(self, kinds, x, yes):
        """Nodes that make of x the value y, the first of the kinds outermost: (nodes, y)."""
        if not kinds:  # twice as large for a while
            wide, y, at = self.name('wide'), self.name('y'), [self.name('at') for _ in range(3)]
            return [*[helper.make_node('Constant', [], [a], value_ints=[k]) for a, k in zip(at, (1, 1 + EXTENTS[-1], -1))],
                    helper.make_node('Concat', [x, x], [wide], axis=-1), helper.make_node('Slice', [wide, *at[:2], at[2]], [y])], y
        return getattr(self, kinds[0])(kinds[1:], x, yes)

    def call(self, kinds, x, yes):
        nodes, y = self.of(kinds, 'p', 'q')
        name, out = self.name('F'), self.name('v')
        sets = [helper.make_opsetid('', 17), helper.make_opsetid('f', 1)]
        self.functions.append(helper.make_function('f', name, ['p', 'q'], [y], nodes, sets))
        return [helper.make_node(name, [x, yes], [out], domain='f')], out

    # `if` is a word of the language
    def branches(self, kinds, x, yes):
        (nodes, y), (others, z), out = self.of(kinds, x, yes), self.of(kinds, x, yes), self.name('v')
        return [helper.make_node('If', [yes], [out], then_branch=self.graph(nodes, [], [y]), else_branch=self.graph(others, [], [z]))], out

    def loop(self, kinds, x, yes, stacked):
        i, go, on, a, b, n, out = [self.name(w) for w in ('i', 'go', 'on', 'a', 'b', 'n', 'v')]
        nodes, y = self.of(kinds, a, yes)
        body = self.graph([*nodes, helper.make_node('Identity', [go], [on]), *([helper.make_node('Neg', [a], [b])] if stacked else [])],
                          [i, go, a], [on, b, y] if stacked else [on, y], {i: T.INT64, go: T.BOOL, on: T.BOOL})
        trips = helper.make_node('Constant', [], [n], value_int=3)
        return [trips, helper.make_node('Loop', [n, '', x], [self.name('last'), out] if stacked else [out], body=body)], out

    def carried(self, kinds, x, yes): return self.loop(kinds, x, yes, False)
    def stacked(self, kinds, x, yes): return self.loop(kinds, x, yes, True)

    def scan(self, kinds, x, yes):
        s, out = self.name('s'), self.name('v')
        nodes, y = self.of(kinds, s, yes)
        return [helper.make_node('Scan', [x], [out], body=self.graph(nodes, [s], [y]), num_scan_inputs=1)], out


setattr(Nest, 'if', Nest.branches)


def told(path):
    """Extents of each value of the top graph; None: not known."""
    lines = subprocess.run([dump, path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {v[0]: v[2] for v in (line.split('\t') for line in lines)}


def made(kinds, x):
    """What a nest makes of x."""
    if not kinds: return np.roll(x, -1, -1)
    if kinds[0] == 'carried':
        for _ in range(3): x = made(kinds[1:], x)
        return x
    if kinds[0] == 'stacked': return np.stack([made(kinds[1:], v) for v in (x, -x, x)])
    return np.stack([made(kinds[1:], v) for v in x]) if kinds[0] == 'scan' else made(kinds[1:], x)


def check(kinds):
    path, out = f'{folder}/n.onnx', f'{folder}/t.onnx'
    nest = Nest(kinds)
    feeds = {'x': np.random.default_rng(1).normal(size=EXTENTS).astype('f4'), 'yes': np.array(True)}
    save(nest.model, path)
    want = made(kinds, feeds['x'])
    try: assert np.array_equal(session(path).run(None, feeds)[0], want), kinds
    except Fail as e: assert 'must have the shape set' in str(e), e  # a Scan in a Loop
    grows = 'carried' in kinds and 'stacked' in kinds[kinds.index('carried'):]  # by an axis in each iteration
    shape = '*' if grows else ','.join(map(str, want.shape))
    found = told(path)[nest.y]
    assert found == shape, (kinds, found, shape)
    gate = subprocess.run([tool, 'gate', path, '--max-peak', '1G'], capture_output=True, text=True)
    assert gate.returncode == (3 if grows else 0), (kinds, gate.stdout, gate.stderr)
    np.save(f'{folder}/x.npy', feeds['x'])
    np.save(f'{folder}/yes.npy', feeds['yes'])
    for lie in [None, [9] * 5] if len(kinds) > 2 else [None, [1], EXTENTS, [9] * 5]:  # what bodies state is not believed, and does no harm
        save(Nest(kinds, lie).model, path)
        assert told(path)[nest.y] == shape, (kinds, lie, told(path)[nest.y], shape)
        run = subprocess.run([tool, 'run', path, '--input', f'x={folder}/x.npy', '--input', f'yes={folder}/yes.npy', '-o', f'{nest.y}={folder}/y.npy'],
                             capture_output=True, text=True)
        assert run.returncode == 0, (kinds, lie, run.stderr)
        assert np.array_equal(np.load(f'{folder}/y.npy'), want), (kinds, lie)
    subprocess.run([tool, path, '-o', out, '-q'], check=True)


def deep(levels):
    """An If in an If and so on, `levels` of them, as bytes: deeper than the package itself writes."""
    def field(tag, data):
        n, head = len(data), bytes([tag << 3 | 2])
        while n > 127: head, n = head + bytes([n & 127 | 128]), n >> 7
        return head + bytes([n]) + data
    def node(op, i, o, *attributes): return field(1, field(1, i) + field(2, o) + field(4, op) + b''.join(field(5, a) for a in attributes))
    def branch(name, nodes): return field(1, name) + field(6, nodes + field(2, b'g') + field(12, field(1, b'y'))) + bytes([160, 1, 5])
    last = inside = node(b'Relu', b'x', b'y')
    for _ in range(levels): inside = node(b'If', b'yes', b'y', branch(b'then_branch', inside), branch(b'else_branch', last))
    top = onnx.GraphProto(name='g', input=[value('x', EXTENTS), value('yes', [], T.BOOL)], output=[value('y', None)]).SerializeToString()
    return bytes([1 << 3, 8]) + field(7, inside + top) + field(8, bytes([2 << 3, 17]))


for n in 1, 2, 3:
    for order in itertools.product(KINDS, repeat=n): check(order)
check(['if', 'carried'] * 5)
check(['carried'] * 8)
with open(f'{folder}/deep.onnx', 'wb') as f: f.write(deep(10))
assert told(f'{folder}/deep.onnx')['y'] == '2,3,4,5,6', told(f'{folder}/deep.onnx')
with open(f'{folder}/deep.onnx', 'wb') as f: f.write(deep(70))
