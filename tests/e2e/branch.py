"""Graphs that run as a branch: those that can and one that cannot, tiled with goal memory and compared. branch.py TOOL FOLDER"""
import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

import builder
from builder import constant, value as info
from checks import graphs, outputs

tool, d = sys.argv[1:]
rng = np.random.default_rng(0)


def model(name, nodes, inputs, outs, inits=(), opset=17, external=False):
    m = builder.model(nodes, inputs, outs, inits, opset)
    return builder.save(m, f'{d}/{name}.onnx', f'{name}.bin' if external else None)


w = [constant(f'w{k}', rng.normal(0, .1, (16, 16, 3, 3))) for k in range(3)]
x = info('x', [1, 16, 256, 256])
free = info('x', ['n', 16, 'h', 'w'])
N = h.make_node


def soft(i, o):
    return N('Softmax', [i], [o], axis=1)


chain = [N('MaxPool', ['x'], ['a'], kernel_shape=[3, 3], pads=[1] * 4), soft('a', 'b'), N('MaxPool', ['b'], ['c'], kernel_shape=[5, 5], pads=[2] * 4),
         N('CumSum', ['c', 'axis'], ['s']), N('CumSum', ['s', 'axis3'], ['t']), N('ReduceMax', ['t'], ['y'], axes=[1])]
axes = [constant('axis', 2, 'i8'), constant('axis3', 3, 'i8')]
y = info('y', [1, 1, 256, 256])
inner = h.make_graph([N('Neg', ['t'], ['u1'])], 'then', [], [info('u1', [1, 16, 256, 256])]), h.make_graph([N('Abs', ['t'], ['u2'])], 'else', [], [info('u2', [1, 16, 256, 256])])
CASES = {
    'plain': (chain, [x], [y], axes, {}),
    'old': (chain, [x], [y], axes, {'opset': 11}),
    'free': (chain, [free], [info('y', ['n', 1, 'h', 'w'])], axes, {}),
    'external': (chain + [N('Conv', ['y', 'k'], ['z'])], [x], [info('z', [1, 512, 256, 256])], [*axes, constant('k', rng.normal(0, 1, (512, 1, 1, 1)))],
                 {'external': True}),
    'overridden': (chain + [N('Mul', ['t', 'f'], ['z'])], [x, info('f', [1])], [y, info('z', [1, 16, 256, 256])], [*axes, constant('f', [2])], {}),
    'many': (chain + [N('Shape', ['t'], ['extents']), N('Cast', ['y'], ['flags'], to=T.BOOL), N('ReduceSum', ['y'], ['sum'], keepdims=0)], [x],
             [y, info('t', [1, 16, 256, 256]), info('extents', [4], T.INT64), info('flags', [1, 1, 256, 256], T.BOOL), info('sum', [])], axes, {}),
    'nothing': ([*chain, N('ReduceSum', ['e'], ['sum'], keepdims=0)], [info('e', ['k']), x], [y, info('sum', [])], axes, {}),
    'nested': (chain + [N('ReduceMax', ['y'], ['top'], keepdims=0), N('Greater', ['top', 'zero'], ['q']), N('If', ['q'], ['u'], then_branch=inner[0], else_branch=inner[1]),
                        N('ReduceMax', ['u'], ['z'], axes=[1])], [x], [info('z', [1, 1, 256, 256])], [*axes, constant('zero', 0)], {}),
    'tiled': ([N('Conv', ['x', 'w0'], ['a'], pads=[1] * 4), soft('a', 'b'), N('Conv', ['b', 'w1'], ['c'], pads=[1] * 4), N('CumSum', ['c', 'axis'], ['s']),
               N('CumSum', ['s', 'axis3'], ['t']), N('Conv', ['t', 'w2'], ['e'], pads=[1] * 4), N('ReduceMax', ['e'], ['y'], axes=[1])], [x], [y], [*w, *axes], {}),
}
STAYS = {
    'through': (chain, [x], [x, y], axes, {}),  # an output that no node makes
}


