#!/usr/bin/env python3
"""Every operator, of every type, in a body that lies, run with guards round all memory (tests/oracle/guarded.c).

  lying_operators.py --guarded PROGRAM [--count N] [--first SEED] [--keep FOLDER] [--only TEXT] [-v]

The cases of scripts/sweep_cases.py by turns. The operator and what is about it go into the body of an If, a Loop, a Scan or of one inside of
another; it reads captured, carried or scanned values, or an element of a sequence. What the body states is mostly untrue (type, rank,
dimensions, a sequence for a tensor), and now and then a node lacks an operand or an output, reads another value or has an absurd attribute.

  x -> Relu -> Cast -> If: |  stated: v is BOOL [1,8]   v -> MaxPool -> w: a sequence  |  -> y

Each must run as the reference implementations do, with the types and shapes that they make, or be refused with one line. Closes with
`N models of M operators, N ran, N compared, N refused, N failed`; exit 1 when one failed. --keep: where models that fail are left.
"""
import argparse
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings

import onnx
from onnx import TensorProto as T
from onnx import helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import sweep_cases  # noqa: E402

BATCH, SECONDS, MEMORY = 40, 300, 6 << 30
NEAR = 1e-2  # of the largest number, for models whose nodes are whole
LIES = [T.FLOAT, T.UINT8, T.INT8, T.INT32, T.INT64, T.STRING, T.BOOL, T.FLOAT16, T.DOUBLE, T.BFLOAT16, T.INT4, T.COMPLEX128, 99]


def tensor_type(dtype, dims):
    t = onnx.TypeProto()
    t.tensor_type.elem_type = dtype
    if dims is not None:
        t.tensor_type.shape.SetInParent()
        for d in dims:
            dim = t.tensor_type.shape.dim.add()
            if d >= 0: dim.dim_value = d
    return t


