#!/usr/bin/env bash
# Normalisations and reductions over cut axes: random networks, tiled by force in every form that hands out parts, in ONNX Runtime and the
# engine against float64 arithmetic: no further from it than 1e-6 of the range (half precision: two roundings), or twice as far as the
# untiled model. Recognised forms, --bit-exact.
. "$(dirname "$0")/lib.bash"

cat >"$tmp/split.py" <<'EOF_PY'
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

tool, d, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
print('seed', seed)
bad, verbose = 0, len(sys.argv) > 5


def complain(text):
    global bad
    bad += 1
    print(text)


class Net:
    """One random network: convolutions, normalisations in all forms, activations, squeeze-and-excitation, a skip, an up-sampling."""

    def __init__(self, rng, opset, kinds, half=False, batch=1):
        self.real, self.type = {'bfloat16': ('f4', T.BFLOAT16), True: ('f2', T.FLOAT16), False: ('f4', T.FLOAT)}[half]
        self.rng, self.opset, self.kinds, self.nodes, self.inits, self.n, self.batch = rng, opset, kinds, [], [], 0, batch
        self.c, self.size = int(rng.choice([8, 16])), [int(rng.integers(17, 40)), int(rng.integers(9, 30))]

    def name(self):
        self.n += 1
        return f'v{self.n}'

    def const(self, a, dtype=None):
        n = 'c' + self.name()
        a = np.asarray(a, dtype or self.real)
        self.inits.append(nh.from_array(a, n) if dtype or self.type != T.BFLOAT16 else h.make_tensor(n, T.BFLOAT16, a.shape, a.ravel()))
        return n

    def op(self, op, ins, **attrs):
        o = self.name()
        self.nodes.append(h.make_node(op, ins, [o], name='n_' + o, **attrs))
        return o

    def axes(self, op, x, axes, since=18, **more):
        if self.opset >= since: return self.op(op, [x, self.const(axes, 'i8')], **more)
        return self.op(op, [x], axes=axes, **more)

    def conv(self, x):
        w = self.rng.normal(0, (2 / (9 * self.c)) ** .5, (self.c, self.c, 3, 3))
        return self.op('Conv', [x, self.const(w), self.const(self.rng.normal(0, 1, self.c))], pads=[1] * 4)

    def vec(self, n, shape=()): return self.const(self.rng.uniform(.5, 1.5, n).reshape(*shape) if shape else self.rng.uniform(.5, 1.5, n))

    def norm(self, x, kind):
        c, (hh, ww), g = self.c, self.size, 4
        eps = float(self.rng.choice([1e-5, 1e-6]))
        if kind == 'instance': return self.op('InstanceNormalization', [x, self.vec(c), self.vec(c)], epsilon=eps)
        if kind == 'group': return self.op('GroupNormalization', [x, self.vec(c if self.opset >= 21 else g), self.vec(c if self.opset >= 21 else g)], num_groups=g, epsilon=eps)
        if kind == 'softmax': return self.attend(x)
        if kind in ('mvn', 'mvn maps'):
            return self.op('MeanVarianceNormalization', [x], **({'axes': [1, 2, 3]} if kind == 'mvn' else {'axes': [2, -1]} if self.rng.random() < .5 else {}))
        if kind in ('lp', 'lp pixels'): return self.lp(x, kind == 'lp')
        if kind in ('layer', 'layer maps'):
            axis, over = (1, (c, hh, ww)) if kind == 'layer' else (2, (hh, ww))
            return self.op('LayerNormalization', [x, self.vec(over)] + ([self.vec(over)] if self.rng.random() < .5 else []), axis=axis, epsilon=eps)
        if kind in ('written', 'written groups'): return self.written(x, kind == 'written', eps)
        if kind == 'torch':
            r = self.op('Reshape', [x, self.const([0, g, -1], 'i8')])
            r = self.op('InstanceNormalization', [r, self.const(np.ones(g)), self.const(np.zeros(g))], epsilon=eps)
            r = self.op('Reshape', [r, self.const([self.batch, c, hh, ww], 'i8')])
            return self.op('Add', [self.op('Mul', [r, self.vec(c, (c, 1, 1))]), self.vec(c, (c, 1, 1))])
        reduce = {'excite': 'ReduceMean', 'largest': 'ReduceMax', 'root': 'ReduceL2'}.get(kind)
        s = self.axes(reduce, x, [2, 3]) if reduce else self.op('GlobalAveragePool', [x])
        if kind == 'root': s = self.op('Mul', [s, self.const(.05)])
        s = self.op('Sigmoid', [self.op('Conv', [s, self.const(self.rng.normal(0, .3, (c, c, 1, 1)))])])
        return self.op('Mul', [x, s])

    def attend(self, x):
        """Softmax over the pixels of a few maps; x times their shares."""
        k, (hh, ww) = int(self.rng.choice([1, self.c])), self.size
        s = self.op('Conv', [x, self.const(self.rng.normal(0, .05, (k, self.c, 1, 1)))])
        s = self.op('Softmax', [self.op('Reshape', [s, self.const([self.batch, k, -1], 'i8')])], axis=-1 if self.opset >= 13 else 2)
        s = self.op('Mul', [self.op('Reshape', [s, self.const([self.batch, k, hh, ww], 'i8')]), self.const(hh * ww / 2)])
        return self.op('Add', [x, self.op('Mul', [x, s])])

    def lp(self, x, rows):
        """Columns, or all pixels, of unit length; one channel is zero."""
        c, (hh, ww), p = self.c, self.size, int(self.rng.choice([1, 2]))
        mask = np.ones((c, 1, 1))
        mask[self.rng.integers(c)] = 0
        x = self.op('Mul', [x, self.const(mask)])
        if not rows: x = self.op('Reshape', [x, self.const([self.batch, c, -1], 'i8')])
        y = self.op('LpNormalization', [x], axis=2, p=p)
        if not rows: y = self.op('Reshape', [y, self.const([self.batch, c, hh, ww], 'i8')])
        return self.op('Mul', [y, self.const((hh if rows else hh * ww) ** (1 if p == 1 else .5))])

    def written(self, x, maps, eps):
        """Mean, difference, mean of its square, root, quotient, of each channel or of groups of them."""
        c, rng, axes, to = self.c, self.rng, [2, 3], x
        if not maps:
            deep = rng.random() < .5
            to, axes = self.op('Reshape', [x, self.const([self.batch, 4, c // 4, *self.size] if deep else [self.batch, 4, -1], 'i8')]), [2, 3, 4] if deep else [2]
        d = self.op('Sub', [to, self.axes('ReduceMean', to, axes)])
        v = self.axes('ReduceMean', self.op('Mul', [d, d]) if rng.random() < .5 else self.op('Pow', [d, self.const(2)]), axes)
        s = self.op('Sqrt', [self.op('Add', [v, self.const(eps)])])
        y = self.op('Div', [d, s]) if rng.random() < .5 else self.op('Mul', [d, self.op('Reciprocal', [s])])
        if not maps: y = self.op('Reshape', [y, self.const([self.batch, c, *self.size], 'i8')])
        return self.op('Add', [self.op('Mul', [y, self.vec(c, (c, 1, 1))]), self.vec(c, (c, 1, 1))])

    def build(self):
        brief = self.type == T.BFLOAT16 # arrays of those cannot be handed in: the network's ends are casts
        outside = T.FLOAT if brief else self.type
        x = skip = self.op('Cast', ['x'], to=self.type) if brief else 'x'
        for k in range(int(self.rng.integers(2, 5))):
            x = self.norm(self.conv(x), str(self.rng.choice(self.kinds)))
            if self.rng.random() < .7: x = self.op('Relu', [x])
            if k == 1 and self.rng.random() < .6: x = self.op('Add', [x, skip])
        y = self.op('Cast', [self.conv(x)], to=T.FLOAT) if brief else self.op('Identity', [self.conv(x)])
        dims = [self.batch, self.c, *self.size]
        g = h.make_graph(self.nodes, 'g', [h.make_tensor_value_info('x', outside, dims)], [h.make_tensor_value_info(y, outside, dims)], self.inits)
        return h.make_model(g, opset_imports=[h.make_opsetid('', self.opset)], ir_version=8 if self.opset < 21 else 10), dims


def run(path, x):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = 1, 4
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider']).run(None, {'x': x})[0].astype('f8')


class MeanVarianceNormalization(OpRun):
    """The standard's own is a function in float32."""
    op_domain = ''

    def _run(self, x, axes=None):
        axes = tuple(axes or (0, 2, 3))
        return ((x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9),)


class LpNormalization(OpRun):
    """The package's adds up signed numbers where p is 1."""
    op_domain = ''

    def _run(self, x, axis=-1, p=2):
        norm = np.linalg.norm(x, p, axis=axis, keepdims=True)
        return (np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)),)


def exact(m, x):
    """The model in float64."""
    m = onnx.ModelProto.FromString(m.SerializeToString())
    for k, i in enumerate(m.graph.initializer):
        if i.data_type in (T.FLOAT, T.FLOAT16, T.BFLOAT16): m.graph.initializer[k].CopyFrom(nh.from_array(nh.to_array(i).astype('f8'), i.name))
    for v in [*m.graph.input, *m.graph.output]: v.type.tensor_type.elem_type = T.DOUBLE
    for n in m.graph.node:
        if n.op_type == 'Cast': n.attribute[0].i = T.DOUBLE
    return ReferenceEvaluator(m, new_ops=[MeanVarianceNormalization, LpNormalization]).run(None, {'x': x.astype('f8')})[0]


def run_engine(path, x, *options):
    """In the engine; None: this build has none."""
    np.save(f'{d}/x.npy', x)
    p = subprocess.run([tool, 'run', path, '--input', f'x={d}/x.npy', '--output-dir', f'{d}/got', '--threads', '2', '-q', *options], capture_output=True, text=True)
    if 'needs the native engine' in p.stderr: return None
    if p.returncode: return complain(f'{path}: exit {p.returncode}: {p.stderr}')
    return np.load(f'{d}/got/0.npy').astype('f8')


def check_engine(name, opset, kind, round_, half=False, batch=1):
    """In the engine's form, and run there: whether it is taken apart."""
    rng = np.random.default_rng([seed, round_])
    m, dims = Net(rng, opset, [kind], half, batch).build()
    onnx.save(m, f'{d}/{name}.onnx')
    x = (rng.standard_normal(dims) * 2 + 3).astype('f2' if half is True else 'f4')
    if half == 'bfloat16': x = (x.view('u4') & 0xffff0000).view('f4')
    subprocess.run([tool, f'{d}/{name}.onnx', '-o', f'{d}/{name}_out.onnx', '--emit', 'engine', '--force', '--l2', '12K' if half else '24K', '--target', 'cpu-generic',
                    '--threads', '2', '-q'], check=True)
    want = exact(m, x)
    for limit, options in (4e-6, []), (1e-6, ['--reference']):  # fast convolutions are further off than that, tiled or not
        whole, got = run_engine(f'{d}/{name}.onnx', x, *options), run_engine(f'{d}/{name}_out.onnx', x, *options)
        if got is None or whole is None: break
        untiled, error = (abs(y - want).max() / (want.max() - want.min()) for y in (whole, got))
        text = f'{name} {kind}: engine {options}, error {error:.2e} of the range, untiled {untiled:.2e}'
        if verbose: print(text)
        if not error <= max(2 ** -7 if half == 'bfloat16' else 2 ** -10 if half else limit, 2 * untiled): complain(text)
    made = [n.op_type for n in ops(f'{d}/{name}_out.onnx')]
    return 'Moments' in made and 'NormFactors' in made or 'Exp' in made or 'Sign' in made


def ops(path):
    m = onnx.load(path)
    found = []
    def walk(g):
        for n in g.node:
            found.append(n)
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH: walk(a.g)
    walk(m.graph)
    return found


def is_valid(m):
    """GroupNormalization of opset 18 is refused since it has been replaced, MeanVarianceNormalization without axes from opset 18 on."""
    try:
        onnx.checker.check_model(m, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def check(name, opset, kinds, form, round_, half=False, batch=1):
    rng = np.random.default_rng([seed, round_])
    m, dims = Net(rng, opset, kinds, half, batch).build()
    path, tiled = f'{d}/{name}.onnx', f'{d}/{name}_out.onnx'
    onnx.save(m, path)
    x = (rng.standard_normal(dims) * 2 + 3).astype('f2' if half else 'f4')
    p = subprocess.run([tool, path, '-o', tiled, '--force', '--form', form, '--l2', '12K' if half else '24K', '--target', 'cpu-generic', '--threads', '1', '-q'], capture_output=True, text=True)
    if p.returncode:
        complain(f'{name} {form}: exit {p.returncode}: {p.stderr}')
        return False, False, False
    if is_valid(m): onnx.checker.check_model(tiled, full_check=True)
    want = exact(m, x)
    scale = want.max() - want.min()
    untiled, got = abs(run(path, x) - want).max() / scale, abs(run(tiled, x) - want).max() / scale
    if verbose: print(f"{name} {form} {[n.op_type for n in m.graph.node]}: error {got:.2e} of the range, untiled {untiled:.2e}")
    if not got <= max(2 ** -10 if half else 1e-6, 2 * untiled): complain(f'{name} {form}: error {got:.2e} of the range, untiled {untiled:.2e}')
    made = ops(tiled)
    if any(n.domain == 'onnx_tile' for n in made): complain(f'{name} {form}: operators that are not of the standard')
    return any('/combine/' in n.name for n in made), any('tile/norm/' in n.name for n in made), any('tile/softmax/' in n.name for n in made)


def check_brief_layer(axis):
    """LayerNormalization is all of this that ONNX Runtime has in bfloat16: the parts use nothing else in that type."""
    rng, shape = np.random.default_rng([seed, axis]), (1, 8, 40, 36)
    brief = lambda n: h.make_tensor(n, T.BFLOAT16, shape[axis:], rng.uniform(.5, 1.5, shape[axis:]).ravel())
    weights = lambda n: nh.from_array(rng.normal(0, .1, (8, 8, 3, 3)).astype('f4'), n)
    nodes = [h.make_node('Conv', ['x', 'v'], ['a'], pads=[1] * 4), h.make_node('Cast', ['a'], ['b'], to=T.BFLOAT16),
             h.make_node('LayerNormalization', ['b', 'scale', 'bias'], ['c'], axis=axis), h.make_node('Cast', ['c'], ['d'], to=T.FLOAT),
             h.make_node('Relu', ['d'], ['e']), h.make_node('Conv', ['e', 'w'], ['y'], pads=[1] * 4)]
    value = lambda n: h.make_tensor_value_info(n, T.FLOAT, shape)
    path, tiled = f'{d}/brief{axis}.onnx', f'{d}/brief{axis}_out.onnx'
    onnx.save(h.make_model(h.make_graph(nodes, 'g', [value('x')], [value('y')], [brief('scale'), brief('bias'), weights('v'), weights('w')]),
                           opset_imports=[h.make_opsetid('', 18)], ir_version=8), path)
    subprocess.run([tool, path, '-o', tiled, '--force', '--l2', '12K', '--target', 'cpu-generic', '--threads', '1', '-q'], check=True)
    x = rng.standard_normal(shape).astype('f4')
    want, got = run(path, x), run(tiled, x)
    if not any('tile/norm/' in n.name for n in ops(tiled)): complain(f'LayerNormalization, bfloat16, axis {axis}: not taken apart')
    if not abs(got - want).max() <= 2 ** -7 * (want.max() - want.min()): complain(f'LayerNormalization, bfloat16, axis {axis}: error {abs(got - want).max()}')


FORMS = ['loop-peeled', 'loop', 'unrolled']
combined = collections = 0
for k in range(int(sys.argv[4])):
    opset = [11, 13, 17, 18, 21][k % 5]
    kinds = ['instance', 'torch', 'written', 'written groups', 'average', 'excite', 'largest', 'root', 'softmax'] + (['group'] if opset >= 18 else [])
    if opset >= 17: kinds += ['layer', 'layer maps']
    half = k % 4 == 3
    if not half: kinds += ['mvn', 'mvn maps', 'lp', 'lp pixels'] # which ONNX Runtime has in float32 alone
    combined += check(f'r{k}', opset, kinds, FORMS[k % 3] if opset >= 13 or k % 3 else 'loop', k, half)[0]
for k, form in enumerate(FORMS):
    if not any(check(f's{k}', [18, 13, 11][k] if form != 'loop-peeled' else 18, ['softmax'], form, i)[2] for i in range(k, k + 16)): complain(f'softmax, {form}: not taken apart')
if not any(check_engine('s', 18, 'softmax', i) for i in range(16)): complain('softmax: not taken apart in the engine')
print('put together from parts:', combined)
if combined < int(sys.argv[4]) // 2: complain('too few networks whose reductions are put together from parts')
for k, kind in enumerate(['instance', 'torch', 'written', 'written groups', 'group', 'layer', 'layer maps', 'mvn', 'mvn maps', 'lp', 'lp pixels']):
    for half in (False, True) if not kind.startswith('lp') else (False,):
        if not (half and kind.startswith('mvn')) and not any(check(f'k{k}{half}', 18, [kind], FORMS[k % 3], i, half)[1] for i in range(k, k + 16)): complain(f'{kind}, half {half}: not taken apart')
        if not any(check_engine(f'e{k}{half}', 18, kind, i, half) for i in range(k, k + 16)): complain(f'{kind}, half {half}: not taken apart in the engine')
    if not kind.startswith('lp') and not any(check_engine(f'b{k}', 18, kind, i, 'bfloat16') for i in range(k, k + 16)): complain(f'{kind}, bfloat16: not taken apart in the engine')
# several samples: rows are cut across the normalisation, each sample has statistics of its own
for k, kind in enumerate(['instance', 'torch', 'written groups', 'group', 'layer', 'mvn', 'root']):
    if not any(check(f'n{k}', 18, [kind], FORMS[k % 3], i, batch=2 + k % 2)[0] for i in range(k, k + 16)): complain(f'{kind}, several samples: not put together from parts')
    if kind in ('instance', 'group') and not any(check_engine(f'm{k}', 18, kind, i, batch=3) for i in range(k, k + 16)): complain(f'{kind}, several samples: not taken apart in the engine')
for axis in 1, 2: check_brief_layer(axis)
if not any(check('root', 18, ['root'], 'loop-peeled', k)[0] for k in range(16)): complain('ReduceL2: not put together from parts')

m, dims = Net(np.random.default_rng(seed), 17, ['instance']).build()
onnx.save(m, f'{d}/e.onnx')
subprocess.run([tool, f'{d}/e.onnx', '-o', f'{d}/e_out.onnx', '--force', '--bit-exact', '--l2', '24K', '--target', 'cpu-generic', '--threads', '1', '-q'], check=True)
x = np.random.default_rng(seed).standard_normal(dims).astype('f4')
if not any(n.op_type == 'InstanceNormalization' for n in ops(f'{d}/e_out.onnx')) or any('/combine/' in n.name for n in ops(f'{d}/e_out.onnx')):
    complain('--bit-exact: a normalisation is put together from parts')
if (run(f'{d}/e.onnx', x) != run(f'{d}/e_out.onnx', x)).any(): complain('--bit-exact: not equal')
sys.exit(bad > 0)
EOF_PY
"$PYTHON" "$tmp/split.py" "$TOOL" "$tmp" "${SEED:-1}" "${ROUNDS:-16}" ${VERBOSE:-} >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"

# InstanceNormalization of large maps, which OpenVINO makes otherwise (quirk LONG_SUM): in parts for ONNX Runtime, whole for OpenVINO and for all;
# smaller maps are taken apart for each.
for extent in 384 128; do
    cat >"$tmp/maps.ot" <<OT
model ir 8 opset 17
graph main {
  input %x : float32[1,3,$extent,$extent]
  init %w : float32[16,3,3,3] = random 1 * 0.3
  init %v : float32[3,16,3,3] = random 2 * 0.1
  init %one : float32[16] = fill 1
  init %zero : float32[16] = fill 0
  %a = Conv(%x, %w) {pads=[1, 1, 1, 1]}
  %n = InstanceNormalization(%a, %one, %zero)
  %r = Relu(%n)
  %y = Conv(%r, %v) {pads=[1, 1, 1, 1]}
  output %y
}
OT
    for runtime in onnxruntime openvino portable; do
        expect 0 "$TOOL" "$tmp/maps.ot" -o "$tmp/maps_tiled.ot" --force --l2 64K --target cpu-generic --threads 1 --runtime $runtime -q
        whole=$(grep -c 'InstanceNormalization(' "$tmp/maps_tiled.ot")
        if [ $extent = 384 ] && [ $runtime != onnxruntime ]; then
            [ "$whole" = 1 ] || fail "$runtime, $extent: a normalisation of large maps is taken apart"
        else
            [ "$whole" = 0 ] || fail "$runtime, $extent: a normalisation is not taken apart"
        fi
    done
done
finish
