"""Passes over crops as their plan.json says: what a user writes in any language, and the comparison with the whole model."""
import itertools
import json
import os

import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(4)
TOLERANCE = 1e-6  # of the range


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def crop_rows(a, lo, hi, extent):
    """Rows of the input for rows [lo, hi) of a value (docs/large.md, "The rule")."""
    num, den, align = a['num'], a['den'], a['align']
    begin = max(0, lo * den // num - a['offset'] - a['halo_lo'])
    end = min(extent, -(-hi * den // num) - a['offset'] + a['halo_hi'])
    least = min(a['least'], extent)
    begin = begin // align * align
    end += (extent - end) % align
    if end - begin < least:
        end = min(extent, begin + least)
        end += (extent - end) % align
        begin = max(0, min(begin, end - least)) // align * align
    return begin, end


class Passes:
    """The models of a folder on whole inputs x, by name, in chunks of so many rows of the first input that is cut."""

    def __init__(self, folder, x, chunk):
        with open(os.path.join(folder, 'plan.json'), encoding='utf-8') as f:
            self.plan = json.load(f)
        self.folder, self.x, self.chunk, self.known, self.crops = folder, dict(x), chunk, {}, 0

    def begin(self, model):
        """Of a model: values by the inputs that it reads."""
        self.pairs = {}
        for p in self.plan['outputs']:
            if p['axes'] and p['input'] in model['inputs']:
                self.pairs.setdefault(p['name'], {})[p['input']] = p['axes']

    def grid(self):
        """Rows of each chunk of the first input, along each of its axes that are cut."""
        axes = {}
        for by_input in self.pairs.values():
            for name, found in by_input.items():
                for a in found:
                    axes.setdefault((name, a['input_axis']), a)
        first = next(name for name, _ in axes)
        self.axes = sorted(axis for name, axis in axes if name == first)
        extents = [self.x[first].shape[a] for a in self.axes]
        return itertools.product(*[[(lo, min(lo + self.chunk, n), n) for lo in range(0, n, self.chunk)] for n in extents])

    def rows(self, name, chunk):
        """[lo, hi) of a value, along each axis, that belong to a chunk: each row to one."""
        found, out = next(iter(self.pairs[name].values())), {}
        for a in found:
            lo, hi, extent = chunk[self.axes.index(a['input_axis'])]
            made = a['output_extent']
            at = [min(r * a['extent'] // extent * a['num'] // a['den'], made) if r < extent else made for r in (lo, hi)]
            out[a['axis']] = tuple(at)
        return out

    def widen(self, hull):
        """Crops of inputs that meet in a value have to give the same rows of it. Whether one was widened."""
        before = dict(hull)
        for by_input in self.pairs.values():
            for axis in {a['axis'] for axes in by_input.values() for a in axes}:
                met = [(n, a) for n, axes in by_input.items() for a in axes if a['axis'] == axis]
                known = [(n, a) for n, a in met if (n, a['input_axis']) in hull]
                if not known:
                    continue
                lo = min(hull[n, a['input_axis']][0] * a['num'] // a['den'] for n, a in known)
                left = min((a['extent'] - hull[n, a['input_axis']][1]) * a['num'] // a['den'] for n, a in known)
                for n, a in met:
                    crop = [rows * a['den'] // a['num'] // a['align'] * a['align'] for rows in (lo, left)]
                    old = hull.get((n, a['input_axis']), (a['extent'], 0))
                    hull[n, a['input_axis']] = min(old[0], crop[0]), max(old[1], a['extent'] - crop[1])
        return hull != before

    def feed(self, names, owned):
        """Crops of the inputs that hold what the owned rows of values need, and where these begin in the values of the crop."""
        hull = {}
        for value, rows in owned.items():
            for name, axes in self.pairs[value].items():
                for a in axes:
                    b = crop_rows(a, *rows[a['axis']], self.x[name].shape[a['input_axis']])
                    old = hull.get((name, a['input_axis']), b)
                    hull[name, a['input_axis']] = min(b[0], old[0]), max(b[1], old[1])
        while self.widen(hull):
            pass
        feeds = {}
        for name, array in self.x.items():
            if name in names:
                feeds[name] = np.ascontiguousarray(array[tuple(slice(*hull.get((name, k), (0, n))) for k, n in enumerate(array.shape))])
        feeds.update({n: v for n, v in self.known.items() if n in names})
        places = {}
        for value, rows in owned.items():
            for name, axes in self.pairs[value].items():
                for a in axes:
                    begin, end = hull[name, a['input_axis']]
                    made = a['output_extent'] - (a['extent'] - (end - begin)) * a['num'] // a['den']
                    places[value, a['axis']] = (begin * a['num'] // a['den'], made)
        self.crops += 1
        return feeds, places

    def measure(self, number, model):
        """Run a pass over all chunks: what it hands out is put together."""
        self.begin(model)
        wanted = [s for s in self.plan['statistics'] if s['pass'] == number]
        stored = {s['value']: hollow(s['shape'], s['type']) for s in self.plan['stored'] if s['pass'] == number}
        s0, parts = session(os.path.join(self.folder, model['model'])), {s['name']: [] for s in wanted}
        ranks = {i.name: (len(i.shape), i.type) for i in s0.get_inputs()}
        outputs = [o.name for o in s0.get_outputs()]
        for chunk in self.grid():
            owned = {v: self.rows(v, chunk) for v in [s['value'] for s in wanted] + list(stored)}
            owned = {v: r for v, r in owned.items() if all(lo < hi for lo, hi in r.values())}
            if not owned:
                continue
            feeds, places = self.feed(model['inputs'], owned)
            for s in wanted:
                for o in s['owned']:
                    rank, of_type = ranks[o['input']]
                    if s['value'] in owned:
                        begin, made = places[s['value'], o['axis']]
                        lo, hi = owned[s['value']][o['axis']]
                    else:  # of this value the crop holds rows that others own
                        continue
                    mask = np.zeros(made, bool)
                    mask[lo - begin:hi - begin] = True
                    mask = mask.astype('f8' if of_type == 'tensor(double)' else bool)
                    feeds[o['input']] = mask.reshape([made if k == o['axis'] else 1 for k in range(rank)])
            absent = [s for s in wanted if s['value'] not in owned]
            run = [o for o in outputs if not any(o.startswith(s['name'] + '.') for s in absent)]
            for s in absent:
                for o in s['owned']:
                    feeds[o['input']] = np.zeros([1] * ranks[o['input']][0], bool)
            got = dict(zip(run, s0.run(run, {n: feeds[n] for n in ranks})))
            for v, array in stored.items():
                if v in owned:
                    put(array, got[v], owned[v], {axis: places[v, axis][0] for axis in owned[v]})
            for s in wanted:
                if s['value'] in owned:
                    parts[s['name']].append({o[len(s['name']) + 1:]: a.ravel() for o, a in got.items() if o.startswith(s['name'] + '.')})
        for s in wanted:
            self.known[s['name']] = joined(s['kind'], parts[s['name']])
        self.x.update(stored)

    def run(self, output=None):
        """The output of the whole."""
        *passes, final = self.plan['passes']
        for k, model in enumerate(passes):
            self.measure(k + 1, model)
        s, y = session(os.path.join(self.folder, final['model'])), None
        output = output or s.get_outputs()[0].name
        self.begin(final)
        for chunk in self.grid():
            rows = self.rows(output, chunk)
            if any(lo >= hi for lo, hi in rows.values()):
                continue
            feeds, places = self.feed(final['inputs'], {output: rows})
            part, = s.run([output], feeds)
            if y is None:
                shape = list(part.shape)
                for a in next(iter(self.pairs[output].values())):
                    shape[a['axis']] = a['output_extent']
                y = np.full(shape, np.nan, part.dtype)
            put(y, part, rows, {axis: places[output, axis][0] for axis in rows})
        return y


def hollow(shape, dtype):
    """An array in which rows that nobody writes show."""
    return np.full(shape, np.nan if np.dtype(dtype).kind == 'f' else 99, dtype)


def put(whole, part, rows, begins):
    """The rows of a part, which begins at `begins`, into the whole."""
    at, cut = [slice(None)] * whole.ndim, [slice(None)] * whole.ndim
    for axis, (lo, hi) in rows.items():
        at[axis], cut[axis] = slice(lo, hi), slice(lo - begins[axis], hi - begins[axis])
    whole[tuple(at)] = part[tuple(cut)]


def joined(kind, parts):
    """Parts put together, as the next models take it."""
    if kind in ('max', 'min', 'sum'):
        together = {'max': np.max, 'min': np.min, 'sum': np.sum}[kind]([p[kind] for p in parts], axis=0)
        return together.reshape(-1, 1)
    n = np.stack([p['n'] for p in parts])
    means = np.stack([p['mean'] for p in parts])
    mean = (n * means).sum(0) / n.sum(0)
    if kind == 'mean':
        return mean.reshape(-1, 1)
    m2 = np.stack([p['m2'] for p in parts]).sum(0) + (n * (means - mean) ** 2).sum(0)
    return np.stack([mean, m2 / n.sum(0)], -1).reshape(-1, 1)


def difference(folder, model, x, chunk, output=None):
    """Largest difference from the whole model, of the range of its result."""
    s = session(model)
    name = output or s.get_outputs()[0].name
    whole, = s.run([name], x)
    y = Passes(folder, x, chunk).run(name)
    spread = float(np.ptp(whole.astype('f8'))) or 1.0
    return float(np.abs(y.astype('f8') - whole).max()) / spread
