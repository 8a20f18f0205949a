#!/usr/bin/env python3
"""Random networks on crops: what `onnx-tile geometry` says must give the bits of the whole input, and is not much too much.

  geometry.py [--tool build/onnx-tile] [--start S] [--seeds N] [-v]        geometry.py --seed S      one again

Each seed makes a network of convolutions (kernels, strides, dilations, uneven and SAME pads), pools (ceil_mode, both ways to count
padding), Resize in all modes, ConvTranspose, Pad in three modes, Slice with steps, DepthToSpace, SpaceToDepth, Transpose,
element-wise operators, skip connections, reductions over channels, one or two inputs, of one to three axes; now and then something that no crop can pass.
The model is unchanged: ONNX Runtime runs it on the whole input, of an odd extent, and on crops of the form that the geometry gives,
for random windows of the output, those at both ends included. Every element must be equal in its bits, but for one in twenty
networks, where the kernels that ONNX Runtime has for a few rows round otherwise (1e-6 of the largest value). Seeds whose geometry names
a barrier are counted; with one row less of each halo some window of most others must differ, or the halo would be too large.
Closes with 'N equal, N rounded, N barred, N not run; N of N differ with one row less'.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
from builder import Net, save  # noqa: E402
from seeds import parse  # noqa: E402

ort.set_default_logger_severity(4)
STEPS = ('conv conv conv dilated strided same max average ceil nearest linear cubic turned pad mirror depth space leaky residual '
         'step crop turn channels concat scale ones').split()
ROUNDING = 1e-6  # of the largest value: ONNX Runtime has kernels of their own for a few rows, which add up in another order
BARRIERS = ('norm', 'pool', 'corners', 'join')


class Grower:
    """A network that grows by steps; `v` has `c` channels and lies at `scale` of the input."""

    def __init__(self, seed):
        self.r = np.random.default_rng([seed, 29])
        self.net = Net(opset=17, rng=self.r)
        self.n = int(self.r.choice([1, 2, 3], p=[.2, .7, .1]))  # axes of the picture, recording or volume
        size = ['h', 'w', 'd'][:self.n]
        self.v, self.c, self.scale = self.net.input('x', [1, 2, *size]), 2, 1.0
        if self.r.random() < .2:
            self.v, self.c = self.net.op('Concat', self.v, self.net.input('guide', [1, 1, *size]), axis=1), 3
        self.log = []

    def int(self, lo, hi):
        return int(self.r.integers(lo, hi + 1))

    def pick(self, items):
        return items[self.int(0, len(items) - 1)]

    def weight(self, *shape):
        return self.net.const(self.r.normal(0, (1 / np.prod(shape[1:])) ** .5, shape))

    def conv(self, k, **attrs):
        co = self.int(1, 4)
        self.v = self.net.op('Conv', self.v, self.weight(co, self.c, *[k] * self.n), kernel_shape=[k] * self.n, **attrs)
        self.c = co

    def some(self, most):
        """Pads, all of their own."""
        return [self.int(0, most) for _ in range(2 * self.n)]

    def padded(self, pads, mode):
        pads = [0, 0, *pads[:self.n], 0, 0, *pads[self.n:]]
        self.v = self.net.op('Pad', self.v, self.net.const(pads, 'i8'), mode=mode)

    def resize(self, mode, **attrs):
        self.v = self.net.op('Resize', self.v, '', self.net.const([1, 1] + [2] * self.n, 'f4'), mode=mode, **attrs)
        self.scale *= 2

    def grow(self):
        kind = self.pick(STEPS) if self.r.random() > .02 else self.pick(BARRIERS)
        if kind in ('depth', 'space', 'turn', 'linear', 'cubic')[:5 if self.n > 2 else 3] and self.n != 2:
            return
        if kind in ('nearest', 'linear', 'cubic', 'turned', 'depth') and self.scale > 1:
            return
        if kind in ('strided', 'same', 'max', 'ceil', 'space', 'step') and self.scale < .2:
            return
        self.log.append(kind)
        getattr(self, 'do_' + kind)()

    def do_conv(self):
        k = self.pick([1, 2, 3, 5])
        self.conv(k, pads=self.some(k - 1))

    def do_dilated(self):
        d = self.int(2, 3)
        self.conv(3, dilations=[d] * self.n, pads=[d] * 2 * self.n)

    def do_strided(self):
        self.conv(3, strides=[2] * self.n, pads=self.some(2))
        self.scale /= 2

    def do_same(self):
        s = self.int(1, 2)
        self.conv(self.int(2, 4), strides=[s] * self.n, auto_pad=self.pick(['SAME_UPPER', 'SAME_LOWER']))
        self.scale /= s

    def do_max(self):
        self.v = self.net.op('MaxPool', self.v, kernel_shape=[3] * self.n, strides=[2] * self.n, pads=[1] * 2 * self.n)
        self.scale /= 2

    def do_average(self):
        self.v = self.net.op('AveragePool', self.v, kernel_shape=[3] * self.n, pads=[1] * 2 * self.n, count_include_pad=self.int(0, 1))

    def do_ceil(self):
        k = self.int(2, 3)
        self.v = self.net.op('MaxPool', self.v, kernel_shape=[k] * self.n, strides=[2] * self.n, ceil_mode=1)
        self.scale /= 2

    def do_nearest(self):
        self.resize('nearest', coordinate_transformation_mode=self.pick(['asymmetric', 'half_pixel']),
                    nearest_mode=self.pick(['floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil']))

    def do_linear(self):
        self.resize('linear', coordinate_transformation_mode=self.pick(['asymmetric', 'half_pixel', 'pytorch_half_pixel']))

    def do_cubic(self):
        self.resize('cubic', coordinate_transformation_mode=self.pick(['asymmetric', 'half_pixel']))

    def do_turned(self):
        k, co = self.int(2, 4), self.int(1, 4)
        self.v = self.net.op('ConvTranspose', self.v, self.weight(self.c, co, *[k] * self.n), kernel_shape=[k] * self.n, strides=[2] * self.n,
                             pads=self.some(1), output_padding=[int(k == 3)] * self.n)
        self.c, self.scale = co, self.scale * 2

    def do_pad(self):
        self.padded(self.some(2), mode=self.pick(['edge', 'constant']))

    def do_mirror(self):
        self.padded(self.some(3), mode='reflect')

    def do_depth(self):
        self.conv(1)
        self.v = self.net.op('Conv', self.v, self.weight(4 * self.c, self.c, 1, 1))
        self.v = self.net.op('DepthToSpace', self.v, blocksize=2, mode=self.pick(['DCR', 'CRD']))
        self.scale *= 2

    def do_space(self):
        """On an extent that 2 does not divide the model does not run: such seeds are counted."""
        self.v, self.c, self.scale = self.net.op('SpaceToDepth', self.v, blocksize=2), self.c * 4, self.scale / 2

    def do_leaky(self):
        self.v = self.net.op('LeakyRelu', self.v, alpha=.3)

    def do_residual(self):
        other = self.net.op('Conv', self.v, self.weight(self.c, self.c, *[3] * self.n), pads=[1] * 2 * self.n)
        self.v = self.net.op('Add', other, self.v)

    def do_step(self):
        start, step = self.int(0, 2), self.int(1, 2)
        for axis in range(2, 2 + self.n):
            self.v = self.net.op('Slice', self.v, *(self.net.const([k], 'i8') for k in (start, 2 ** 62, axis, step)))
        self.scale /= step

    def do_crop(self):
        args = [self.int(0, 2) for _ in range(self.n)], [-self.int(1, 2) for _ in range(self.n)], list(range(2, 2 + self.n))
        self.v = self.net.op('Slice', self.v, *(self.net.const(a, 'i8') for a in args))

    def do_turn(self):
        """Rows are the last axis for one operator."""
        turned = self.net.op('Transpose', self.v, perm=[0, 1, 3, 2])
        self.v = turned
        self.conv(3, pads=[2, 0, 0, 1])
        self.v = self.net.op('Transpose', self.v, perm=[0, 1, 3, 2])

    def do_channels(self):
        weight = self.net.op('Softmax', self.v, axis=1)
        self.v = self.net.op('ReduceSum', self.net.op('Mul', weight, self.v), self.net.const([1], 'i8'), keepdims=1)
        self.c = 1

    def do_concat(self):
        other = self.net.op('Conv', self.v, self.weight(2, self.c, *[3] * self.n), dilations=[2] * self.n, pads=[2] * 2 * self.n)
        self.v, self.c = self.net.op('Concat', self.v, other, axis=1), self.c + 2

    def do_ones(self):
        """Ones of the size of the maps, through a convolution whose border shows in them."""
        ones = self.net.op('ConstantOfShape', self.net.op('Shape', self.v), value=helper.make_tensor('one', TensorProto.FLOAT, [1], [1]))
        if self.r.random() < .5:
            row = self.net.op('ReduceMean', self.net.const(self.r.normal(1, 1, [1, self.c] + [1] * self.n)), axes=[0])
            ones = self.net.op('Expand', row, self.net.op('Shape', self.v))
        ones = self.net.op('Conv', ones, self.weight(1, self.c, *[5] * self.n), pads=[2] * 2 * self.n)
        self.v, self.c = self.net.op('Concat', self.v, ones, axis=1), self.c + 1

    def do_scale(self):
        """A level of a U-Net: down by 2, something, and up, joined with what was before."""
        down = self.net.op('MaxPool', self.v, kernel_shape=[2] * self.n, strides=[2] * self.n, ceil_mode=1)
        down = self.net.op('Conv', down, self.weight(self.c, self.c, *[3] * self.n), pads=[1] * 2 * self.n)
        up = self.net.op('Resize', down, '', self.net.const([1, 1] + [2] * self.n, 'f4'),
                         mode=self.pick(['nearest', 'linear'][:1 if self.n > 2 else 2]))
        shape = self.net.op('Slice', self.net.op('Shape', self.v), *(self.net.const([k], 'i8') for k in (2, 2 + self.n)))
        ends = [self.net.const([0] * self.n, 'i8'), shape, self.net.const(list(range(2, 2 + self.n)), 'i8')]
        self.v, self.c = self.net.op('Concat', self.v, self.net.op('Slice', up, *ends), axis=1), 2 * self.c

    def do_norm(self):
        self.v = self.net.op('InstanceNormalization', self.v, self.net.uniform([self.c]), self.net.uniform([self.c]))

    def do_pool(self):
        self.v = self.net.op('Mul', self.v, self.net.op('GlobalAveragePool', self.v))

    def do_corners(self):
        self.resize('linear', coordinate_transformation_mode='align_corners')

    def do_join(self):
        self.v = self.net.op('Concat', self.v, self.v, axis=1 + self.n)

    def model(self):
        if self.n == 1:  # else nothing says which of the axes are channels
            self.do_conv()
        for _ in range(self.int(3, 8)):
            self.grow()
        self.net.op('LeakyRelu', self.v, alpha=.5, out='y')
        self.net.output('y', [1, None, *[None] * self.n])
        return self.net.model()


def crop(axis, lo, hi, extent):
    """The crop of the input for rows [lo, hi) of the output, and where it begins in the output: the rule of docs/large.md."""
    num, den, align, offset = (axis[k] for k in ('num', 'den', 'align', 'offset'))
    begin = max(0, lo * den // num - offset - axis['halo_lo'])
    end = min(extent, -(-hi * den // num) - offset + axis['halo_hi'])
    least = min(axis['least'], extent)
    begin = min(begin, extent - least) // align * align
    end = max(end, begin + least)
    end = min(extent, end + (extent - end) % align)
    return begin, end, lo - begin * num // den


def window(rng, rows, least=1):
    size = int(rng.integers(least, max(least, rows // 3) + 1))
    lo = int(rng.choice([0, rows - size, rng.integers(0, rows - size + 1)]))
    return lo, lo + size


def compare(run, feeds, whole, axes, wins, less=0):
    """The windows of the output, cut from the crop that they need: 0 for the same bits, else the difference as a part of the largest value."""
    places, at = {name: [slice(None)] * x.ndim for name, x in feeds.items()}, [slice(None)] * whole.ndim
    want = [slice(None)] * whole.ndim
    for number, (lo, hi) in enumerate(wins):
        for name, x in feeds.items():
            a = dict(axes[name][number])
            a['halo_lo'], a['halo_hi'] = a['halo_lo'] - less, a['halo_hi'] - less
            begin, end, first = crop(a, lo, hi, x.shape[a['input_axis']])
            places[name][a['input_axis']] = slice(begin, end)
        at[a['axis']], want[a['axis']] = slice(first, first + hi - lo), slice(lo, hi)
    part = run({name: np.ascontiguousarray(x[tuple(places[name])]) for name, x in feeds.items()})[tuple(at)]
    right = np.ascontiguousarray(whole[tuple(want)])
    if part.shape != right.shape:
        return 1
    if np.array_equal(part.view('u4'), right.view('u4')):
        return 0
    return max(float(np.max(np.abs(part - right)) / np.max(np.abs(whole))), 1e-12)


def check(seed, tool, folder, verbose):
    """'equal', 'rounded', 'barred' or 'not run', and whether one row less differs; what is wrong as an exception."""
    g = Grower(seed)
    m = g.model()
    path = save(m, os.path.join(folder, 'm.onnx'))
    rng = np.random.default_rng([seed, 31])
    size = [int(rng.integers(60, 90) if g.n > 2 else rng.integers(90, 200)) for _ in range(g.n)]
    feeds = {i.name: rng.normal(0, 1, (1, i.type.tensor_type.shape.dim[1].dim_value, *size)).astype('f4') for i in m.graph.input}
    so = ort.SessionOptions()
    so.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(m.SerializeToString(), so, providers=['CPUExecutionProvider'])
        whole = session.run(None, feeds)[0]
    except Exception as why:
        if verbose:
            print(seed, g.log, str(why)[:200])
        return 'not run', None
    if min(whole.shape[2:]) < 3:
        return 'not run', None
    bound = rng.random() < .6  # else the geometry is that of every extent
    shapes = [] if not bound else [f'--shape={name}={",".join(map(str, x.shape))}' for name, x in feeds.items()]
    said = subprocess.run([tool, 'geometry', path, '--json', *shapes], capture_output=True, text=True, timeout=60)
    if said.returncode != 0:
        if not bound and 'has dynamic dimensions' in said.stderr:
            return 'not run', None  # no guessed size fits
        raise AssertionError(f'{g.log}: {said.stderr.strip()}')
    pairs = {p['input']: p for p in json.loads(said.stdout)['outputs']}
    barriers = [b for p in pairs.values() for b in p['barriers']]
    if barriers:
        loses = 'pad' in g.log and all('ONNX Runtime merges the Pad' in b['why'] for b in barriers)
        if not loses and not set(g.log) & set(BARRIERS):
            raise AssertionError(f'{g.log}: {[p["barriers"] for p in pairs.values()]}')
        return 'barred', None
    if set(g.log) & set(BARRIERS):
        raise AssertionError(f'{g.log}: no barrier is named')
    axes = {name: p['axes'] for name, p in pairs.items()}
    axes = {name: axes.get(name, next(iter(axes.values()))) for name in feeds}  # an input that nothing reads

    def run(parts):
        return session.run(None, parts)[0]
    if not all(a['any_extent'] or bound for p in axes.values() for a in p):
        return 'barred', None
    how = 'equal'
    for _ in range(8):
        wins = [window(rng, rows) for rows in whole.shape[2:]]
        apart = compare(run, feeds, whole, axes, wins)
        if apart > 0:
            how = 'rounded'
        if apart > ROUNDING:
            raise AssertionError(f'{g.log} {size} -> {whole.shape[2:]}: {wins} differs; {axes["x"]}')
    differs = False
    if not bound:
        return how, None
    for _ in range(40):
        wins = [window(rng, rows) for rows in whole.shape[2:]]
        try:
            differs |= compare(run, feeds, whole, axes, wins, less=1) > ROUNDING
        except Exception:
            differs = True
        if differs:
            break
    return how, differs


def main():
    args, seeds = parse(__doc__, 200)
    count, wrong, less = {'equal': 0, 'rounded': 0, 'barred': 0, 'not run': 0}, 0, []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            try:
                how, differs = check(seed, args.tool, folder, args.v)
                count[how] += 1
                if differs is not None:
                    less.append(differs)
            except Exception as why:
                wrong += 1
                print(f'seed {seed}: {type(why).__name__}: {str(why)[:900]}')
    print(', '.join(f'{n} {how}' for how, n in count.items()) + f'; {sum(less)} of {len(less)} differ with one row less')
    enough = sum(less) * 3 >= len(less) * 2 or len(less) < 10
    if not enough:
        print('too many are equal with one row less: the halos are too large')
    rounded = count['rounded'] * 20 > count['equal'] + 20
    if rounded:
        print('too many are rounded otherwise')
    return wrong > 0 or not enough or rounded


if __name__ == '__main__':
    sys.exit(main())
