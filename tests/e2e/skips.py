"""Random encoders and decoders whose skip connections are computed twice. skips.py TOOL FOLDER ROUNDS"""
import sys

import numpy as np
import onnx

import builder
from checks import outputs, tile

LEVELS = 4
tool, d, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])


class Net(builder.Net):
    """x [1, 3, n, n] -- two convolutions -- s1, pool, ... s4, pool, two convolutions, up, Concat(s4), two convolutions, up, ... Concat(s1), ..."""

    def block(self, x, c_in, c_out):
        x = self.conv(x, c_in, c_out, pads=[1] * 4)
        if self.rng.random() < .5:
            x = self.op('BatchNormalization', x, *(self.uniform(c_out) for _ in range(4)))
        return self.op('Relu', x)

    def build(self):
        rng = self.rng
        n, c, x, c_in, skips = 16 * int(rng.integers(32, 40)), int(rng.choice([8, 12, 16])), 'x', 3, []
        for level in range(LEVELS):
            wide = c << level
            x = self.block(self.block(x, c_in, wide), wide, wide)
            skips.append((x, wide))
            x, c_in = self.op('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2]), wide
        x = self.block(self.block(x, c_in, c << LEVELS), c << LEVELS, c << LEVELS)
        for skip, wide in reversed(skips):
            up = self.const(rng.normal(0, .1, (2 * wide, wide, 2, 2)))
            x = self.op('Concat', self.op('ConvTranspose', x, up, strides=[2, 2]), skip, axis=1)
            x = self.block(self.block(x, 2 * wide, wide), wide, wide)
        y = self.op('Conv', x, self.const(rng.normal(0, .3, (1, c, 1, 1))))
        self.input('x', [1, 3, n, n])
        self.output(y, [1, 1, n, n])
        return self.model(), [1, 3, n, n]


def in_ort(path, x):
    return outputs(path, {'x': x})[0]


def in_openvino(path, x):
    try:
        import openvino as ov
    except ImportError:
        return None
    return ov.Core().compile_model(path, 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})({'x': x})[0]


def check(k, path, out, x, run):
    want, got = run(path, x), run(out, x)
    if want is None: return
    error = abs(got.astype('f8') - want).max() / abs(want).max()
    if not error < 1e-5: sys.exit(f'm{k} {run.__name__}: error {error:.1e}')


twice = in_arena = most = 0
for k in range(rounds):
    m, dims = Net([5, k]).build()
    path, out = f'{d}/m{k}.onnx', f'{d}/m{k}_out.onnx'
    onnx.save(m, path)
    x = np.random.default_rng(k).standard_normal(dims).astype('f4')
    if tile(tool, path, out, '--runtime', 'openvino', '--force')[1]: sys.exit(f'm{k}: computed twice by force')
    facts, again = tile(tool, path, out, '--goal', 'memory')
    in_arena += again
    check(k, path, out, x, in_ort)
    if k == 0:
        once, twice_fast = tile(tool, path, out, '--goal', 'memory', '--max-slowdown', '5')
        if twice_fast: sys.exit(f'm{k}: computed twice where little time is allowed')
        if not facts['tiled']['growth_bytes'] < .95 * once['tiled']['growth_bytes']: sys.exit(f'm{k}: computed twice for nothing in an arena')
    facts, again = tile(tool, path, out, '--runtime', 'openvino', '--goal', 'memory')
    twice += again
    most = max(most, len(facts['regions']) if again else 0)
    if again and not facts['tiled']['growth_bytes'] < .7 * facts['untiled']['growth_bytes']: sys.exit(f'm{k}: computed twice for nothing')
    for run in in_ort, in_openvino: check(k, path, out, x, run)
# of any size: planned at one, right at others
m, dims = Net([5, 0]).build()
for value in (*m.graph.input, *m.graph.output):
    for d_free, name in zip(value.type.tensor_type.shape.dim[2:], 'hw'): d_free.dim_param = name
onnx.save(m, path)
if not tile(tool, path, out, '--goal', 'memory', '--design', f'x={",".join(map(str, dims))}')[1]: sys.exit('dynamic: not computed twice')
for n in dims[2], 208: check('dynamic', path, out, np.random.default_rng(n).standard_normal([1, 3, n, n + 16]).astype('f4'), in_ort)
print(f'{twice} of {rounds} computed twice, {most} regions at most; in an arena {in_arena}')
# where the block is as full at several steps, several regions have to come in together
sys.exit(twice < rounds // 2 or most < 3 or in_arena < rounds // 2)
