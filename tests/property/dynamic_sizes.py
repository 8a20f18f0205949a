#!/usr/bin/env python3
"""Random networks with dynamic dimensions: one tiled file must give what the original gives, at every size.

  dynamic_sizes.py [--tool build/onnx-tile] [--any|--norms|--crops] [--form stream] [--force] [--start S] [--seeds N] [--keep DIR] [-v]
  dynamic_sizes.py --seed S      one again

Each seed makes a network as streams.py does, frees its batch, its spatial extents or all of them, tiles it for a design size
(--keep-dynamic --design ..., with --force every second time or each time), and runs original and result in ONNX Runtime at sizes that have nothing to do
with the design: odd ones, such of a few rows, several samples, large ones (not such whose values take 2 GB). Every output must have the original's shape and be within
1e-5 of its largest value, or twice what optimisations change in the original's; a size that the original refuses, the result must refuse as well. With --form stream, regions that carry rows from step to step are asked for. With --norms the networks normalise
over maps and reduce them, which is done in parts: within 5e-4. What is further off has to be as near to float64 as the original is, or twice as far. What the file states of dynamic dimensions must
still be free in the result. With --crops the networks cut rows off both ends of maps, as residual blocks without padding do. Each seed runs in a process of its own. With --any the graphs are those of random_graphs.py, of every operator that it knows, with some dimensions
of their inputs free; what ONNX Runtime does not compute alike with and without optimisations is not compared. Closes with 'N passed, N failed; N regions, N hand rows on; N sizes, N refused by both'.
"""
import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import graph_gen
from comparing import apart, difference, differences, nmse
from streams import OWN, Net, session


ORIGINAL = 'the original'
MOST_BYTES = 2e9  # of all values of a network together: sessions of four runs fit a machine of 16 GB
NORMS = ('InstanceNormalization', 'GroupNormalization', 'LayerNormalization')
NORM_NMSE = 1e-6


def free_up(model, net):
    """Dynamic dimensions: of the input as names, of outputs and values inside by leaving them out. Returns which axes are dynamic."""
    rank = net.rank + 2
    axes = net.pick([[0], [2], list(range(2, rank)), list(range(2, rank)), [0] + list(range(2, rank)), [0] + list(range(2, rank)), [rank - 1]])
    for value in list(model.graph.input) + list(model.graph.output):
        for k, d in enumerate(value.type.tensor_type.shape.dim):
            if value.name != 'x' or k in axes:
                d.Clear()
                if value.name == 'x':
                    d.dim_param = f'd{k}'
    return axes


def sizes(net, axes, batch):
    """Shapes of x: the design first."""
    shape = [batch] + net.shape['x']
    yield list(shape)
    for kind in range(6):
        s = list(shape)
        for k in axes:
            if k == 0:
                s[k] = int(net.rng.integers(1, 9))
            elif kind < 2:
                s[k] = int(net.rng.integers(1, 16))
            elif kind < 5:
                s[k] = int(net.rng.integers(16, 70 if k == 2 else 20))
            else:
                s[k] = int(net.rng.integers(80, 200) if k == 2 else net.rng.integers(8, 20))
        yield s


def run(s, names, feeds):
    try:
        return s.run(names, feeds), ''
    except Exception as e:  # noqa: BLE001 onnxruntime has no base class of its own
        return None, str(e)


def compare(want, got, names, bound, both):
    """'' or what differs. both: the original without and with optimisations, which results may differ by twice; or nothing. (Seed 1000676: 6.3e-5 from
    float64 without, 7.4e-5 with; the result 6.3e-5, so 9.5e-5 from the latter.)"""
    for name, a, b, *own in zip(names, want, got, *both):
        if a.shape != b.shape:
            return f'output {name} is {b.shape}, not {a.shape}'
        rounding = OWN * np.abs(own[0] - own[1]).max() if a.size and len(own) == 2 else 0
        if a.size and not np.abs(a - b).max() <= max(rounding, bound * max(1, np.abs(a).max())):
            return f'output {name} differs by {np.abs(a - b).max()}'
    return ''


