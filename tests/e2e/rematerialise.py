"""Random style networks whose normalised values are computed twice. rematerialise.py TOOL FOLDER SEED ROUNDS [VERBOSE]"""
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

import builder
from checks import outputs, tile

tool, d, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
print('seed', seed)
bad = 0


def complain(text):
    global bad
    bad += 1
    print(text)


class Net(builder.Net):
    """x [1, 3, h, w] -- Pad, Conv -- [1, c, h, w] -- norm, Relu, Conv by 2, norm, Relu, up, norm, Relu, Conv -- [1, 3, h, w]"""

    def weighted(self, x, c_in, c_out, k, **attrs):
        return self.conv(x, c_in, c_out, k, bias=.3, **attrs)

    def norm(self, x, c):
        some = self.uniform
        kind = self.rng.integers(3 if self.opset >= 21 else 2)
        if kind == 0: return self.op('InstanceNormalization', x, some(c), some(c))
        if kind == 2: return self.op('GroupNormalization', x, some(c), some(c), num_groups=2)
        flat = self.reshape(x, [0, 2, -1])
        flat = self.op('InstanceNormalization', flat, self.const(np.ones(2)), self.const(np.zeros(2)))
        y = self.reshape(flat, [1, c, *self.size])
        return self.op('Add', self.op('Mul', y, some((c, 1, 1))), some((c, 1, 1)))

    def build(self):
        rng = self.rng
        hh, ww, c, less = 2 * int(rng.integers(60, 100)), 2 * int(rng.integers(60, 100)), int(rng.choice([16, 24, 32])), 8
        self.size, x = [hh, ww], 'x'
        if rng.random() < .5: x = self.op('Mul', x, self.const(.5))
        if rng.random() < .5: x = self.weighted(self.op('Pad', x, self.const([0, 0, 2, 2, 0, 0, 2, 2], 'i8'), mode='reflect'), 3, c, 5)
        else: x = self.weighted(x, 3, c, 3, pads=[1] * 4)
        x = self.op('Relu', self.norm(x, c))
        self.size = [hh // 2, ww // 2]
        x = self.op('Relu', self.norm(self.weighted(x, c, less, 4, pads=[1] * 4, strides=[2, 2]), less))
        self.size = [hh, ww]
        if rng.random() < .5: x = self.op('ConvTranspose', x, self.const(rng.normal(0, .2, (less, c, 2, 2))), strides=[2, 2])
        else: x = self.weighted(self.op('Resize', x, '', self.const([1, 1, 2, 2]), mode='nearest'), less, c, 3, pads=[1] * 4)
        y = self.op('Tanh', self.weighted(self.op('Relu', self.norm(x, c)), c, 3, 3, pads=[1] * 4))
        self.input('x', [1, 3, hh, ww])
        self.output(y, [1, 3, hh, ww])
        return self.model(), [1, 3, hh, ww]


def run(path, x):
    return outputs(path, {'x': x})[0].astype('f8')


def exact(m, x):
    m = onnx.ModelProto.FromString(m.SerializeToString())
    for k, i in enumerate(m.graph.initializer):
        if i.data_type == T.FLOAT: m.graph.initializer[k].CopyFrom(nh.from_array(nh.to_array(i).astype('f8'), i.name))
    for n in m.graph.node: # sizes by which is scaled are float32
        if n.op_type == 'Resize': m.graph.initializer.append(nh.from_array(np.array([1, 1, 2, 2], 'f4'), n.input[2] + '_f4')), n.input.__setitem__(2, n.input[2] + '_f4')
    for v in [*m.graph.input, *m.graph.output]: v.type.tensor_type.elem_type = T.DOUBLE
    return ReferenceEvaluator(m).run(None, {'x': x.astype('f8')})[0]


def grown(path, out, *options):
    """What the plan of goal memory takes, and whether a value is computed again."""
    facts, again = tile(tool, path, out, '--goal', 'memory', '--l2', '128K', *options)
    return facts['tiled'].get('growth_bytes') or facts['tiled']['peak_bytes'], again


def run_engine(path, x):
    np.save(f'{d}/x.npy', x)
    p = subprocess.run([tool, 'run', path, '--input', f'x={d}/x.npy', '--output-dir', f'{d}/got', '--threads', '1', '-q'], capture_output=True, text=True)
    if 'needs the native engine' in p.stderr: return None
    if p.returncode: return complain(f'{path}: exit {p.returncode}: {p.stderr}')
    return np.load(f'{d}/got/0.npy').astype('f8')


twice = {'onnx': 0, 'engine': 0}
for k in range(int(sys.argv[4])):
    rng = np.random.default_rng([seed, k])
    m, dims = Net(opset=[13, 17, 21][k % 3], rng=rng).build()
    path, out = f'{d}/m{k}.onnx', f'{d}/m{k}_out.onnx'
    onnx.save(m, path)
    x = rng.standard_normal(dims).astype('f4')
    want = exact(m, x)
    for emit, limit in ('onnx', 2e-6), ('engine', 4e-6):
        bytes_, again = grown(path, out, '--emit', emit, '--max-slowdown', '150')
        twice[emit] += again
        whole, got = (run(path, x), run(out, x)) if emit == 'onnx' else (run_engine(path, x), run_engine(out, x))
        if got is None or whole is None: continue
        untiled, error = (abs(y - want).max() / (want.max() - want.min()) for y in (whole, got))
        text = f'm{k} {emit}: twice {again}, error {error:.2e} of the range, untiled {untiled:.2e}, {bytes_} bytes'
        if len(sys.argv) > 5: print(text)
        if not error <= max(limit, 2 * untiled): complain(text)
        if grown(path, out, '--emit', emit, '--max-slowdown', '150', '--bit-exact')[1]: complain(f'm{k} {emit}: --bit-exact, and computed twice')
print('computed twice:', twice)
for emit in twice:
    if twice[emit] < int(sys.argv[4]) // 4: complain(f'{emit}: too few are computed twice')
sys.exit(bad > 0)
