"""Random networks cut in two, whose value between stays in tiles. unjoined_tiles.py FORCE TOOL FOLDER SEED ROUNDS"""
import subprocess
import sys

import numpy as np
import onnx

import builder
from checks import input_extents, nodes, outputs

force, tool, d, seed, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
print('seed', seed)
bad, kept, joined, streamed = 0, 0, 0, 0


def complain(text):
    global bad
    bad += 1
    print(text)


class Net(builder.Net):
    """What makes `between`, and what reads it: chains of windows and element-wise operators, sums with what was before."""

    def __init__(self, rng):
        super().__init__(rng=rng)
        self.c = int(rng.choice([3, 8, 16]))
        self.size = [int(rng.integers(40, 90)), int(rng.integers(7, 20))]

    def window(self, x, k=3, **attrs):
        return self.conv(x, self.c, self.c, k, bias=.1, scale=1, **attrs)

    def chain(self, x, n):
        for _ in range(n):
            kind = self.rng.choice(['conv', 'wide', 'relu', 'skip', 'pool', 'double', 'half', 'point'], p=[.3, .1, .1, .15, .1, .1, .05, .1])
            if kind == 'conv': x = self.window(x, pads=[1] * 4)
            if kind == 'wide': x = self.window(x, 3, pads=[2] * 4, dilations=[2, 2])
            if kind == 'point': x = self.window(x, 1)
            if kind == 'relu': x = self.op('LeakyRelu', x, alpha=.1)
            if kind == 'skip': x = self.op('Add', x, self.window(x, pads=[1] * 4))
            if kind == 'pool': x = self.op('AveragePool', x, kernel_shape=[3, 3], pads=[1] * 4)
            if kind == 'half' and min(self.size) > 12:
                x, self.size = self.window(x, pads=[1] * 4, strides=[2, 2]), [(s + 1) // 2 for s in self.size]
            if kind == 'double' and max(self.size) < 100:
                x, self.size = self.op('Resize', x, '', self.const([1, 1, 2, 2]), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'), [2 * s for s in self.size]
        return x

    def build(self):
        first = list(self.size)
        between = self.chain('x', int(self.rng.integers(1, 4)))
        if between == 'x': between = self.window('x', pads=[1] * 4)
        made = list(self.size)
        y = self.chain(self.window(between, pads=[1] * 4), int(self.rng.integers(0, 4)))
        if self.rng.random() < .4 and self.size == made: y = self.op('Add', y, between)
        self.op('Relu' if self.rng.random() < .3 else 'Identity', y, out='y', name='last')
        self.inputs = [builder.value('x', [1, self.c, *first])]
        self.output('y', [1, self.c, *self.size])
        self.opset = int(self.rng.choice([13, 17]))
        return self.model(), between, (made[0], self.size[0])


for number in range(rounds):
    rng = np.random.default_rng([seed, number])
    net = Net(rng)
    m, between, extents = net.build()
    onnx.save(m, f'{d}/m.onnx')
    feeds = {'x': rng.normal(0, 1, input_extents(m)).astype('f4')}
    want = outputs(f'{d}/m.onnx', feeds)[0]
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
        ops = [n.op_type for n in nodes(t.graph)]
        if 'SequenceAt' in ops: kept += 1
        else: joined += 1
        streamed += 'SequenceAt' in ops and 'stream' in forms
        got = outputs(f'{d}/t.onnx', feeds)[0]
        if got.shape != want.shape or np.abs(got - want).max() > 2e-6 * np.ptp(want): complain(f'{what}: off by {np.abs(got - want).max()} of {np.ptp(want)}')
        subprocess.run([tool, 'run', f'{d}/t.onnx', '--input', f'x={d}/x.npy', '--output-dir', f'{d}/got', '-q'], check=True)
        got = np.load(f'{d}/got/0.npy')
        if got.shape != want.shape or np.abs(got - want).max() > 1e-5 * np.ptp(want): complain(f'{what}: in the engine off by {np.abs(got - want).max()}')
print(f'{kept} in pieces ({streamed} of streams), {joined} joined')
if rounds >= 20 and (kept < rounds // 2 or streamed == 0 or joined == 0): complain('too few of a kind')
sys.exit(bad > 0)