def image_case(seed, kind=Net):
    """(model, design {input: shape}, shapes [{input: shape}], options)."""
    net = kind(seed).grow(4 + seed % 14)
    if not any(v != 'x' for v in net.live):
        return None
    model = net.model()
    axes = free_up(model, net)
    batch = int(net.rng.integers(2, 9)) if 0 in axes else 1
    shapes = [{'x': s} for s in sizes(net, axes, batch)]
    per_element = 4 * sum(np.prod(s) for s in net.shape.values()) / np.prod(net.shape['x'])
    shapes = [s for k, s in enumerate(shapes) if k == 0 or np.prod(s['x']) * per_element <= MOST_BYTES]
    return model, shapes[0], shapes, net.pick(['4K', '16K', '64K'])


def any_case(seed):
    """The same for a graph of any operators. Free axes with equal names have equal extents."""
    opset = int(np.random.default_rng([seed, 5]).choice([13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]))
    g = graph_gen.grow(seed, opset=11 + seed % 2 if seed % 7 in (3, 4) else opset)
    model = g.model(dynamic={v.name for v in g.inputs})
    names = {i.name for i in model.graph.input}
    inputs = [v for v in g.inputs if v.name in names]
    rng = np.random.default_rng([seed, 6])
    tied, chance = rng.random() < 0.8, rng.choice([0.3, 0.7, 1.0])
    free = {}  # name -> extent at the design
    dims = {}  # input -> [name or extent]
    for v in inputs:
        dims[v.name] = []
        for k, n in enumerate(v.shape):
            name = f'e{n}' if tied else f'{v.name}_{k}'
            dims[v.name].append(name if name in free or rng.random() < chance else n)
            if dims[v.name][-1] is name:
                free[name] = n
    for i in model.graph.input:
        for d, to in zip(i.type.tensor_type.shape.dim, dims.get(i.name, [])):
            d.Clear()
            if isinstance(to, str):
                d.dim_param = to
            else:
                d.dim_value = to
    if not free:
        return None
    shapes = []
    for kind in range(6):
        at = {name: n if kind == 0 or rng.random() < 0.3 else int(rng.integers(1, 3 * n + 4)) for name, n in sorted(free.items())}
        shapes.append({v: [at.get(d, d) for d in dims[v]] for v in dims})
    return model, {v: s for v, s in shapes[0].items() if any(isinstance(d, str) for d in dims[v])}, shapes, ['1K', '4K', '16K', '64K'][seed % 4]


