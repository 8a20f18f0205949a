"""Slice relations against ONNX Runtime.

For random instances of every operator: run the node whole, ask build/tests/tile_one (a thin shell around
ot_access_axis, ot_access_window, ot_tile_adapt) for random tiles of its output, build each tile as a model of its own
from that answer, run it in ONNX Runtime on the sliced inputs, and compare with the slice of the whole result.

    access_ops.py [--tool build/tests/tile_one] [--seed 1] [-n 40] [--only Conv] [-v]

Cases come from access_cases_*.py next to this file; each has a dict CASES: name -> function(rng) -> Case.
"""
import argparse, glob, importlib, json, os, subprocess, sys, tempfile
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))


class Case:
    """One node; op: as DOMAIN::NAME where it is not of the standard, and out_type the type of what it makes, or a list of types. inputs:
    list of (array, is_const) or None for an omitted operand; attrs as helper.make_node takes them.
    tol: largest |difference| relative to the largest value (0: bit-exact). cut: {axis: True/False} that must be
    accepted / refused; other axes may be either. out_index: output whose axes are cut."""

    def __init__(self, op, opset, inputs, attrs=None, n_out=1, tol=0.0, cut=None, out_index=0, outputs=None, out_type=None):
        self.op, self.opset, self.inputs, self.attrs = op, opset, inputs, attrs or {}
        self.n_out, self.tol, self.cut, self.out_index = n_out, tol, cut or {}, out_index
        self.out_type = out_type
        self.outputs = outputs or [f'o{k}' for k in range(n_out)]


def session(model):
    so = ort.SessionOptions()
    so.log_severity_level = 4
    so.intra_op_num_threads = 1
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), so, providers=['CPUExecutionProvider'])


