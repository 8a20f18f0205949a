"""Cross-check of shape inference against two independent oracles.

    shapes.py --tool build/tests/dump_shapes models MODELS_JSON [--big]    third-party models listed in a models.json
    shapes.py --tool build/tests/dump_shapes files MODEL.onnx...           any models; dynamic dims are bound
    shapes.py --tool build/tests/dump_shapes sweep [--seed S] [--n N]      random attributes, one operator at a time
    shapes.py --tool build/tests/dump_shapes hostile [--seed S] [--n N]    the same with extreme numbers: no crash

For each model the types, dims and known contents that dump_shapes prints are compared with onnx.shape_inference
(with data propagation) and with a run of ONNX Runtime (no optimisation) that has every intermediate value as an
output. A dim that we leave unknown is no error, but counts against the coverage, which is printed.
Exit status 1 when anything disagrees.
"""
import argparse, json, os, subprocess, sys
import numpy as np, onnx, onnxruntime as ort
from onnx import helper, shape_inference

ort.set_default_logger_severity(4)
DTYPES = {1: 'float32', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32', 7: 'int64', 9: 'bool',
          10: 'float16', 11: 'float64', 12: 'uint32', 13: 'uint64', 16: 'bfloat16'}
CHUNK = 64  # outputs of one run: bounds memory


class Shape:
    def __init__(self, line):
        self.name, self.dtype, dims, flags, *rest = line.split('\t')
        self.dims = None if dims == '*' else [] if dims == '-' else [None if d == '?' else int(d) for d in dims.split(',')]
        self.const, self.fixed, self.tensor = 'c' in flags, 'i' in flags, 'n' not in flags
        self.known = None
        if rest:
            self.known = [int(x) for x in rest[0][1:].split(',')] if rest[0] != '=' else []

    def full(self):
        return self.dims is not None and None not in self.dims


def dump(tool, path, shapes):
    args = [tool, path, '--known']
    for name, dims in shapes.items():
        args += ['--shape', '%s=%s' % (name, ','.join(map(str, dims)))]
    r = subprocess.run(args, capture_output=True, text=True)
    if r.returncode != 0:
        return None, '%d: %s' % (r.returncode, r.stderr.strip())
    return {s.name: s for s in map(Shape, r.stdout.splitlines())}, ''


def bind(model, shapes):
    """Write the given input shapes into the model; returns those that were not static."""
    free = {}
    for i in model.graph.input:
        if i.name not in shapes or not i.type.HasField('tensor_type'):
            continue
        t = i.type.tensor_type
        if not t.HasField('shape') or any(not d.HasField('dim_value') or d.dim_value < 0 for d in t.shape.dim):
            free[i.name] = shapes[i.name]
        t.shape.ClearField('dim')
        for d in shapes[i.name]:
            t.shape.dim.add().dim_value = d
    return free


def stated(model):
    """Shapes that the file itself claims: where it is wrong about an operator nobody can infer, we repeat it."""
    return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in list(model.graph.value_info) + list(model.graph.output)}


def compare(found, name, dims, dtype, who, bad, claims={}):
    s = found.get(name)
    if s is None or not s.tensor or (s.dims is not None and claims.get(name) == s.dims):
        return
    if s.dims is not None and (len(s.dims) != len(dims) or any(a is not None and b is not None and a != b
                                                               for a, b in zip(s.dims, dims))):
        bad.append((name, '%s is %s, %s says %s' % (name, s.dims, who, dims)))
    if dtype and s.dtype not in (dtype, 'unknown') and dtype in DTYPES.values():
        bad.append((name, '%s has type %s, %s says %s' % (name, s.dtype, who, dtype)))


def check_onnx(model, found, bad):
    try:
        m = shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return 0
    n = 0
    for v in list(m.graph.value_info) + list(m.graph.output):
        t = v.type.tensor_type
        if not v.type.HasField('tensor_type') or not t.HasField('shape'):
            continue
        dims = [d.dim_value if d.HasField('dim_value') and d.dim_value >= 0 else None for d in t.shape.dim]
        n += None not in dims
        compare(found, v.name, dims, DTYPES.get(t.elem_type), 'onnx', bad)
    return n


def feed(model, shapes, values):
    rng = np.random.default_rng(7)
    init = {i.name for i in model.graph.initializer}
    out = {}
    for i in model.graph.input:
        if i.name in init:
            continue
        t = i.type.tensor_type
        dims = shapes.get(i.name, [d.dim_value for d in t.shape.dim])
        dt = helper.tensor_dtype_to_np_dtype(t.elem_type)
        if i.name in values:
            out[i.name] = np.array(values[i.name], dt).reshape(dims)
        elif dt.kind == 'f':
            out[i.name] = rng.random(dims).astype(dt)
        elif dt.kind in 'iub':
            out[i.name] = np.ones(dims, dt)
        else:
            return None
    return out