class NormNet(Net):
    """A network that normalises over maps, and weighs channels by what it reduces maps to."""

    def squeeze(self, x):
        """A number for each channel, of the maps, that weighs them."""
        axes = list(range(2, 2 + self.rank))
        op = self.pick(['GlobalAveragePool', 'GlobalMaxPool', 'ReduceMean', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceL2', 'ReduceSumSquare'])
        small = [self.shape[x][0]] + [1] * self.rank
        v = self.add(op, [x], small, **({} if op.startswith('Global') else {'axes': axes, 'keepdims': 1}))
        if op.endswith(('L2', 'Square')):  # they grow with the maps: a gate that is shut leaves nothing but rounding to normalise
            v = self.add('Softsign', [v], small)
        gate = self.add('Sigmoid', [self.add('Conv', [v, self.weight(small[0], small[0], *[1] * self.rank)], small)], small)
        return self.add('Mul', [x, gate], self.shape[x])

    def normalise(self, x):
        """By channels, or by groups of them as exporters write those: reshapes around a normalisation by channels."""
        c = self.shape[x][0]
        groups = self.pick([g for g in (1, 2, 4) if c % g == 0]) if self.rng.random() < 0.5 else c
        of = lambda n: [self.const(np.float32(self.rng.uniform(0.5, 1.5, n))), self.const(np.float32(self.rng.uniform(-1, 1, n)))]
        if groups == c:
            return self.add('InstanceNormalization', [x] + of(c), self.shape[x])
        maps = self.add('Reshape', [x, self.const(np.array([0, groups, -1]))], [groups, c // groups * int(np.prod(self.shape[x][1:]))])
        normal = self.add('InstanceNormalization', [maps] + of(groups), self.shape[maps])
        shape = self.add('Shape', [x], [])
        back = self.add('Reshape', [normal, shape], self.shape[x])
        self.live = [v for v in self.live if v not in (maps, normal, shape)]
        for op in ('Mul', 'Add'):
            back = self.add(op, [back, self.weight(c, *[1] * self.rank)], self.shape[x])
        return back

    def grow(self, steps):
        x, shrinks = 'x', lambda v: min(self.shape[v][1:]) == 1
        for _ in range(steps):
            y = self.pick([self.conv, self.conv, self.conv, self.normalise, self.normalise, self.squeeze, self.point, self.pool, self.up, self.join])(x)
            x = y if y and not shrinks(y) and self.rng.random() < 0.9 else self.pick([v for v in self.live[-4:] if not shrinks(v)] or ['x'])
        return self


class CropNet(Net):
    """A network that cuts rows off both ends of maps, some beside convolutions that leave as few."""

    def slice(self, x, less, step=None):
        """x without less[0] in front and less[1] at the end of each axis; None where hardly anything is left."""
        step = step or [1] * self.rank
        extents = [(n - sum(less) + s - 1) // s for n, s in zip(self.shape[x][1:], step)]
        if min(extents) < 2:
            return None
        axes = list(range(2, 2 + self.rank))
        ends = [-less[1] if less[1] else 2**63 - 1] * self.rank
        lists = [[less[0]] * self.rank, ends, axes] + ([step] if max(step) > 1 else [])
        return self.add('Slice', [x] + [self.const(np.array(v)) for v in lists], [self.shape[x][0]] + extents)

    def crop(self, x):
        return self.slice(x, [int(self.rng.integers(4)), int(self.rng.integers(4))], self.pick([None, None, [2] * self.rank, [3] + [1] * (self.rank - 1)]))

    def residual(self, x):
        """Two convolutions without padding, and what they leave of x."""
        c, n = self.shape[x][0], self.pick([1, 2])
        inner, y = [e - 2 * n for e in self.shape[x][1:]], x
        skip = self.slice(x, [n, n])
        for k in range(n if skip else 0):
            y = self.add('Conv', [y, self.weight(c, c, *[3] * self.rank)], [c] + [e - 2 * k - 2 for e in self.shape[x][1:]], kernel_shape=[3] * self.rank)
        return self.add('Add', [skip, y], [c] + inner) if skip else None

    def grow(self, steps):
        x = 'x'
        for _ in range(steps):
            y = self.pick([self.conv, self.conv, self.crop, self.residual, self.point, self.pool, self.up, self.up, self.join])(x)
            x = y if y and self.rng.random() < 0.9 else self.pick(self.live[-4:])
        return self


def feeds_of(model, shapes, rng):
    kinds = {i.name: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in model.graph.input}
    some = lambda shape, t: rng.standard_normal(shape).astype(t) if t.kind == 'f' else rng.integers(0, 2 if t.kind == 'b' else 8, shape).astype(t)
    return {v: some(s, np.dtype(kinds[v])) for v, s in shapes.items()}


def joins_nothing(model, feeds, folder):
    """Does a Concat get an operand without elements that does not fit the others? ONNX Runtime (1.31) makes room for it, and never writes there."""
    joins, probe = [n for n in model.graph.node if n.op_type == 'Concat'], onnx.ModelProto()
    known = {t.name: list(t.dims) for t in model.graph.initializer} | {v: list(x.shape) for v, x in feeds.items()}
    made = sorted({v for n in joins for v in n.input} - set(known))
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.helper.make_empty_tensor_value_info(v) for v in made)
    path = os.path.join(folder, 'probe.onnx')
    onnx.save(probe, path)
    got, _ = run(session(path, False), made, feeds) if made else ([], '')
    if got is None:
        return False
    known |= {v: list(x.shape) for v, x in zip(made, got)}

    def fits(n):
        a, *others = [known[v] for v in n.input]
        axis = n.attribute[0].i % len(a)
        return all(a[:axis] + a[axis + 1:] == b[:axis] + b[axis + 1:] for b in others)

    return any(not fits(n) for n in joins)


def taps(x, kernel, pads, strides, dilations, fill):
    """(place in the kernel, what all windows of x have there)."""
    rank = len(kernel)
    pads, strides, dilations = pads or [0] * 2 * rank, strides or [1] * rank, dilations or [1] * rank
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])], constant_values=fill)
    extents = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(x.shape[2:], kernel, dilations, strides)]
    for at in np.ndindex(*kernel):
        yield at, x[(..., *[slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(at, dilations, extents, strides)])]


