#!/usr/bin/env python3
"""Random networks with normalisations and global pools, in passes over crops: what `onnx-tile passes` writes must give the whole.

  passes.py [--tool build/onnx-tile] [--start S] [--seeds N] [-v]        passes.py --seed S      one again

The networks of geometry.py, with InstanceNormalization, GroupNormalization (as a node, and as exporters write it), normalisations that
are written out, global pools, reductions over pixels and channels, gates, and pooled values that are spread over the maps again: one
behind the other, beside each other, in branches. Each is run as a user of plan.json would (tests/models/passing.py), in ONNX Runtime,
with chunks of two sizes, every other one with values that passes write, and compared with the whole. The difference may be 1e-6 of the range; more where the whole itself is that far off
the result in float64 (long sums in float32, deep networks), to which passes must be about as near, or nearer. Closes with 'N right, N as exact,
N refused, N not run'.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'models')]
import geometry  # noqa: E402
import passing  # noqa: E402
from builder import save  # noqa: E402
from seeds import parse  # noqa: E402

GLOBAL = 'norm groups group_op written moments pool gate largest squeeze context both length deviation'.split()
MORE = 2  # times what the whole is off


class Grower(geometry.Grower):
    """Steps that need all pixels, among others."""

    def grow(self):
        if self.r.random() < .6:
            super().grow()
            return
        kind = self.pick(GLOBAL)
        self.log.append(kind)
        getattr(self, 'do_' + kind)()

    @property
    def pixels(self):
        return list(range(2, 2 + self.n))

    def mean(self, v, axes=None):
        return self.net.op('ReduceMean', v, axes=axes or self.pixels, keepdims=1)

    def do_groups(self):
        """As exporters write it, with one number a channel behind."""
        self.conv(1)
        groups = 2 if self.c % 2 == 0 else 1
        v = self.net.op('Reshape', self.v, self.net.const([0, groups, -1], 'i8'))
        v = self.net.op('InstanceNormalization', v, self.net.const([1] * groups), self.net.const([0] * groups))
        v = self.net.op('Reshape', v, self.net.op('Shape', self.v))
        v = self.net.op('Mul', v, self.net.const(self.r.normal(1, .3, [self.c] + [1] * self.n)))
        self.v = self.net.op('Add', v, self.net.const(self.r.normal(0, .3, [self.c] + [1] * self.n)))

    def do_group_op(self):
        groups = 2 if self.c % 2 == 0 else 1
        v = self.net.op('MeanVarianceNormalization', self.v, axes=self.pixels if groups == 2 else [1, *self.pixels])
        self.v = self.net.op('Mul', v, self.net.const([.7]))

    def do_written(self):
        """Mean, difference, mean of its square."""
        away = self.net.op('Sub', self.v, self.mean(self.v))
        root = self.net.op('Sqrt', self.net.op('Add', self.mean(self.net.op('Mul', away, away)), self.net.const([1e-5])))
        self.v = self.net.op('Div', away, root)

    def do_moments(self):
        """Mean of squares less the square of the mean."""
        mean = self.mean(self.v)
        square = self.mean(self.net.op('Mul', self.v, self.v))
        variance = self.net.op('Sub', square, self.net.op('Mul', mean, mean))
        root = self.net.op('Sqrt', self.net.op('Add', self.net.op('Abs', variance), self.net.const([.1])))
        self.v = self.net.op('Div', self.net.op('Sub', self.v, mean), root)

    def do_gate(self):
        v = self.net.op('Conv', self.net.op('GlobalAveragePool', self.v), self.weight(self.c, self.c, *[1] * self.n))
        self.v = self.net.op('Mul', self.v, self.net.op('Sigmoid', v))

    def do_squeeze(self):
        """Without the axes that are reduced, through a product, and back."""
        v = self.net.op('ReduceMean', self.v, axes=self.pixels, keepdims=0)
        v = self.net.op('MatMul', v, self.weight(self.c, self.c))
        shape = self.net.const([0, self.c] + [1] * self.n, 'i8')
        self.v = self.net.op('Mul', self.v, self.net.op('Sigmoid', self.net.op('Reshape', v, shape)))

    def do_largest(self):
        op = self.pick(['GlobalMaxPool', 'ReduceMax', 'ReduceMin'])
        v = self.net.op(op, self.v) if op == 'GlobalMaxPool' else self.net.op(op, self.v, axes=self.pixels, keepdims=1)
        self.v = self.net.op('Sub', self.v, v)

    def do_context(self):
        """A pooled branch that is spread over the maps and joined with them."""
        v = self.net.op('Conv', self.net.op('GlobalAveragePool', self.v), self.weight(1, self.c, *[1] * self.n))
        like = self.net.op('Slice', self.net.op('Shape', self.v), self.net.const([2], 'i8'), self.net.const([2 + self.n], 'i8'))
        shape = self.net.op('Concat', self.net.const([1, 1], 'i8'), like, axis=0)
        if self.r.random() < .5 or self.n > 2:
            v = self.net.op('Expand', v, shape)
        else:
            v = self.net.op('Resize', v, '', '', shape, mode=self.pick(['nearest', 'linear']))
        self.v, self.c = self.net.op('Concat', self.v, v, axis=1), self.c + 1

    def do_both(self):
        """Two of one depth, at two scales, one behind a branch of convolutions."""
        up = self.v
        v = self.net.op('Conv', self.v, self.weight(self.c, self.c, *[3] * self.n), strides=[2] * self.n, pads=[1] * 2 * self.n)
        v = self.net.op('GlobalAveragePool', v)
        w = self.net.op('InstanceNormalization', up, self.net.uniform([self.c]), self.net.uniform([self.c]))
        self.v = self.net.op('Add', w, v)

    def do_length(self):
        v = self.net.op('ReduceL2', self.v, axes=self.pixels, keepdims=1)
        self.v = self.net.op('Div', self.v, self.net.op('Add', self.net.op('Mul', v, self.net.const([.02])), self.net.const([.5])))

    def do_deviation(self):
        """Over channels too."""
        v = self.mean(self.net.op('Abs', self.v), [1, *self.pixels])
        self.v = self.net.op('Div', self.v, self.net.op('Add', v, self.net.const([.1])))

    def model(self):
        m = super().model()
        free = [v for v in (*m.graph.input, *m.graph.output)]
        for v in free:  # two samples now and then
            v.type.tensor_type.shape.dim[0].dim_param = 'n'
        return m


def whole_of(path, feeds):
    return passing.session(path).run(None, feeds)[0]


def exact_of(tool, path, feeds, folder):
    """The whole in float64, by the reference kernels of the native engine."""
    m, wide = onnx.load(path), os.path.join(folder, 'wide.onnx')

    def widen(t):
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype('f8'), t.name))
    for t in m.graph.initializer:
        # of Resize, whose scales are float32 always
        if not any(n.op_type == 'Resize' and t.name in n.input for n in m.graph.node):
            widen(t)
    for n in m.graph.node:
        for a in n.attribute:
            if a.name == 'value':
                widen(a.t)
            elif n.op_type == 'Cast' and a.name == 'to' and a.i == onnx.TensorProto.FLOAT:
                a.i = onnx.TensorProto.DOUBLE
    for v in (*m.graph.input, *m.graph.output):
        v.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    save(m, wide)
    given = []
    for name, x in feeds.items():
        np.save(os.path.join(folder, name + '.npy'), x.astype('f8'))
        given += ['--input', f'{name}={os.path.join(folder, name)}.npy']
    subprocess.run([tool, 'run', wide, *given, '--output-dir', folder, '--reference', '-q'], check=True, timeout=300)
    return np.load(os.path.join(folder, '0.npy'))


def check(seed, tool, folder, verbose):
    """'right', 'as exact', 'refused' or 'not run'; what is wrong as an exception."""
    g = Grower(seed)
    m = g.model()
    path = save(m, os.path.join(folder, 'm.onnx'))
    rng = np.random.default_rng([seed, 37])
    size = [int(rng.integers(50, 70) if g.n > 2 else rng.integers(60, 140)) for _ in range(g.n)]
    feeds = {i.name: rng.normal(.3, 1, (1, i.type.tensor_type.shape.dim[1].dim_value, *size)).astype('f4')
             for i in m.graph.input}
    if rng.random() < .3 and 'context' not in g.log:  # of a batch of 2
        feeds = {n: np.concatenate([x, x[..., ::-1] * np.float32(.5)]) for n, x in feeds.items()}
    try:
        whole = whole_of(path, feeds)
    except Exception as why:
        if verbose:
            print(seed, g.log, str(why)[:200])
        return 'not run'
    if min(whole.shape[2:]) < 3 or not np.isfinite(whole).all():
        return 'not run'
    shapes = [f'--shape={name}={",".join(map(str, x.shape))}' for name, x in feeds.items()]
    out = os.path.join(folder, f'passes{seed}')
    store = ['never', 'always'][seed % 2]
    said = subprocess.run([tool, 'passes', path, '-o', out, '-q', '--store', store, *shapes], capture_output=True, text=True, timeout=60)
    if said.returncode != 0:
        if set(g.log) & {'corners', 'join'} and 'cannot be made of passes: node ' in said.stderr:
            return 'refused'
        if {'pad', 'ceil'} <= set(g.log) and '(MaxPool), data-dependent: ONNX Runtime merges the Pad' in said.stderr:
            return 'refused'
        raise AssertionError(f'{g.log}: {said.stderr.strip()}')
    spread, made = float(np.ptp(whole)) or 1.0, []
    for chunk in (int(rng.integers(20, 40)), int(rng.integers(40, 200))):
        y = passing.Passes(out, feeds, chunk).run()
        if y.shape != whole.shape or not np.isfinite(y).all():
            raise AssertionError(f'{g.log} {size}: shape {y.shape}, not {whole.shape}, or not finite')
        made.append(y.astype('f8'))

    def apart(what):
        return max(float(np.abs(y - what).max()) / spread for y in made)
    if apart(whole) <= passing.TOLERANCE:
        return 'right'
    exact = exact_of(tool, path, feeds, folder)
    own = float(np.abs(exact - whole).max()) / spread
    if apart(exact) > max(passing.TOLERANCE, MORE * own):
        raise AssertionError(f'{g.log} {size}: {apart(whole):.1e} of the range from the whole, {apart(exact):.1e} from the exact result, '
                             f'the whole {own:.1e}')
    return 'as exact'


def main():
    args, seeds = parse(__doc__, 200)
    count, wrong = {'right': 0, 'as exact': 0, 'refused': 0, 'not run': 0}, 0
    ort.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            try:
                count[check(seed, args.tool, folder, args.v)] += 1
            except Exception as why:
                wrong += 1
                print(f'seed {seed}: {type(why).__name__}: {str(why)[:900]}')
    few = args.seed is None and len(seeds) >= 40 and count['right'] < len(seeds) // 3
    print(', '.join(f'{n} {what}' for what, n in count.items()))
    sys.exit(wrong > 0 or few)


if __name__ == '__main__':
    main()