def build(op, opset, arrays, const, attrs, outputs, types):
    """Model of one node. arrays: list of array or None; const: which are initializers; types: elem types of outputs."""
    names = [f'i{k}' if a is not None else '' for k, a in enumerate(arrays)]
    while names and not names[-1]:
        names.pop()
    domain, _, op = op.rpartition('::')
    node = helper.make_node(op, names, outputs, domain=domain)
    node.attribute.extend(attrs)
    ins = [helper.make_tensor_value_info(f'i{k}', helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
           for k, a in enumerate(arrays) if a is not None and not const[k]]
    inits = [numpy_helper.from_array(a, f'i{k}') for k, a in enumerate(arrays) if a is not None and const[k]]
    outs = [helper.make_tensor_value_info(o, t, None) for o, t in zip(outputs, types) if o]
    graph = helper.make_graph([node], 'g', ins, outs, inits)
    sets = [helper.make_opsetid('', opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def run(model, arrays, const):
    feed = {f'i{k}': a for k, a in enumerate(arrays) if a is not None and not const[k]}
    return session(model).run(None, feed)


def out_types(case, model):
    """Element types of the outputs by ONNX's own inference (ORT needs them stated)."""
    if case.out_type:
        return case.out_type if isinstance(case.out_type, list) else [case.out_type] * len(case.outputs)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=False)
    got = {o.name: o.type.tensor_type.elem_type for o in inferred.graph.output}
    first = next(helper.np_dtype_to_tensor_dtype(np.asarray(i[0]).dtype) for i in case.inputs if i is not None)
    return [got.get(o, 0) or first for o in case.outputs]


def tensor(t):
    dt = helper.tensor_dtype_to_np_dtype(t['dtype'])
    return np.frombuffer(bytes.fromhex(t['hex']), dt).reshape(t['dims']).copy()


def attr(a, originals):
    if a.get('keep'):
        return originals[a['name']]
    for key in ('i', 'f', 'ints', 's'):
        if key in a:
            return helper.make_attribute(a['name'], a[key], attr_type=onnx.AttributeProto.INTS if key == 'ints' else None)
    return helper.make_attribute(a['name'], numpy_helper.from_array(tensor(a['t'])))


def requests(rng, shape, out_index):
    """Tiles: each axis cut into a few random pieces; pairs of axes."""
    out = []
    for ax, e in enumerate(shape):
        if e < 2:
            continue
        n = int(rng.integers(1, min(4, e - 1) + 1))
        cuts = [0] + sorted(rng.choice(np.arange(1, e), n, replace=False).tolist()) + [e]
        out += [[(ax, lo, hi)] for lo, hi in zip(cuts, cuts[1:])]
    axes = [a for a, e in enumerate(shape) if e >= 2]
    for _ in range(4):
        if len(axes) < 2:
            break
        pair = sorted(rng.choice(axes, 2, replace=False).tolist())
        tile = []
        for a in pair:
            lo = int(rng.integers(0, shape[a]))
            tile.append((a, lo, int(rng.integers(lo + 1, shape[a] + 1))))
        out.append(tile)
    out.append([(a, 0, shape[a]) for a in axes[:3]])
    return [r for r in out if r]


def stated(model):
    """Output shapes by ONNX's own strict inference, or the complaint as a string."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as e:
        return str(e).strip().splitlines()[-1][-200:]
    return [[d.dim_value if d.HasField('dim_value') else None for d in o.type.tensor_type.shape.dim]
            for o in inferred.graph.output]


def agrees(shapes, arrays):
    return all(d is None or d == e for s, a in zip(shapes, arrays) for d, e in zip(s, a.shape))


class Mismatch(Exception):
    pass


def check_tile(case, arrays, const, originals, whole, ans, types, clean):
    """Run one tile and compare. Raises Mismatch."""
    parts = list(arrays)
    ins = range(len(arrays))
    for cut in ans['axes']:
        for i in ins:
            ax = cut['in_axis'][i] if i < len(cut['in_axis']) else -1
            if ax < 0 or parts[i] is None or ans['drop'][i]:
                continue
            lo, hi = cut['in'][i]
            if not 0 <= lo <= hi <= arrays[i].shape[ax]:
                raise Mismatch(f'window {lo}:{hi} of input {i} leaves the axis {ax}')
            parts[i] = np.ascontiguousarray(parts[i].take(np.arange(lo, hi), axis=ax))
        if not (cut['made'][0] <= cut['need'][0] and cut['need'][1] <= cut['made'][1]):
            raise Mismatch('made does not contain need')
    if ans['kind'] == 'forward':
        got = [parts[ans['forward']]]
    else:
        is_const = list(const)
        for o in ans['operands']:
            while len(parts) <= o['input']:
                parts.append(None)
                is_const.append(True)
            parts[o['input']] = None if o['omit'] else tensor(o['tensor'])
            is_const[o['input']] = True
        keep = [i for i in range(len(parts)) if i >= len(ans['drop']) or not ans['drop'][i]]
        parts = [parts[i] for i in keep]
        is_const = [is_const[i] for i in keep]
        attrs = [attr(a, originals) for a in ans['attrs']]
        model = build(case.op, case.opset, parts, is_const, attrs, case.outputs, types)
        shapes = stated(model) if clean else []
        if isinstance(shapes, str):
            raise Mismatch('the shape inference of ONNX refuses the tile: ' + shapes)
        try:
            got = run(model, parts, is_const)
        except Exception as e:  # the tile must be legal wherever the whole was
            raise Mismatch('ONNX Runtime refuses the tile: ' + str(e).splitlines()[0][-300:])
        if not agrees(shapes, got):
            raise Mismatch(f'the shape inference of ONNX expects {shapes}, got {[g.shape for g in got]}')
    live = [k for k, o in enumerate(case.outputs) if o]
    for k, g in zip(live, got):
        axes = [c['out_axis'][k] for c in ans['axes']]
        if any(a < 0 for a in axes):
            continue
        want = whole[live.index(k)]
        for c, a in zip(ans['axes'], axes):
            made, need = c['made'], c['need']
            if g.shape[a] != made[1] - made[0]:
                raise Mismatch(f'output {k} has extent {g.shape[a]} on axis {a}, made is {made}')
            g = g.take(np.arange(need[0] - made[0], need[1] - made[0]), axis=a)
            want = want.take(np.arange(*need), axis=a)
        if g.shape != want.shape or g.dtype != want.dtype:
            raise Mismatch(f'output {k}: {g.dtype}{g.shape} instead of {want.dtype}{want.shape}')
        compare(g, want, case.tol, k)


def compare(g, want, tol, k):
    if want.dtype.kind not in 'fc' or tol == 0:
        if not np.array_equal(g, want, equal_nan=want.dtype.kind in 'fc'):
            raise Mismatch(f'output {k} differs, max {np.nanmax(np.abs(g.astype(float) - want.astype(float)))}')
        return
    g, want = g.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(g), np.isfinite(want)):
        raise Mismatch(f'output {k}: NaN or infinity elsewhere')
    m = np.isfinite(want)
    top = max(np.abs(want[m]).max(initial=0), 1e-3)
    err = np.abs(g[m] - want[m]).max(initial=0)
    if err > tol * top:
        raise Mismatch(f'output {k} differs by {err} of {top}')


def check_case(case, tool, rng, tmp, stats):
    arrays = [None if i is None else np.asarray(i[0]) for i in case.inputs]
    const = [True if i is None else bool(i[1]) for i in case.inputs]
    originals = {k: helper.make_attribute(k, v) for k, v in case.attrs.items() if v is not None}
    model = build(case.op, case.opset, arrays, const, originals.values(), case.outputs,
                  [TensorProto.FLOAT] * case.n_out)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=o) for o in case.outputs if o)
    try:
        types = out_types(case, model)
        model = build(case.op, case.opset, arrays, const, originals.values(), case.outputs, types)
        whole = run(model, arrays, const)
    except Exception as e:
        stats['skipped'] += 1
        stats['skip'] = str(e).splitlines()[0][-200:]
        return
    shapes = stated(model)
    clean = '::' not in case.op and not isinstance(shapes, str) and agrees(shapes, whole) # else ONNX and its runtime disagree on the whole, too
    # The true shapes are stated: this is a test of the slice relation, also where inference must give up.
    del model.graph.output[:]
    live = [k for k, o in enumerate(case.outputs) if o]
    model.graph.output.extend(helper.make_tensor_value_info(case.outputs[k], types[k], w.shape) for k, w in zip(live, whole))
    path = os.path.join(tmp, 'case.onnx')
    onnx.save(model, path)
    shape = whole[live.index(case.out_index)].shape
    reqs = requests(rng, shape, case.out_index)
    if not reqs or 0 in shape:
        stats['skipped'] += 1
        return
    text = [','.join(f'{a}={lo}:{hi}' for a, lo, hi in r) for r in reqs]
    p = subprocess.run([tool, path, '0', str(case.out_index)] + text, capture_output=True, text=True)
    if p.returncode != 0:
        raise Mismatch(f'tile_one exits {p.returncode}: {p.stderr.strip()[-400:]}')
    answers = [json.loads(line) for line in p.stdout.splitlines()]
    if len(answers) != len(reqs):
        raise Mismatch('tile_one answered another number of requests')
    for req, ans in zip(reqs, answers):
        if 'refused' in ans:
            stats['refused'] += 1
            reasons = stats['reasons']
            reasons[ans['refused']] = reasons.get(ans['refused'], 0) + 1
            one = any(a == ans['axis'] and hi - lo == 1 for a, lo, hi in req)
            if one and ans['refused'].startswith('a tile would hold one element'):
                continue  # of the axis that scales lie along
            if case.cut.get(ans['axis']) is True:
                raise Mismatch(f'axis {ans["axis"]} refused ({ans["refused"]}) but should be cut')
            continue
        for a, _, _ in req:
            if case.cut.get(a) is False:
                raise Mismatch(f'axis {a} accepted but must be refused')
        try:
            check_tile(case, arrays, const, originals, whole, ans, types, clean)
        except Mismatch as e:
            raise Mismatch(f'tile {req}: {e}\n      answer {ans}') from None
        stats['tiles'] += 1


def describe(case):
    ins = [None if i is None else (i[0].shape if np.asarray(i[0]).size > 16 else np.asarray(i[0]).tolist())
           for i in case.inputs]
    return f'{case.op}-{case.opset} inputs {ins} attrs {case.attrs}'


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--tool', default=os.path.join(os.environ.get('BUILD', 'build'), 'tests', 'tile_one'))
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('-n', type=int, default=40, help='instances of each case')
    ap.add_argument('--only', default='')
    ap.add_argument('-v', action='store_true')
    o = ap.parse_args()
    sys.path.insert(0, HERE)
    sys.modules.setdefault('access_ops', sys.modules[__name__])
    cases = {}
    for f in sorted(glob.glob(os.path.join(HERE, 'access_cases_*.py'))):
        cases.update(importlib.import_module(os.path.basename(f)[:-3]).CASES)
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name, make in cases.items():
            if o.only and o.only not in name:
                continue
            stats = {'tiles': 0, 'refused': 0, 'skipped': 0, 'reasons': {}}
            failed = 0
            for k in range(o.n):
                rng = np.random.default_rng([o.seed, k, *name.encode()])
                case = make(rng)
                try:
                    check_case(case, os.path.abspath(o.tool), rng, tmp, stats)
                except Mismatch as e:
                    failed += 1
                    if failed <= (10 if o.v else 2):
                        print(f'FAIL {name} seed {o.seed} instance {k}: {describe(case)}\n    {e}')
            if stats['tiles'] == 0 and not name.endswith('_refused'):
                failed += 1
                print(f'FAIL {name}: no tile was checked; {stats}')
            bad += failed
            print(f'{"FAIL" if failed else "ok  "} {name:28} tiles {stats["tiles"]:5} refused {stats["refused"]:4} '
                  f'skipped {stats["skipped"]:3}' + (f' {stats["reasons"]} {stats.get("skip", "")}' if o.v else ''))
    print(f'seed {o.seed}: {"FAILED" if bad else "all slice relations agree with ONNX Runtime"}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
