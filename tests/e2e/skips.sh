#!/usr/bin/env bash
# Skip connections that are computed twice in place of being kept (--runtime openvino, --goal memory): random encoders and decoders, in ONNX
# Runtime, and in OpenVINO where it is installed; never where normal plans keep them (--runtime onnxruntime, --force).
. "$(dirname "$0")/lib.bash"

cat >"$tmp/skips.py" <<'EOF_PY'
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

LEVELS = 4
tool, d, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Net:
    """x [1, 3, n, n] -- two convolutions -- s1, pool, ... s4, pool, two convolutions, up, Concat(s4), two convolutions, up, ... Concat(s1), ..."""

    def __init__(self, rng):
        self.rng, self.nodes, self.inits, self.n = rng, [], [], 0

    def const(self, a):
        self.n += 1
        self.inits.append(nh.from_array(np.asarray(a, 'f4'), f'c{self.n}'))
        return f'c{self.n}'

    def op(self, op, *ins, **attrs):
        self.n += 1
        self.nodes.append(h.make_node(op, list(ins), [f'v{self.n}'], name=f'n{self.n}', **attrs))
        return f'v{self.n}'

    def conv(self, x, c_in, c_out):
        x = self.op('Conv', x, self.const(self.rng.normal(0, (2 / (9 * c_in)) ** .5, (c_out, c_in, 3, 3))), pads=[1] * 4)
        if self.rng.random() < .5:
            some = [self.const(self.rng.uniform(.5, 1.5, c_out)) for _ in range(4)]
            x = self.op('BatchNormalization', x, *some)
        return self.op('Relu', x)

    def build(self):
        rng = self.rng
        n, c, x, c_in, skips = 16 * int(rng.integers(32, 40)), int(rng.choice([8, 12, 16])), 'x', 3, []
        for level in range(LEVELS):
            wide = c << level
            x = self.conv(self.conv(x, c_in, wide), wide, wide)
            skips.append((x, wide))
            x, c_in = self.op('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2]), wide
        x = self.conv(self.conv(x, c_in, c << LEVELS), c << LEVELS, c << LEVELS)
        for skip, wide in reversed(skips):
            up = self.const(rng.normal(0, .1, (2 * wide, wide, 2, 2)))
            x = self.op('Concat', self.op('ConvTranspose', x, up, strides=[2, 2]), skip, axis=1)
            x = self.conv(self.conv(x, 2 * wide, wide), wide, wide)
        y = self.op('Conv', x, self.const(rng.normal(0, .3, (1, c, 1, 1))))
        value = lambda name, channels: h.make_tensor_value_info(name, T.FLOAT, [1, channels, n, n])
        g = h.make_graph(self.nodes, 'g', [value('x', 3)], [value(y, 1)], self.inits)
        return h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=8), [1, 3, n, n]


def tile(path, out, *options):
    p = subprocess.run([tool, path, '-o', out, '--threads', '1', '--target', 'cpu-generic', '--json', *options], capture_output=True, text=True)
    if p.returncode: sys.exit(f'{path} {options}: exit {p.returncode}: {p.stderr}')
    onnx.checker.check_model(onnx.load(out), full_check=True)
    return json.loads(p.stdout), any(n.name.startswith('tile/again/') or '/tile/again/' in n.name for n in onnx.load(out).graph.node)


def in_ort(path, x):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = 1, 4
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider']).run(None, {'x': x})[0]


def in_openvino(path, x):
    try:
        import openvino as ov
    except ImportError:
        return None
    return ov.Core().compile_model(path, 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})({'x': x})[0]


twice = most = 0
for k in range(rounds):
    m, dims = Net(np.random.default_rng([5, k])).build()
    path, out = f'{d}/m{k}.onnx', f'{d}/m{k}_out.onnx'
    onnx.save(m, path)
    x = np.random.default_rng(k).standard_normal(dims).astype('f4')
    for options in (('--runtime', 'onnxruntime', '--goal', 'memory'), ('--runtime', 'openvino', '--force')):
        if tile(path, out, *options)[1]: sys.exit(f'm{k} {options}: computed twice')
    facts, again = tile(path, out, '--runtime', 'openvino', '--goal', 'memory')
    twice += again
    most = max(most, len(facts['regions']) if again else 0)
    if again and not facts['tiled']['growth_bytes'] < .7 * facts['untiled']['growth_bytes']: sys.exit(f'm{k}: computed twice for nothing')
    for run in in_ort, in_openvino:
        want, got = run(path, x), run(out, x)
        if want is None: continue
        error = abs(got.astype('f8') - want).max() / abs(want).max()
        if not error < 1e-5: sys.exit(f'm{k} {run.__name__}: error {error:.1e}')
print(f'{twice} of {rounds} computed twice, {most} regions at most')
# where the block is as full at several steps, several regions have to come in together
sys.exit(twice < rounds // 2 or most < 3)
EOF_PY
"$PYTHON" "$tmp/skips.py" "$TOOL" "$tmp" "${ROUNDS:-3}" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
