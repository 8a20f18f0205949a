"""Random networks with Resizes that align corners, tiled in every form. corners.py TOOL FOLDER SEED ROUNDS ENGINE"""
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T

import builder
from checks import input_extents, nmse, nodes, outputs, unread_constants

tool, d, seed, rounds, engine = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == 'engine'
print('seed', seed)
bad = 0
MODES = ['linear', 'linear', 'cubic', 'floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil']


def complain(text):
    global bad
    bad += 1
    print(text)


class Net(builder.Net):
    """Convolutions, two Resizes with align_corners, a skip connection around one of them."""

    def __init__(self, rng, opset, mode, half=False):
        super().__init__(opset=opset, dtype=T.FLOAT16 if half else T.FLOAT, rng=rng)
        self.mode, self.c, self.size = mode, 4, [int(rng.integers(5, 24)), int(rng.integers(3, 14))]

    def smooth(self, x):
        return self.op('Relu', self.conv(x, self.c, self.c, bias=.1, pads=[1] * 4))

    def extent(self, k, n):
        """Of n rows: twice as many, eight times less and one, fewer, any."""
        return [2 * n, 8 * (n - 1) + 1, max(1, n // 2), 1 if k else 3 * n, int(self.rng.integers(2, 3 * n))][int(self.rng.integers(5))]

    def resize(self, x, size):
        attrs = {'coordinate_transformation_mode': 'align_corners', 'mode': self.mode if self.mode in ('linear', 'cubic') else 'nearest'}
        if attrs['mode'] == 'nearest': attrs['nearest_mode'] = self.mode
        if attrs['mode'] == 'cubic': attrs['exclude_outside'] = int(self.rng.integers(2))
        empty = self.const([], 'f4') if self.opset < 13 else ''
        scales = [np.float32(s) / np.float32(n) for s, n in zip(size, self.size)]
        exact = all(float(f) * n == s for f, s, n in zip(scales, size, self.size))
        axes = self.opset >= 18 and self.rng.random() < .5
        if axes: attrs['axes'] = [2, 3]
        if exact and self.rng.random() < .5: ins = [x, empty, self.const([*([] if axes else [1, 1]), *scales], 'f4')]
        else: ins = [x, empty, empty, self.const([*([] if axes else [1, self.c]), *size], 'i8')]
        self.size = size
        return self.op('Resize', *ins, **attrs)

    def build(self):
        dims, size = [1, self.c, *self.size], list(self.size)
        a = self.smooth(self.input('x', dims))
        b = self.resize(self.smooth(a), [self.extent(0, self.size[0]), self.extent(1, self.size[1])])
        b = self.smooth(b)
        if self.rng.random() < .5: b = self.op('Add', self.smooth(self.resize(b, size)), a)
        b = self.smooth(b)
        self.output(b, [1, self.c, *self.size])
        return self.model(ir=8), dims


def run(path, x):
    return outputs(path, {'x': x}, threads=0)[0].astype('f8')


def rows_cut(path):
    """Gathers of rows whose indices are a tile's."""
    m = onnx.load(path)
    if any(n.domain == 'onnx_tile' and n.op_type == 'GatherRows' for n in nodes(m.graph)): complain(f'{path}: GatherRows is written')
    gathers = [n for n in nodes(m.graph) if n.op_type == 'Gather' and 'tile/resize/' in n.name and n.name.startswith('tile/r') and '/rows' in n.name and '/first' not in n.name]
    moved = {o for n in nodes(m.graph) if n.op_type == 'Sub' and 'tile/resize/' in n.name for o in n.output}
    names = {}
    for n in gathers: names.setdefault(n.name.split('/', 3)[-1].rsplit('_', 1)[0], set()).add(n.input[1])
    return any(n.input[1] in moved for n in gathers) or any(len(v) > 1 for v in names.values())


def check(name, opset, mode, args, round_, half=False):
    rng = np.random.default_rng([seed, round_])
    m, dims = Net(rng, opset, mode, half).build()
    path, tiled = f'{d}/{name}.onnx', f'{d}/{name}_out.onnx'
    onnx.checker.check_model(m, full_check=True)
    onnx.save(m, path)
    x = rng.standard_normal(dims).astype('f2' if half else 'f4')
    command = [tool, path, '-o', tiled, '--l2', '6K', '--target', 'cpu-generic', '--threads', '1', '-q', *args]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        complain(f'{name}: exit {p.returncode}: {p.stderr}')
        return False
    if unread := unread_constants(onnx.load(tiled).graph): complain(f'{name} {args}: nothing reads {unread[:2]}')
    if 'engine' in args: return rows_cut(tiled)
    onnx.checker.check_model(tiled, full_check=True)
    got, want = run(tiled, x), run(path, x)
    if got.shape != want.shape or not nmse(got, want) <= (1e-5 if half else 1e-11): complain(f'{name} {mode} {args}: NMSE {nmse(got, want):.1e}')
    return rows_cut(tiled)


FORMS = [['--form', f] for f in ('unrolled', 'loop-peeled', 'loop', 'stream')] + [[], ['--runtime', 'portable'], ['--runtime', 'loop'], ['--runtime', 'openvino']]
cut = {}
for k in range(rounds):
    form, mode, opset = FORMS[k % len(FORMS)], MODES[k % len(MODES)], [11, 13, 18, 19, 22][k % 5]
    cut.setdefault(' '.join(form), []).append(check(f'r{k}', opset, mode, ['--force', *form], k))
    if engine: cut.setdefault('engine', []).append(check(f'e{k}', opset, mode, ['--force', '--emit', 'engine', '--verify'], k))
for form, some in cut.items():
    print(f'{form or "chosen"}: {sum(some)} of {len(some)} cut over rows of a Resize')
    if not any(some) and 'stream' not in form: complain(f'{form}: no Resize is cut')

# what must not differ by a bit stays whole
for k in range(3):
    if check(f'b{k}', 13, MODES[k], ['--force', '--bit-exact'], k): complain('--bit-exact: a Resize is decomposed')
    dims = input_extents(onnx.load(f'{d}/b{k}.onnx'))
    x = np.random.default_rng(k).standard_normal(dims).astype('f4')
    if (run(f'{d}/b{k}.onnx', x) != run(f'{d}/b{k}_out.onnx', x)).any(): complain('--bit-exact: not equal')

# and so does what has other extents at other sizes; the report says why
m, dims = Net(np.random.default_rng(seed), 13, 'linear').build()
for k, axis in enumerate(('height', 'width'), 2): m.graph.input[0].type.tensor_type.shape.dim[k].dim_param = axis
for v in m.graph.output:
    for k in 2, 3: v.type.tensor_type.shape.dim[k].dim_param = f'out{k}'
onnx.save(m, f'{d}/free.onnx')
p = subprocess.run([tool, f'{d}/free.onnx', '-o', f'{d}/free_out.onnx', '--force', '--keep-dynamic', '--design', f'x=1,{dims[1]},{dims[2]},{dims[3]}', '--l2', '6K',
                    '--target', 'cpu-generic', '--threads', '1'], capture_output=True, text=True)
if p.returncode or 'align_corners' not in p.stdout + p.stderr: complain(f'dynamic extents: exit {p.returncode}: {p.stdout}{p.stderr}')
elif nmse(run(f'{d}/free_out.onnx', x := np.ones(dims, 'f4')), run(f'{d}/free.onnx', x)) > 1e-11: complain('dynamic extents: not equal')
sys.exit(bad > 0)
