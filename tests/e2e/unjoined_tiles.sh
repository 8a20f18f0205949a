#!/usr/bin/env bash
# Values that stay in pieces between two regions: random networks, cut in two by force, tiles of any counts on both sides, in ONNX Runtime
# against the untiled network and in the engine.
. "$(dirname "$0")/lib.bash"

cat >"$tmp/pieces.py" <<'EOF_PY'
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

force, tool, d, seed, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
print('seed', seed)
bad, kept, joined, streamed = 0, 0, 0, 0


def complain(text):
    global bad
    bad += 1
    print(text)


class Net:
    """What makes `between`, and what reads it: chains of windows and element-wise operators, sums with what was before."""

    def __init__(self, rng):
        self.rng, self.nodes, self.inits, self.n, self.c = rng, [], [], 0, int(rng.choice([3, 8, 16]))
        self.size = [int(rng.integers(40, 90)), int(rng.integers(7, 20))]

    def name(self):
        self.n += 1
        return f'v{self.n}'

    def op(self, op, ins, **attrs):
        o = self.name()
        self.nodes.append(h.make_node(op, ins, [o], name='n_' + o, **attrs))
        return o

    def const(self, a, dtype='f4'):
        n = 'c' + self.name()
        self.inits.append(nh.from_array(np.asarray(a, dtype), n))
        return n

    def conv(self, x, k=3, **attrs):
        w = self.const(self.rng.normal(0, (1 / (k * k * self.c)) ** .5, (self.c, self.c, k, k)))
        return self.op('Conv', [x, w, self.const(self.rng.normal(0, .1, self.c))], **attrs)

    def chain(self, x, n):
        for _ in range(n):
            kind = self.rng.choice(['conv', 'wide', 'relu', 'skip', 'pool', 'double', 'half', 'point'], p=[.3, .1, .1, .15, .1, .1, .05, .1])
            if kind == 'conv': x = self.conv(x, pads=[1] * 4)
            if kind == 'wide': x = self.conv(x, 3, pads=[2] * 4, dilations=[2, 2])
            if kind == 'point': x = self.conv(x, 1)
            if kind == 'relu': x = self.op('LeakyRelu', [x], alpha=.1)
            if kind == 'skip': x = self.op('Add', [x, self.conv(x, pads=[1] * 4)])
            if kind == 'pool': x = self.op('AveragePool', [x], kernel_shape=[3, 3], pads=[1] * 4)
            if kind == 'half' and min(self.size) > 12:
                x, self.size = self.conv(x, pads=[1] * 4, strides=[2, 2]), [(s + 1) // 2 for s in self.size]
            if kind == 'double' and max(self.size) < 100:
                x, self.size = self.op('Resize', [x, '', self.const([1, 1, 2, 2])], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'), [2 * s for s in self.size]
        return x

    def model(self):
        first = list(self.size)
        between = self.chain('x', int(self.rng.integers(1, 4)))
        if between == 'x': between = self.conv('x', pads=[1] * 4)
        made = list(self.size)
        y = self.chain(self.conv(between, pads=[1] * 4), int(self.rng.integers(0, 4)))
        if self.rng.random() < .4 and self.size == made: y = self.op('Add', [y, between])
        self.nodes.append(h.make_node('Relu' if self.rng.random() < .3 else 'Identity', [y], ['y'], name='last'))
        g = h.make_graph(self.nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [1, self.c, *first])],
                         [h.make_tensor_value_info('y', T.FLOAT, [1, self.c, *self.size])], self.inits)
        return h.make_model(g, opset_imports=[h.make_opsetid('', int(self.rng.choice([13, 17])))], ir_version=8), between, (made[0], self.size[0])


def operators(g):
    for n in g.node:
        yield n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH: yield from operators(a.g)


def run(path, feeds):
    so = ort.SessionOptions()
    so.intra_op_num_threads, so.log_severity_level = 1, 3
    return ort.InferenceSession(path, so).run(None, feeds)[0]


for number in range(rounds):
    rng = np.random.default_rng([seed, number])
    net = Net(rng)
    m, between, extents = net.model()
    onnx.save(m, f'{d}/m.onnx')
    feeds = {'x': rng.normal(0, 1, [v.dim_value for v in m.graph.input[0].type.tensor_type.shape.dim]).astype('f4')}
    want = run(f'{d}/m.onnx', feeds)
    np.save(f'{d}/x.npy', feeds['x'])
    for _ in range(3):
        counts = [int(rng.integers(2, max(3, min(14, e // 3)))) for e in extents]
        if rng.random() < .4: counts[1] = counts[0]
        forms = ['stream' if rng.random() < .25 else 'peeled' for _ in counts]
        what = f'network {number}, {between}, {forms} {counts}'
        r = subprocess.run([force, f'{d}/m.onnx', f'{d}/t.onnx', between, '2', forms[0], str(counts[0]), forms[1], str(counts[1])], capture_output=True, text=True)
        if r.returncode == 5: continue
        if r.returncode:
            complain(f'{what}: exit {r.returncode} {r.stderr}')
            continue
        t = onnx.load(f'{d}/t.onnx')
        onnx.checker.check_model(t, full_check=True)
        ops = [n.op_type for n in operators(t.graph)]
        if 'SequenceAt' in ops: kept += 1
        else: joined += 1
        streamed += 'SequenceAt' in ops and 'stream' in forms
        got = run(f'{d}/t.onnx', feeds)
        if got.shape != want.shape or np.abs(got - want).max() > 2e-6 * np.ptp(want): complain(f'{what}: off by {np.abs(got - want).max()} of {np.ptp(want)}')
        subprocess.run([tool, 'run', f'{d}/t.onnx', '--input', f'x={d}/x.npy', '--output-dir', f'{d}/got', '-q'], check=True)
        got = np.load(f'{d}/got/0.npy')
        if got.shape != want.shape or np.abs(got - want).max() > 1e-5 * np.ptp(want): complain(f'{what}: in the engine off by {np.abs(got - want).max()}')
print(f'{kept} in pieces ({streamed} of streams), {joined} joined')
if rounds >= 20 and (kept < rounds // 2 or streamed == 0 or joined == 0): complain('too few of a kind')
sys.exit(bad > 0)
EOF_PY
"$PYTHON" "$tmp/pieces.py" "$BUILD/tests/force_pieces" "$TOOL" "$tmp" "${SEED:-$RANDOM}" "${ROUNDS:-40}" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
[ -z "${VERBOSE:-}" ] || cat "$tmp/out"
finish
