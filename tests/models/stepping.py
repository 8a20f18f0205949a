"""The model of a step, run as its metadata say: what a user writes in any language, and the comparison with the whole model."""
import json

import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(4)


class OtherRows(AssertionError):
    """An output has another shape than that of the whole model."""


def session(path, plain=False):
    """plain: without the runtime's optimisations."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def part(array, axis, lo, hi):
    """Rows [lo, hi), zeros where there are none."""
    index = [slice(None)] * array.ndim
    index[axis] = slice(min(lo, array.shape[axis]), hi)
    rows = array[tuple(index)]
    missing = hi - lo - rows.shape[axis]
    return np.pad(rows, [(0, missing if k == axis else 0) for k in range(array.ndim)])


def run_steps(path, feeds):
    """All finished rows of each output, by name, of all rows in feeds; and the number of steps."""
    s = session(path)
    about = json.loads(s.get_modelmeta().custom_metadata_map['onnx_tile.step'])
    state = {x['from']: np.zeros(x['shape'], x['type']) for x in about['states']}
    rows = {i['name'] for i in about['inputs']}
    rest = {n: a for n, a in feeds.items() if n not in rows}
    named = next(i for i in about['inputs'] if i['name'] == about['input'])
    total, k = feeds[named['name']].shape[named['axis']], about['rows']
    made, steps = {o['name']: [] for o in about['outputs']}, -(-total // k)
    for t in range(steps + about['flush']):
        count = max(0, min(k, total - t * k))
        feed = {i['name']: part(feeds[i['name']], i['axis'], t * i['rows'], (t + 1) * i['rows']) for i in about['inputs']}
        feed.update(state, **rest)
        if about['count']:
            feed[about['count']] = np.array([count])
        got = dict(zip([o.name for o in s.get_outputs()], s.run(None, feed)))
        state = {x['from']: got[x['to']] for x in about['states']}
        for o in about['outputs']:
            lo, hi = got[o['valid']] if o['valid'] else (0, count * o['num'] // o['den'])
            if not 0 <= lo <= o['rows'] or not 0 <= hi <= o['rows']:
                raise AssertionError(f"{o['valid']} says {lo}, {hi} of {o['rows']} rows")
            if hi > lo:
                made[o['name']].append(part(got[o['name']], o['axis'], int(lo), int(hi)))
    axes = {o['name']: o['axis'] for o in about['outputs']}
    return {n: np.concatenate(p, axes[n]) if p else None for n, p in made.items()}, about


def feeds_of(model_session, sizes, seed):
    """Random inputs; sizes: of free dimensions, by name."""
    rng = np.random.default_rng([seed, 7])
    feeds = {}
    for i in model_session.get_inputs():
        shape = [d if isinstance(d, int) else sizes[d] for d in i.shape]
        feeds[i.name] = rng.normal(0, 1, shape).astype('f4') if 'float' in i.type else rng.integers(0, 255, shape).astype(i.type[7:-1])
    return feeds


def compare(model_path, step_path, sizes, seed=0, plain=False):
    """The largest difference of any output, as a share of its largest value; 0: equal in all bits. OtherRows: of another shape.

    plain: the whole model runs without optimisations.
    """
    whole = session(model_path, plain)
    feeds = feeds_of(whole, sizes, seed)
    want = dict(zip([o.name for o in whole.get_outputs()], whole.run(None, feeds)))
    got, about = run_steps(step_path, feeds)
    most = 0.
    for name, rows in got.items():
        shape = None if rows is None else rows.shape
        if shape != want[name].shape:
            raise OtherRows(f'{name} has {shape}, not {want[name].shape}')
        if not np.array_equal(rows, want[name]):
            a, b = rows.astype('f8'), want[name].astype('f8')
            if not np.isfinite(a).all():
                raise AssertionError(f'{name} is not finite')
            most = max(most, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)))
    return most, about