class Conv(OpRun):
    """With MaxPool below, obvious ones: onnx's own pools have other extents where pads differ by axis."""
    op_domain = ''

    def _run(self, x, w, b=None, pads=None, strides=None, dilations=None, group=None, **_):
        assert group in (None, 1)
        y = sum(np.tensordot(w[(..., *at)], part, ([1], [1])) for at, part in taps(x, w.shape[2:], pads, strides, dilations, 0))
        return (np.moveaxis(y, 0, 1) if b is None else np.moveaxis(y, 0, 1) + b.reshape([-1] + [1] * (x.ndim - 2)),)


class MaxPool(OpRun):
    op_domain = ''

    def _run(self, x, kernel_shape=None, pads=None, strides=None, dilations=None, **_):
        return (np.max([part for _, part in taps(x, kernel_shape, pads, strides, dilations, -np.inf)], axis=0),)


def exact_outputs(model, outputs, feeds):
    """What the model gives in float64."""
    double = onnx.ModelProto()
    double.CopyFrom(model)
    for t in double.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t).astype('f8'), t.name))
    for v in (*double.graph.input, *double.graph.output, *double.graph.value_info):
        v.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return ReferenceEvaluator(double, new_ops=[Conv, MaxPool]).run(outputs, {v: x.astype('f8') for v, x in feeds.items()})


def is_as_exact(model, outputs, feeds, both, got):
    """Is what the result gives no further from float64 than twice what the original is, with or without optimisations (both)? (Seed 1000222 of those that
    normalise: 8.6e-4, where the original is 9.0e-4 and they are 8e-4 apart.)"""
    exact = exact_outputs(model, outputs, feeds)
    if any(a.shape != e.shape for a, e in zip(got, exact, strict=True)):
        return False
    off = lambda x: np.array([np.abs(a - e).max() if a.size else 0 for a, e in zip(x, exact)])
    return bool((off(got) <= OWN * np.max([off(x) for x in both], axis=0)).all())


def is_rounding(model, wanted, got):
    """Does a normalisation of numbers that hardly differ make that much of rounding? ONNX Runtime's variance is a difference of float32 sums: 4e-9 off
    from float64 where tiles differed by 3e-9 (seed 1000046)."""
    normalises = any(n.op_type in NORMS for n in model.graph.node)
    off = lambda x, y: x.dtype.kind == 'f' and x.shape == y.shape and nmse(x, y) <= NORM_NMSE
    return normalises and all(not difference(x, y) or off(x, y) for x, y in zip(wanted, got, strict=True))


CASES = {'images': image_case, 'norms': lambda seed: image_case(seed, NormNet), 'crops': lambda seed: image_case(seed, CropNet), 'any': any_case}
BOUND = {'images': 1e-5, 'crops': 1e-5, 'norms': 5e-4}  # of a million numbers ONNX Runtime's own normalisation is off by 1e-4: it adds up in float32


