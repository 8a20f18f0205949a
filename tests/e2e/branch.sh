#!/usr/bin/env bash
# A graph that runs as a branch (goal memory): valid, equal in ONNX Runtime and in the engine, its inputs and outputs as they were; where
# nothing is tiled free extents stay free. What cannot be a branch is written as it was.
. "$(dirname "$0")/lib.bash"

cat >"$tmp/branch.py" <<'EOF_PY'
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

tool, d = sys.argv[1:]
rng = np.random.default_rng(0)


def info(name, dims, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, dims)


def model(name, nodes, inputs, outputs, inits=(), opset=17, external=False):
    g = h.make_graph(nodes, 'g', inputs, outputs, list(inits))
    m = h.make_model(g, opset_imports=[h.make_opsetid('', opset)], ir_version=8)
    path = f'{d}/{name}.onnx'
    onnx.save(m, path, save_as_external_data=external, location=name + '.bin', size_threshold=0) if external else onnx.save(m, path)
    return path


w = [nh.from_array(rng.normal(0, .1, (16, 16, 3, 3)).astype('f4'), f'w{k}') for k in range(3)]
x = info('x', [1, 16, 256, 256])
free = info('x', ['n', 16, 'h', 'w'])
N = h.make_node


def soft(i, o):
    return N('Softmax', [i], [o], axis=1)


chain = [N('MaxPool', ['x'], ['a'], kernel_shape=[3, 3], pads=[1] * 4), soft('a', 'b'), N('MaxPool', ['b'], ['c'], kernel_shape=[5, 5], pads=[2] * 4),
         N('CumSum', ['c', 'axis'], ['s']), N('CumSum', ['s', 'axis3'], ['t']), N('ReduceMax', ['t'], ['y'], axes=[1])]
axes = [nh.from_array(np.int64(2), 'axis'), nh.from_array(np.int64(3), 'axis3')]
y = info('y', [1, 1, 256, 256])
inner = h.make_graph([N('Neg', ['t'], ['u1'])], 'then', [], [info('u1', [1, 16, 256, 256])]), h.make_graph([N('Abs', ['t'], ['u2'])], 'else', [], [info('u2', [1, 16, 256, 256])])
CASES = {
    'plain': (chain, [x], [y], axes, {}),
    'old': (chain, [x], [y], axes, {'opset': 11}),
    'free': (chain, [free], [info('y', ['n', 1, 'h', 'w'])], axes, {}),
    'external': (chain + [N('Conv', ['y', 'k'], ['z'])], [x], [info('z', [1, 512, 256, 256])], [*axes, nh.from_array(rng.normal(0, 1, (512, 1, 1, 1)).astype('f4'), 'k')],
                 {'external': True}),
    'overridden': (chain + [N('Mul', ['t', 'f'], ['z'])], [x, info('f', [1])], [y, info('z', [1, 16, 256, 256])], [*axes, nh.from_array(np.array([2], 'f4'), 'f')], {}),
    'many': (chain + [N('Shape', ['t'], ['extents']), N('Cast', ['y'], ['flags'], to=T.BOOL), N('ReduceSum', ['y'], ['sum'], keepdims=0)], [x],
             [y, info('t', [1, 16, 256, 256]), info('extents', [4], T.INT64), info('flags', [1, 1, 256, 256], T.BOOL), info('sum', [])], axes, {}),
    'nested': (chain + [N('ReduceMax', ['y'], ['top'], keepdims=0), N('Greater', ['top', 'zero'], ['q']), N('If', ['q'], ['u'], then_branch=inner[0], else_branch=inner[1]),
                        N('ReduceMax', ['u'], ['z'], axes=[1])], [x], [info('z', [1, 1, 256, 256])], [*axes, nh.from_array(np.float32(0), 'zero')], {}),
    'tiled': ([N('Conv', ['x', 'w0'], ['a'], pads=[1] * 4), soft('a', 'b'), N('Conv', ['b', 'w1'], ['c'], pads=[1] * 4), N('CumSum', ['c', 'axis'], ['s']),
               N('CumSum', ['s', 'axis3'], ['t']), N('Conv', ['t', 'w2'], ['e'], pads=[1] * 4), N('ReduceMax', ['e'], ['y'], axes=[1])], [x], [y], [*w, *axes], {}),
}
STAYS = {
    'through': (chain, [x], [x, y], axes, {}),  # an output that no node makes
}


def outputs(path, feeds):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider']).run(None, feeds)


def ops(graph):
    return [n.op_type for n in graph.node]


bad = 0
for name, (nodes, ins, outs, inits, more) in [*CASES.items(), *STAYS.items()]:
    path, tiled = model(name, nodes, ins, outs, inits, **more), f'{d}/{name}_out.onnx'
    shape = ['--shape', 'x=1,16,256,256'] if name == 'free' else []
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
    for f in [feeds, {**feeds, 'f': np.array([3], 'f4')}] if name == 'overridden' else [feeds]:
        for a, b in zip(outputs(path, f), outputs(tiled, f)):
            if a.dtype != b.dtype or a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-4 * max(1, np.abs(a).max())):
                bad += 1
                print(f'{name}: outputs differ')
sys.exit(bad > 0)
EOF_PY
"$PYTHON" "$tmp/branch.py" "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
