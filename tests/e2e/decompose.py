"""Random networks with normalisations, tiled in parts, against float64. decompose.py TOOL FOLDER SEED ROUNDS [VERBOSE]"""
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import builder
from checks import nodes, outputs

tool, d, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
print('seed', seed)
bad, verbose = 0, len(sys.argv) > 5


def complain(text):
    global bad
    bad += 1
    print(text)


class Net(builder.Net):
    """One random network: convolutions, normalisations in all forms, activations, squeeze-and-excitation, a skip, an up-sampling."""

    def __init__(self, rng, opset, kinds, half=False, batch=1):
        super().__init__(opset=opset, dtype={'bfloat16': T.BFLOAT16, True: T.FLOAT16, False: T.FLOAT}[half], rng=rng)
        self.kinds, self.batch = kinds, batch
        self.c, self.size = int(rng.choice([8, 16])), [int(rng.integers(17, 40)), int(rng.integers(9, 30))]

    def square(self, x):
        """A convolution that keeps channels and extents."""
        return self.conv(x, self.c, self.c, bias=1, pads=[1] * 4)

    def norm(self, x, kind):
        c, (hh, ww), g, some = self.c, self.size, 4, self.uniform
        eps = float(self.rng.choice([1e-5, 1e-6]))
        if kind == 'instance': return self.op('InstanceNormalization', x, some(c), some(c), epsilon=eps)
        if kind == 'group':
            n = c if self.opset >= 21 else g
            return self.op('GroupNormalization', x, some(n), some(n), num_groups=g, epsilon=eps)
        if kind == 'softmax': return self.attend(x)
        if kind in ('mvn', 'mvn maps'):
            axes = {'axes': [1, 2, 3]} if kind == 'mvn' else {'axes': [2, -1]} if self.rng.random() < .5 else {}
            return self.op('MeanVarianceNormalization', x, **axes)
        if kind in ('lp', 'lp pixels'): return self.lp(x, kind == 'lp')
        if kind in ('layer', 'layer maps'):
            axis, over = (1, (c, hh, ww)) if kind == 'layer' else (2, (hh, ww))
            ins = [some(over)] + ([some(over)] if self.rng.random() < .5 else [])
            return self.op('LayerNormalization', x, *ins, axis=axis, epsilon=eps)
        if kind in ('written', 'written groups'): return self.written(x, kind == 'written', eps)
        if kind == 'torch':
            r = self.reshape(x, [0, g, -1])
            r = self.op('InstanceNormalization', r, self.const(np.ones(g)), self.const(np.zeros(g)), epsilon=eps)
            r = self.reshape(r, [self.batch, c, hh, ww])
            return self.op('Add', self.op('Mul', r, some((c, 1, 1))), some((c, 1, 1)))
        reduction = {'excite': 'ReduceMean', 'largest': 'ReduceMax', 'root': 'ReduceL2'}.get(kind)
        s = self.reduce(reduction, x, [2, 3]) if reduction else self.op('GlobalAveragePool', x)
        if kind == 'root': s = self.op('Mul', s, self.const(.05))
        s = self.op('Sigmoid', self.op('Conv', s, self.const(self.rng.normal(0, .3, (c, c, 1, 1)))))
        return self.op('Mul', x, s)

    def attend(self, x):
        """Softmax over the pixels of a few maps; x times their shares."""
        k, (hh, ww) = int(self.rng.choice([1, self.c])), self.size
        s = self.op('Conv', x, self.const(self.rng.normal(0, .05, (k, self.c, 1, 1))))
        s = self.op('Softmax', self.reshape(s, [self.batch, k, -1]), axis=-1 if self.opset >= 13 else 2)
        s = self.op('Mul', self.reshape(s, [self.batch, k, hh, ww]), self.const(hh * ww / 2))
        return self.op('Add', x, self.op('Mul', x, s))

    def lp(self, x, rows):
        """Columns, or all pixels, of unit length; one channel is zero."""
        c, (hh, ww), p = self.c, self.size, int(self.rng.choice([1, 2]))
        mask = np.ones((c, 1, 1))
        mask[self.rng.integers(c)] = 0
        x = self.op('Mul', x, self.const(mask))
        if not rows: x = self.reshape(x, [self.batch, c, -1])
        y = self.op('LpNormalization', x, axis=2, p=p)
        if not rows: y = self.reshape(y, [self.batch, c, hh, ww])
        return self.op('Mul', y, self.const((hh if rows else hh * ww) ** (1 if p == 1 else .5)))

    def written(self, x, maps, eps):
        """Mean, difference, mean of its square, root, quotient, of each channel or of groups of them."""
        c, rng, axes, to = self.c, self.rng, [2, 3], x
        if not maps:
            deep = rng.random() < .5
            to = self.reshape(x, [self.batch, 4, c // 4, *self.size] if deep else [self.batch, 4, -1])
            axes = [2, 3, 4] if deep else [2]
        d = self.op('Sub', to, self.reduce('ReduceMean', to, axes))
        squares = self.op('Mul', d, d) if rng.random() < .5 else self.op('Pow', d, self.const(2))
        v = self.reduce('ReduceMean', squares, axes)
        s = self.op('Sqrt', self.op('Add', v, self.const(eps)))
        y = self.op('Div', d, s) if rng.random() < .5 else self.op('Mul', d, self.op('Reciprocal', s))
        if not maps: y = self.reshape(y, [self.batch, c, *self.size])
        return self.op('Add', self.op('Mul', y, self.uniform((c, 1, 1))), self.uniform((c, 1, 1)))

    def build(self):
        brief = self.type == T.BFLOAT16  # arrays of those cannot be handed in: the network's ends are casts
        dims, outside = [self.batch, self.c, *self.size], T.FLOAT if brief else self.type
        self.input('x', dims, outside)
        x = skip = self.op('Cast', 'x', to=self.type) if brief else 'x'
        for k in range(int(self.rng.integers(2, 5))):
            x = self.norm(self.square(x), str(self.rng.choice(self.kinds)))
            if self.rng.random() < .7: x = self.op('Relu', x)
            if k == 1 and self.rng.random() < .6: x = self.op('Add', x, skip)
        y = self.op('Cast', self.square(x), to=T.FLOAT) if brief else self.op('Identity', self.square(x))
        self.output(y, dims, outside)
        return self.model(), dims


def run(path, x):
    return outputs(path, {'x': x})[0].astype('f8')


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
    """In the engine's form, and run there: whether it is decomposed."""
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
    return list(nodes(onnx.load(path).graph))


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
    net = builder.Net(opset=18, rng=rng)
    ends = [net.const(rng.normal(0, .1, (8, 8, 3, 3))) for _ in range(2)]
    v = net.op('Conv', net.input('x', shape), ends[0], pads=[1] * 4)
    v = net.op('LayerNormalization', net.op('Cast', v, to=T.BFLOAT16), 'scale', 'bias', axis=axis)
    net.op('Conv', net.op('Relu', net.op('Cast', v, to=T.FLOAT)), ends[1], out='y', pads=[1] * 4)
    net.output('y', shape)
    net.inits += [brief('scale'), brief('bias')]
    path, tiled = f'{d}/brief{axis}.onnx', f'{d}/brief{axis}_out.onnx'
    builder.save(net.model(), path)
    subprocess.run([tool, path, '-o', tiled, '--force', '--l2', '12K', '--target', 'cpu-generic', '--threads', '1', '-q'], check=True)
    x = rng.standard_normal(shape).astype('f4')
    want, got = run(path, x), run(tiled, x)
    if not any('tile/norm/' in n.name for n in ops(tiled)): complain(f'LayerNormalization, bfloat16, axis {axis}: not decomposed')
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
    if not any(check(f's{k}', [18, 13, 11][k] if form != 'loop-peeled' else 18, ['softmax'], form, i)[2] for i in range(k, k + 16)): complain(f'softmax, {form}: not decomposed')
if not any(check_engine('s', 18, 'softmax', i) for i in range(16)): complain('softmax: not decomposed in the engine')
print('put together from parts:', combined)
if combined < int(sys.argv[4]) // 2: complain('too few networks whose reductions are put together from parts')
for k, kind in enumerate(['instance', 'torch', 'written', 'written groups', 'group', 'layer', 'layer maps', 'mvn', 'mvn maps', 'lp', 'lp pixels']):
    for half in (False, True) if not kind.startswith('lp') else (False,):
        if not (half and kind.startswith('mvn')) and not any(check(f'k{k}{half}', 18, [kind], FORMS[k % 3], i, half)[1] for i in range(k, k + 16)): complain(f'{kind}, half {half}: not decomposed')
        if not any(check_engine(f'e{k}{half}', 18, kind, i, half) for i in range(k, k + 16)): complain(f'{kind}, half {half}: not decomposed in the engine')
    if not kind.startswith('lp') and not any(check_engine(f'b{k}', 18, kind, i, 'bfloat16') for i in range(k, k + 16)): complain(f'{kind}, bfloat16: not decomposed in the engine')
# several samples: rows are cut across the normalisation, each sample has statistics of its own
for k, kind in enumerate(['instance', 'torch', 'written groups', 'group', 'layer', 'mvn', 'root']):
    if not any(check(f'n{k}', 18, [kind], FORMS[k % 3], i, batch=2 + k % 2)[0] for i in range(k, k + 16)): complain(f'{kind}, several samples: not put together from parts')
    if kind in ('instance', 'group') and not any(check_engine(f'm{k}', 18, kind, i, batch=3) for i in range(k, k + 16)): complain(f'{kind}, several samples: not decomposed in the engine')
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