class Liar:
    """How one file lies: of each value something else, or one thing of all."""

    def __init__(self, rng, known):
        self.rng, self.known = rng, known
        self.style = rng.choice(['anyhow', 'anyhow', 'anyhow', 'one type', 'old batch', 'fewer channels'])
        self.one = rng.choice(LIES)

    def truth(self, name):
        """Element type and dimensions; a guess where inference knows none."""
        t = self.known.get(name)
        if t is None or not t.elem_type: return T.FLOAT, list(sweep_cases.EXTENTS)
        return t.elem_type, [d.dim_value if d.HasField('dim_value') else -1 for d in t.shape.dim]

    def dims(self, dims):
        r, dims = self.rng, list(dims)
        for _ in range(r.randint(0, 2)):
            what = r.randrange(6)
            if what == 0 and dims: dims[0] = 1
            if what == 1 and dims: dims[r.randrange(len(dims))] = r.choice([-1, 0, 1, 2, 7, 300])
            if what == 2: dims.insert(r.randint(0, len(dims)), r.randint(1, 3))
            if what == 3 and dims: dims.pop(r.randrange(len(dims)))
            if what == 4: return None
            if what == 5: dims = [] if r.random() < .5 else [-1] * len(dims)
        return dims

    def value(self, name, of=None):
        """A ValueInfoProto for `name`, which is like the value `of`."""
        r, (dtype, dims) = self.rng, self.truth(of or name)
        v = onnx.ValueInfoProto(name=name)
        if self.style == 'one type': dtype = self.one
        elif self.style == 'old batch': dims = [1, *dims[1:]] if dims else dims
        elif self.style == 'fewer channels': dims = [*dims[:1], max(1, dims[1] // 2), *dims[2:]] if len(dims) > 1 else dims
        else:
            if r.random() < .5: dtype = r.choice(LIES)
            dims = self.dims(dims)
            if r.random() < .08:
                v.type.sequence_type.elem_type.CopyFrom(tensor_type(dtype, dims))
                return v
            if r.random() < .03:
                v.type.optional_type.elem_type.CopyFrom(tensor_type(dtype, dims))
                return v
            if r.random() < .04: return v
        v.type.CopyFrom(tensor_type(dtype, dims))
        return v


def damage(nodes, names, rng):
    """One node lacks something, reads something else or has an absurd attribute."""
    n, what = rng.choice(nodes), rng.randrange(7)
    if what == 0 and n.input: n.input[rng.randrange(len(n.input))] = ''
    if what == 1 and n.input: del n.input[rng.randrange(len(n.input)):]
    if what == 2 and n.input and names: n.input[rng.randrange(len(n.input))] = rng.choice(names)
    if what == 3: n.output.extend(['more1', 'more2'][:rng.randint(1, 2)])
    if what == 4 and len(n.output) > 1: n.output[rng.randrange(len(n.output))] = ''
    if what == 5: n.output.insert(0, '')
    if what == 6 and n.attribute:
        a = rng.choice(n.attribute)
        if a.type == onnx.AttributeProto.INT: a.i = rng.choice([-1, 0, 1, 2, 5, -2 ** 31, 2 ** 62])
        elif a.ints: a.ints[rng.randrange(len(a.ints))] = rng.choice([-1, 0, 1, 3, 2 ** 31])


class Body:
    """The nodes of a graph that go into a body, which reads `outer` and makes y."""

    def __init__(self, m, rng):
        g, self.rng, self.inside = m.graph, rng, []
        try: known = onnx.shape_inference.infer_shapes(m).graph
        except Exception: known = g  # of operators that inference does not know
        self.types = {v.name: v.type.tensor_type for v in [*known.input, *known.value_info, *known.output]}
        cut = rng.randint(0, 2 if g.node[1].op_type == 'Cast' else 1)
        self.before, self.nodes = list(g.node[:cut]), list(g.node[cut:])
        self.inits, self.outside = list(g.initializer), []
        self.outer = ['x', *[o for n in self.before for o in n.output]][-1]

    def graph(self, liar, inputs, outputs, before=(), after=(), damaged=False):
        """inputs, outputs: ValueInfoProtos, or names to lie of; names that begin with ' are said as they are."""
        r, nodes = self.rng, [*before, *self.nodes, *after]
        made = [o for n in nodes for o in n.output if o]
        if damaged: damage(nodes, [*made, self.outer, 'x'], r)
        stated = [liar.value(v) for v in [*made, self.outer] if r.random() < .7 and v != 'y']
        mine = [i for i in self.inits if r.random() < .5]
        self.inits = [i for i in self.inits if not any(i is k for k in mine)]
        return helper.make_graph(nodes, 'body', inputs, outputs, mine, value_info=stated)


def scalar(name, dtype, number):
    return helper.make_tensor(name, dtype, [], [number])


def plain(name, dtype=T.FLOAT, dims=None):
    v = onnx.ValueInfoProto(name=name)
    v.type.CopyFrom(tensor_type(dtype, dims))
    return v


def else_branch(name):
    return helper.make_graph([helper.make_node('Identity', ['x'], [name])], 'other', [], [plain(name)])


def around_if(b, liar, damaged):
    cond = 'yes'
    if b.rng.random() < .5:  # known when it runs
        b.before += [helper.make_node('ReduceMax', ['x'], ['most'], keepdims=0), helper.make_node('Greater', ['most', 'low'], ['cond'])]
        b.outside.append(scalar('low', T.FLOAT, -1e9))
        cond = 'cond'
    before = []
    if b.rng.random() < .25:  # an element of a sequence from outside
        b.before.append(helper.make_node('SequenceConstruct', [b.outer] * b.rng.randint(1, 3), ['seq']))
        before = [helper.make_node('SequenceAt', ['seq', 'zero'], ['element'])]
        renamed(b, 'element')
    elif b.rng.random() < .1:
        before = [helper.make_node('SequenceConstruct', [b.outer], ['seq']), helper.make_node('SequenceAt', ['seq', 'zero'], ['element'])]
        renamed(b, 'element')
    body = b.graph(liar, [], [liar.value('y')], before, damaged=damaged)
    return helper.make_node('If', [cond], ['y'], name='if', then_branch=body, else_branch=else_branch('other'))


def renamed(b, name):
    """What the body reads from outside has that name there."""
    for n in b.nodes:
        for k, i in enumerate(n.input):
            if i == b.outer: n.input[k] = name
    b.types[name] = b.types.get(b.outer)
    if b.types[name] is None: del b.types[name]


def around_loop(b, liar, damaged):
    r, outer = b.rng, b.outer
    carried, given, ins, outs = [], [], [], []
    if r.random() < .8:
        renamed(b, 'a')
        given, ins = [outer], [liar.value('a', outer)]
        carried = [helper.make_node('Identity', ['a'], ['a2'])]
        outs = [liar.value('a2', outer)]
    as_last = r.random() < .4  # y is carried, from a number of another shape
    if as_last:
        given.append('low')
        b.outside.append(scalar('low', T.FLOAT, 1) if r.random() < .7 else scalar('low', r.choice([T.INT64, T.BOOL, T.DOUBLE]), 1))
        ins.append(liar.value('b', 'y'))
    outs.append(liar.value('y'))
    body = b.graph(liar, [plain('i', T.INT64, []), plain('go', T.BOOL, []), *ins], [plain('on', T.BOOL, []), *outs],
                   [helper.make_node('Identity', ['go'], ['on'])], carried, damaged)
    names = [f'last{k}' for k in range(len(given))]
    results = [*names[:-1], 'y'] if as_last else [*names, 'y']
    if not as_last and names and r.random() < .3: results[0] = ''
    return helper.make_node('Loop', ['times', 'yes', *given], results, name='loop', body=body)


def around_scan(b, liar, damaged):
    """x has an axis more."""
    b.nodes, b.before, b.outer = [*b.before, *b.nodes], [], 'x'
    renamed(b, 's')
    state = b.rng.random() < .4
    ins, outs = [liar.value('s', 'x')], [liar.value('y')]
    more = []
    if state:
        b.outside.append(scalar('low', T.FLOAT, 1))
        ins, outs = [liar.value('c', 'low'), *ins], [liar.value('c2', 'low'), *outs]
        more = [helper.make_node('Neg', ['c'], ['c2'])]
    body = b.graph(liar, ins, outs, more, damaged=damaged)
    return helper.make_node('Scan', ['low', 'x'] if state else ['x'], ['last', 'y'] if state else ['y'], name='scan', body=body, num_scan_inputs=1)


def model(seed, case):
    """A model around the case's operator; whether its nodes are whole."""
    rng = random.Random(seed)
    m = case.bare()
    b = Body(m, rng)
    liar, damaged = Liar(rng, b.types), rng.random() < .3
    wrap = rng.choice([around_if, around_loop, around_scan])
    node = wrap(b, liar, damaged)
    g = m.graph
    if wrap is not around_scan and rng.random() < .2:  # one inside of another
        node.output[list(node.output).index('y')] = 'inner'
        body = helper.make_graph([node], 'outer', [], [liar.value('inner', 'y')], value_info=[liar.value(b.outer)])
        node = helper.make_node('If', ['yes'], ['y'], name='outer_if', then_branch=body, else_branch=else_branch('other2'))
    extents = list(sweep_cases.EXTENTS)
    if wrap is around_scan: extents = [2, *extents]
    elif rng.random() < .2: extents[0] = -1
    inits = [*b.inits, *b.outside, scalar('yes', T.BOOL, 1), scalar('zero', T.INT64, 0), scalar('times', T.INT64, rng.randint(1, 3))]
    graph = helper.make_graph([*b.before, node], 'g', [plain('x', T.FLOAT, extents)], [onnx.ValueInfoProto(name='y')], inits)
    if rng.random() < .3: graph.value_info.append(liar.value(b.outer)) if b.outer != 'x' else None
    g.CopyFrom(graph)
    return m, not damaged


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def batch(a, folder, these, counts):
    """Runs these (number, case, path, whole); what fails is said."""
    def failed(path, case, why):
        counts['failed'] += 1
        print(f'{os.path.basename(path)} {case.name}: {why}', flush=True)
        if a.keep: shutil.copy(path, a.keep)
    rest = list(these)
    while rest:
        run = subprocess.run([a.guarded, *[path for _, path, _ in rest]], capture_output=True, text=True, errors='replace', preexec_fn=limits,
                             timeout=SECONDS, check=False)
        lines = [line for line in run.stdout.splitlines() if line.startswith(folder)]
        for (case, path, whole), line in zip(rest, lines):
            what = line[len(path) + 1:]
            if what.startswith('wrong') and not what.endswith('not supported here'):  # a type that the reference lacks
                failed(path, case, what)
            elif what.startswith('refused'):
                counts['refused'] += 1
                if a.verbose: print(f'{os.path.basename(path)} {case.name}: {what}')
            else:
                counts['ran'] += 1
                off = float(what.split()[1]) if what.startswith('ran') else math.nan
                if whole and case.type == 'FLOAT' and not math.isnan(off):
                    counts['compared'] += 1
                    if off > NEAR: failed(path, case, f'other numbers: {off}')
        if len(lines) < len(rest):
            failed(rest[len(lines)][1], rest[len(lines)][0], f'exit {run.returncode}: {run.stderr[-300:].strip()}')
        rest = rest[len(lines) + 1:]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--guarded', required=True)
    p.add_argument('--count', type=int, default=10000)
    p.add_argument('--first', type=int, default=0)
    p.add_argument('--keep')
    p.add_argument('--only', metavar='TEXT', help='cases whose name has it')
    p.add_argument('-v', '--verbose', action='store_true', help='a line for each that is refused')
    a = p.parse_args()
    warnings.simplefilter('ignore')
    cases = [c for c in sweep_cases.cases() if not a.only or a.only in c.name]
    random.Random(7).shuffle(cases)
    counts, seen = dict.fromkeys(['ran', 'compared', 'refused', 'failed'], 0), set()
    if a.keep: os.makedirs(a.keep, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        for first in range(a.first, a.first + a.count, BATCH):
            these = []
            for k in range(first, min(first + BATCH, a.first + a.count)):
                case, path = cases[k % len(cases)], os.path.join(tmp, f'lie{k}.onnx')
                try: m, whole = model(k, case)
                except (TypeError, ValueError, OverflowError): continue  # a type that has no such constants
                with open(path, 'wb') as f: f.write(m.SerializeToString())
                these.append((case, path, whole))
                seen.add(case.op)
            batch(a, tmp, these, counts)
            for _, path, _ in these: os.unlink(path)
    n = counts['ran'] + counts['refused']
    print(f"{n} models of {len(seen)} operators, {counts['ran']} ran, {counts['compared']} compared, {counts['refused']} refused, "
          f"{counts['failed']} failed")
    return 1 if counts['failed'] or not counts['ran'] or not counts['refused'] else 0


if __name__ == '__main__':
    sys.exit(main())