def ops(graph):
    return [n.op_type for n in graph.node]


def folds(graph):
    """What a simplifier computes of the top graph, though a sequence can be no constant: nodes of constants alone, and lengths of what
    SequenceConstruct makes."""
    constant, maker = {t.name for t in graph.initializer}, {o: n for n in graph.node for o in n.output}
    found = []
    for n in graph.node:
        made = maker[n.input[0]].op_type if n.input and n.input[0] in maker else ''
        if all(i in constant for i in n.input if i) or (n.op_type in ('SequenceLength', 'SequenceAt') and made == 'SequenceConstruct'):
            constant |= set(n.output)
            found.append(n.name)
    return found


def untyped(graph):
    """Sequences that no value_info describes: who infers shapes takes them for tensors."""
    found = []
    for g in graphs(graph):
        known, sequences = {v.name for v in [*g.value_info, *g.output] if v.type.HasField('sequence_type')}, set()
        for n in g.node:
            if n.op_type in ('SequenceEmpty', 'SequenceConstruct', 'SequenceErase', 'SequenceInsert'):
                sequences |= set(n.output)
            elif n.op_type == 'Loop':
                sequences |= {o for i, o in zip(n.input[2:], n.output) if i in sequences}
        found += sorted(sequences - known)
    return found


bad = 0
for name, (nodes, ins, outs, inits, more) in [*CASES.items(), *STAYS.items()]:
    path, tiled = model(name, nodes, ins, outs, inits, **more), f'{d}/{name}_out.onnx'
    shape = {'free': ['--shape', 'x=1,16,256,256'], 'nothing': ['--shape', 'e=8']}.get(name, [])
    p = subprocess.run([tool, path, '-o', tiled, '--goal', 'memory', '--threads', '1', '--target', 'cpu-generic', '--json', '--verify', *shape], capture_output=True, text=True)
    if p.returncode:
        bad += 1
        print(f'{name}: exit {p.returncode}: {p.stderr}')
        continue
    plan = json.loads(p.stdout)
    m = onnx.load(tiled)
    onnx.checker.check_model(tiled)
    wanted = name != 'through'
    if plan['in_branch'] != wanted or ('If' in ops(m.graph) and ops(m.graph)[-1] == 'If') != wanted:
        bad += 1
        print(f'{name}: in_branch {plan["in_branch"]}, {ops(m.graph)}')
    if wanted and (folds(m.graph) or untyped(m.graph)):
        bad += 1
        print(f'{name}: folded by simplifiers: {folds(m.graph)}; sequences without a type: {untyped(m.graph)}')
    held = [i.name for n in m.graph.node if n.op_type == 'If' for b in n.attribute for i in b.g.initializer if len(i.raw_data) >= 1024]
    if held:
        bad += 1
        print(f'{name}: weights in the branch, which holds them twice: {held}')
    old = onnx.load(path, load_external_data=False).graph
    if wanted and ([i.name for i in old.input], [o.name for o in old.output]) != ([i.name for i in m.graph.input], [o.name for o in m.graph.output]):
        bad += 1
        print(f'{name}: other inputs or outputs')
    if name == 'free' and not plan['regions'] and m.graph.input[0].type.tensor_type.shape.dim[2].dim_param != 'h':
        bad += 1
        print(f'{name}: extents are not free any more')
    feeds = {'x': rng.standard_normal([1, 16, 256, 256]).astype('f4')}
    if name == 'nothing':
        feeds['e'] = np.zeros(0, 'f4')  # of which no element can be taken
    for f in [feeds, {**feeds, 'f': np.array([3], 'f4')}] if name == 'overridden' else [feeds]:
        for a, b in zip(outputs(path, f), outputs(tiled, f)):
            if a.dtype != b.dtype or a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-4 * max(1, np.abs(a).max())):
                bad += 1
                print(f'{name}: outputs differ')
sys.exit(bad > 0)