def run_values(model, names, inputs):
    """Actual arrays of the named values, in chunks; stops at the first failure."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    so.intra_op_num_threads = 1
    for at in range(0, len(names), CHUNK):
        part = names[at:at + CHUNK]
        del m.graph.output[:]
        m.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in part)
        sess = ort.InferenceSession(m.SerializeToString(), so, providers=['CPUExecutionProvider'])
        for n, a in zip(part, sess.run(None, inputs)):
            if isinstance(a, np.ndarray):
                yield n, a


def check_ort(model, found, shapes, values, bad):
    inputs = feed(model, shapes, values)
    names = [o for n in model.graph.node for o in n.output if o]
    if inputs is None:
        return 'skipped: string input', {}
    rank, claims = {}, stated(model)
    try:
        for name, a in run_values(model, names, inputs):
            compare(found, name, list(a.shape), str(a.dtype), 'ort', bad, claims)
            rank[name] = list(a.shape)
            k = found[name].known if name in found else None
            if k is not None and (k != [int(x) for x in a.reshape(-1)[:len(k)]] or len(k) != a.size):
                bad.append((name, 'contents of %s known as %s, really %s' % (name, k[:8], a.reshape(-1)[:8])))
    except Exception as e:
        return 'failed: ' + str(e).replace('\n', ' ')[-110:], rank
    return 'ran', rank


def check_model(tool, path, shapes, values, verbose):
    try:
        model = onnx.load(path)
    except Exception as e:
        return None, ["the oracle cannot read it: " + str(e)[:100]]
    free = bind(model, shapes)
    found, why = dump(tool, path, free)
    if found is None:
        return None, ['refused: ' + why]
    by_rule, by_run = [], []
    n_onnx = check_onnx(model, found, by_rule)
    state, ran = check_ort(model, found, shapes, values, by_run)
    bad = [text for name, text in by_rule if name not in ran] + [text for _, text in by_run]  # what really happens wins
    made = [found[o] for n in model.graph.node for o in n.output if o and o in found]
    full = sum(s.full() for s in made)
    if verbose:
        for s in made:
            if not s.full():
                print('    open: %s %s %s' % (s.name, s.dtype, s.dims))
    return (full, len(made), n_onnx, state, sum(s.known is not None for s in made), sum(s.const for s in made)), bad


def report(name, got, bad):
    if got:
        full, n, n_onnx, state, known, const = got
        print('%-32s %5d/%-5d full (onnx %5d) %4d known %4d const  ort %s' % (name, full, n, n_onnx, known, const, state))
    for b in bad[:12]:
        print('    %s: %s' % (name, b))
    return len(bad)


def models(args):
    base = os.path.dirname(args.list)
    full = total = wrong = 0
    os.chdir(base or '.')
    for case in json.load(open(os.path.basename(args.list))):
        if args.only and args.only not in case['name'] or (case['name'].endswith('@big') and not args.big):
            continue
        got, bad = check_model(args.tool, case['file'], case.get('shapes', {}), case.get('values', {}), args.verbose)
        if got is None and case['ort'] != 'ok':
            print('%-32s %s (ort refuses it too)' % (case['name'], bad[0]))
            continue
        wrong += report(case['name'], got, bad)
        if got and case['ort'] == 'ok':
            full += got[0]
            total += got[1]
    print('models: %d of %d values have a full shape (%.2f %%), %d disagreements' % (full, total, 100.0 * full / max(total, 1), wrong))
    return wrong


def free_shapes(path, size):
    """Bindings for inputs with dynamic dims: 2 for the first axis, `size` elsewhere."""
    out = {}
    for i in onnx.load(path, load_external_data=False).graph.input:
        dims = i.type.tensor_type.shape.dim
        if any(not d.HasField('dim_value') for d in dims):
            out[i.name] = [d.dim_value if d.HasField('dim_value') else size if k else 2 for k, d in enumerate(dims)]
    return out


def files(args):
    wrong = full = total = 0
    for path in args.files:
        got, bad = check_model(args.tool, path, free_shapes(path, args.free), {}, args.verbose)
        wrong += report(os.path.basename(path), got, bad)
        if got:
            full += got[0]
            total += got[1]
    print('files: %d of %d values have a full shape (%.2f %%), %d disagreements' % (full, total, 100.0 * full / max(total, 1), wrong))
    return wrong


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--tool', required=True)
    ap.add_argument('-v', '--verbose', action='store_true')
    sub = ap.add_subparsers(dest='what', required=True)
    p = sub.add_parser('models'); p.add_argument('list'); p.add_argument('--big', action='store_true'); p.add_argument('--only')
    p = sub.add_parser('files'); p.add_argument('files', nargs='+')
    p.add_argument('--free', type=int, default=64, help='extent for dynamic dims but the first')
    p = sub.add_parser('sweep'); p.add_argument('--seed', type=int, default=1); p.add_argument('--n', type=int, default=60)
    p.add_argument('--only')
    p = sub.add_parser('hostile'); p.add_argument('--seed', type=int, default=1); p.add_argument('--n', type=int, default=60)
    args = ap.parse_args()
    args.tool = os.path.abspath(args.tool)
    if args.what == 'sweep':
        from shapes_sweep import sweep
        return sweep(args, dump, check_onnx, check_ort)
    if args.what == 'hostile':
        from shapes_sweep import hostile
        return hostile(args, dump)
    return {'models': models, 'files': files}[args.what](args)


if __name__ == '__main__':
    sys.exit(1 if main() else 0)
