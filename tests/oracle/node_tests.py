"""The node tests of the onnx package against the engine.

    node_tests.py --tool build/onnx-tile [--quick] [--op NAME]... [--only GLOB]... [--fast] [--list]

Every test is a model, inputs, and the outputs that the standard's reference code computes for them. The model goes to a file, the inputs
to .npy files (.pb for types that NumPy does not have), `onnx-tile run --reference` runs it, and its outputs are compared as onnx's own
runner does (a few units in the last place of the largest output are allowed everywhere). Inputs that are no tensors are made inside
the model: a sequence from tensors by SequenceConstruct, an optional by Optional.

Closes with one line per operator and `N passed, N failed, N skipped`. Skipped is what the engine refuses with exit 1: an operator that it
does not have (and that is not in include/ops.def either), random numbers, or a test about strings or complex numbers. Exit status 1 when a test fails, or none passes.
"""
import argparse, collections, fnmatch, os, re, subprocess, sys, tempfile, warnings
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

warnings.simplefilter('ignore')
with warnings.catch_warnings():
    import ml_dtypes
    from onnx.backend.test.loader import load_model_tests

T = TensorProto
PLAIN = {T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.UINT32, T.UINT64, T.BFLOAT16,
         T.FLOAT8E4M3FN, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2, T.FLOAT8E5M2FNUZ, T.FLOAT8E8M0, T.INT4, T.UINT4, T.INT2, T.UINT2, T.FLOAT4E2M1}
OPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'include', 'ops.def')
PER_OP = 6  # tests of an operator that --quick runs
SECONDS = 60
LAST_PLACES = 4  # of the largest output, besides the tolerances of onnx's runner


# ---- what a model is about ----

def graphs(g):
    yield g
    for n in g.node:
        for a in n.attribute:
            for sub in ([a.g] if a.HasField('g') else []) + list(a.graphs):
                yield from graphs(sub)


def tensor_types(t):
    kind = t.WhichOneof('value')
    if kind == 'tensor_type': return {t.tensor_type.elem_type}
    if kind in ('sequence_type', 'optional_type'): return tensor_types(getattr(t, kind).elem_type)
    return {T.UNDEFINED}


def exotic(model):
    """Does the model name an element type that the engine does not hold?"""
    types = set()
    for g in graphs(model.graph):
        for v in list(g.input) + list(g.output) + list(g.value_info): types |= tensor_types(v.type)
        for t in g.initializer: types.add(t.data_type)
        for n in g.node:
            for a in n.attribute:
                if a.type == onnx.AttributeProto.TENSOR: types.add(a.t.data_type)
                if a.type in (onnx.AttributeProto.STRINGS, onnx.AttributeProto.STRING) and n.op_type == 'Constant': types.add(T.STRING)
                if a.name in ('to', 'dtype', 'output_dtype') and n.op_type != 'SequenceEmpty': types.add(a.i)
    return bool(types - PLAIN - {T.UNDEFINED})


def operator_of(tests):
    """Test name -> operator; a function's expansion counts for the function."""
    single = {t.name: t.model.graph.node[0].op_type for t in tests if len(t.model.graph.node) == 1}
    out = {}
    for t in tests:
        base = t.name.split('_expanded')[0]
        out[t.name] = single.get(base) or single.get(t.name) or t.model.graph.node[-1].op_type
    return out


# ---- inputs ----

def array(a):
    """Data of a test: NumPy's, a number, or a TensorProto."""
    return numpy_helper.to_array(a) if isinstance(a, TensorProto) else np.asarray(a)


def save(path, a):
    a = array(a)
    if a.dtype.isbuiltin == 1 and a.dtype.kind in 'fiub' or a.dtype == ml_dtypes.bfloat16:
        np.save(path + '.npy', a)
        return path + '.npy'
    with open(path + '.pb', 'wb') as f: f.write(numpy_helper.from_array(a).SerializeToString())
    return path + '.pb'


def tensor_input(name, a):
    a = array(a)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)


def replace_input(model, value, data):
    """Make a sequence or an optional inside the model. Returns [(name, array)] to give instead."""
    g, kind, name = model.graph, value.type.WhichOneof('value'), value.name
    optional = kind == 'optional_type'
    inner = value.type.optional_type.elem_type if optional else value.type
    made, given, nodes = name + '_element' if optional else name, [], []
    for k, v in enumerate(g.input):
        if v.name == name: del g.input[k]; break
    if data is not None and isinstance(data, (list, tuple)):
        given = [('%s_%d' % (name, k), array(a)) for k, a in enumerate(data)]
        element = next(iter(tensor_types(inner)))
        nodes.append(helper.make_node('SequenceConstruct', [n for n, _ in given], [made]) if given else
                     helper.make_node('SequenceEmpty', [], [made], dtype=element))
    elif data is not None:
        given = [(made, array(data))]
    if optional:
        nodes.append(helper.make_node('Optional', [made], [name]) if data is not None else
                     helper.make_node('Optional', [], [name], type=inner))
    g.input.extend(tensor_input(n, a) for n, a in given)
    rest = list(g.node)
    del g.node[:]
    g.node.extend(nodes + rest)
    return given