def check(say, tool, seed, keep, kind, form=None, force=False):
    """(what went wrong or '', regions, those that hand rows on, sizes run, sizes refused by both). say: told which model runs."""
    case, general = CASES[kind](seed), kind == 'any'
    if case is None:
        return '', 0, 0, 0, 0
    model, design, shapes, l2 = case
    folder = os.path.join(keep, f'free_{seed}')
    os.makedirs(folder, exist_ok=True)
    original, tiled = os.path.join(folder, 'model.onnx'), os.path.join(folder, 'tiled.onnx')
    onnx.save(model, original)
    say(ORIGINAL)
    try:
        a = session(original, False), session(original, True)
    except Exception:  # noqa: BLE001 as in run(): a model that ONNX Runtime does not load
        return '', 0, 0, 0, 0
    command = [tool, original, '-o', tiled, '--target', 'cpu-generic', '--l2', l2, '-q', '--keep-dynamic', '--goal', 'memory' if seed % 3 else 'time',
               '--max-slowdown', '1000']
    command += [w for v, s in design.items() for w in ('--design', f'{v}=' + ','.join(map(str, s)))] + ['--force'] * (force or seed % 2)
    command += ['--form', form] if form else []
    say('the tool')
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        return f'{shlex.join(command)}: exit {p.returncode}: {p.stderr.strip()[-300:]}', 0, 0, 0, 0
    written = onnx.load(tiled)
    if not general:
        onnx.checker.check_model(tiled, full_check=True)
    if [i.SerializeToString() for i in written.graph.input] != [i.SerializeToString() for i in model.graph.input]:
        return f'the inputs are no longer what they were: {shlex.join(command)}', 0, 0, 0, 0
    outputs, ran, refused = [o.name for o in model.graph.output], 0, 0
    names = {w for w in str(written).split('"') if w.startswith('tile/r')}
    regions, streams = len({w.split('/')[1] for w in names}), len({w.split('/')[1] for w in names if w.split('/')[2] == 'rows'})
    say(f'the result of {shlex.join(command)}')
    b = (session(tiled, False), session(tiled, True)) if regions else ()
    for k, at in enumerate(shapes if regions else ()):
        feeds = feeds_of(model, at, np.random.default_rng([seed, k]))
        say(ORIGINAL)
        want = [run(x, outputs, feeds) for x in a]
        say(f'the result of {shlex.join(command)} at {at}')
        both = [w for w, _ in want if w is not None]
        if general and len(both) == 2 and differences(outputs, *both):
            continue  # the runtime disagrees with itself
        for optimise in (0, 1):
            (wanted, no), (got, neither) = want[optimise], run(b[optimise], outputs, feeds)
            ran += 1
            refused += wanted is None and got is None
            why = ''
            if wanted is not None and got is not None:
                why = differences(outputs, wanted, got) if general else compare(wanted, got, outputs, BOUND[kind], both if optimise else [])
            elif (wanted is None) != (got is None) and (got is None or both == []):
                why = f'only one refuses: {no or neither}'
            if why and general and got is not None and is_rounding(model, wanted, got):
                continue
            if why and not general and got is not None and wanted is not None and is_as_exact(model, outputs, feeds, both, got):
                continue
            if why and not (general and joins_nothing(model, feeds, folder)):
                return f'at {at}{"" if optimise else " (no optimisation)"}: {why}: {shlex.join(command)}', regions, streams, ran, refused
    subprocess.run(['rm', '-r', folder], check=True)
    return '', regions, streams, ran, refused


def check_apart(*words):
    """check() in a process of its own. Where ONNX Runtime crashes on the original there is nothing to compare with."""
    found, at, signal = apart(lambda say: check(say, *words))
    if signal:
        found = ('' if at == ORIGINAL else f'signal {signal} in {at}', 0, 0, 0, 0)
    return *found, signal != 0 and at == ORIGINAL


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--start', type=int, default=1)
    p.add_argument('--seeds', type=int, default=100)
    p.add_argument('--seed', type=int)
    p.add_argument('--keep')
    p.add_argument('--any', action='store_true')
    p.add_argument('--norms', action='store_true')
    p.add_argument('--crops', action='store_true')
    p.add_argument('--form', choices=['stream', 'loop-peeled'])
    p.add_argument('--force', action='store_true')
    p.add_argument('-v', action='store_true')
    o = p.parse_args()
    keep, kind = o.keep or tempfile.mkdtemp(), 'any' if o.any else 'norms' if o.norms else 'crops' if o.crops else 'images'
    failed, crashed = 0, 0
    totals = [0, 0, 0, 0]
    seeds = [o.seed] if o.seed is not None else range(o.start, o.start + o.seeds)
    for seed in seeds:
        why, *counts, crashes = check_apart(os.path.abspath(o.tool), seed, keep, kind, o.form, o.force)
        crashed += crashes
        totals = [a + b for a, b in zip(totals, counts)]
        failed += why != ''
        if why or o.v:
            print(f'seed {seed}: {why or "ok"}, {counts[0]} regions', flush=True)
    print(f'free sizes: {len(seeds) - failed} passed, {failed} failed; {totals[0]} regions, {totals[1]} hand rows on; {totals[2]} sizes, {totals[3]} refused by both'
          + f'; {crashed} crash ONNX Runtime before they are tiled' * (crashed > 0))
    return 1 if failed or (10 if o.any else 2) * totals[0] < len(seeds) else 0


if __name__ == '__main__':
    sys.exit(main())