def prepare(model, inputs, folder):
    """Write the model and its inputs; the tool's arguments."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    args = []
    for value, data in zip(list(model.graph.input), inputs):
        plain = value.type.WhichOneof('value') == 'tensor_type'
        for name, a in [(value.name, data)] if plain else replace_input(model, value, data):
            args += ['--input', '%s=%s' % (name, save('%s/in%d' % (folder, len(args)), a))]
    with open(folder + '/m.onnx', 'wb') as f: f.write(model.SerializeToString())
    return [folder + '/m.onnx'] + args


# ---- outputs ----

def load(path, want):
    a = np.load(path)
    if want.dtype.kind == 'V' and a.dtype.kind in 'iu': return a.astype(want.dtype)  # integers below a byte
    return a.view(want.dtype) if a.dtype.kind == 'V' and a.dtype.itemsize == want.dtype.itemsize else a


def compare(got, want, rtol, atol):
    if got.shape != want.shape: return 'shape %s, not %s' % (list(got.shape), list(want.shape))
    if got.dtype != want.dtype: return 'type %s, not %s' % (got.dtype, want.dtype)
    if want.dtype.name == 'bfloat16': rtol, got, want = max(rtol, 2 ** -6), got.astype('f4'), want.astype('f4')
    if want.dtype.name.startswith(('float8', 'float4')):
        return '' if np.array_equal(got.astype('f4'), want.astype('f4'), equal_nan=True) else 'other contents'
    if want.dtype.kind == 'f' and want.size:  # near 0 the expected numbers are rounding errors of larger ones
        top = float(np.max(np.abs(want), where=np.isfinite(want), initial=0))
        atol = max(atol, LAST_PLACES * float(np.finfo(want.dtype).eps) * top)
    if want.dtype.kind == 'V': return '' if got.tobytes() == want.tobytes() else 'other contents'
    try: np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    except AssertionError as e: return ' '.join(str(e).split())[:200]
    return ''


def check_outputs(folder, wanted, rtol, atol):
    for k, want in enumerate(wanted):
        if want is None: continue
        listed = isinstance(want, (list, tuple))
        files = [('%s/%d-%d.npy' % (folder, k, j), w) for j, w in enumerate(want)] if listed else [('%s/%d.npy' % (folder, k), want)]
        if listed and os.path.exists('%s/%d-%d.npy' % (folder, k, len(want))): return 'output %d: more than %d elements' % (k, len(want))
        for path, w in files:
            if not os.path.exists(path): return 'output %d: %s is missing' % (k, os.path.basename(path))
            w = array(w)
            why = compare(load(path, w), w, rtol, atol)
            if why: return 'output %d: %s' % (k, why)
    return ''


# ---- running ----

def refused(line, model, needed):
    """Why the engine may refuse a test with this line; '' when it may not."""
    absent = re.search(r"\(([^()']*)\): the engine does not have this operator( \(domain)?", line)
    if absent: return '' if absent.group(1) in needed and not absent.group(2) else 'operator'
    if 'at random' in line: return 'random'
    return 'type' if exotic(model) else ''

def run(test, tool, needed, options):
    """(verdict, why)"""
    for inputs, wanted in test.data_sets:
        with tempfile.TemporaryDirectory() as folder:
            try: args = prepare(test.model, inputs, folder)
            except (TypeError, ValueError, KeyError, NotImplementedError) as e:
                return ('skip', 'type') if exotic(test.model) else ('fail', 'test not understood: %r' % e)
            try:
                r = subprocess.run([tool, 'run'] + args + ['--output-dir', folder + '/out', '-q'] + options, capture_output=True, text=True,
                                   timeout=SECONDS)
            except subprocess.TimeoutExpired: return 'fail', 'more than %d s' % SECONDS
            if r.returncode:
                why = refused(r.stderr, test.model, needed) if r.returncode == 1 else ''
                return ('skip', why) if why else ('fail', 'exit %d: %s' % (r.returncode, r.stderr.strip()[-300:]))
            if any(isinstance(w, np.ndarray) and w.dtype == object for w in wanted): return 'skip', 'type'
            why = check_outputs(folder + '/out', wanted, test.rtol, test.atol)
            if why: return 'fail', why
    return 'pass', ''


def choose(tests, a, operator):
    taken, out = collections.Counter(), []
    for t in tests:
        op = operator[t.name]
        if a.op and op not in a.op: continue
        if a.only and not any(fnmatch.fnmatch(t.name, g) for g in a.only): continue
        if a.quick and ('_expanded' in t.name or taken[op] >= PER_OP): continue
        taken[op] += 1
        out.append(t)
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tool', required=True)
    ap.add_argument('--quick', action='store_true', help='at most %d tests of each operator, no expanded functions' % PER_OP)
    ap.add_argument('--op', action='append', help='only this operator; repeatable')
    ap.add_argument('--only', action='append', help='only tests whose name matches; repeatable')
    ap.add_argument('--fast', action='store_true', help='a second run, with the fast kernels')
    ap.add_argument('--list', action='store_true', help='print every verdict')
    a = ap.parse_args()
    tests = load_model_tests(kind='node')
    operator = operator_of(tests)
    needed = set(re.findall(r'^OP\((\w+),', open(OPS).read(), re.M))
    counts, total = collections.defaultdict(collections.Counter), collections.Counter()
    for t in choose(tests, a, operator):
        verdict, why = run(t, a.tool, needed, ['--reference'])
        if verdict == 'pass' and a.fast: verdict, why = run(t, a.tool, needed, [])
        counts[operator[t.name]][verdict] += 1
        total[verdict] += 1
        if verdict == 'fail' or a.list: print('%s %s: %s' % (verdict, t.name, why), flush=True)
    for op in sorted(counts):
        c = counts[op]
        print('%-28s %4d passed %4d failed %4d skipped' % (op, c['pass'], c['fail'], c['skip']))
    print('%d passed, %d failed, %d skipped' % (total['pass'], total['fail'], total['skip']))
    return 1 if total['fail'] or not total['pass'] else 0


if __name__ == '__main__':
    sys.exit(main())
