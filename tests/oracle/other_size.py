"""Models whose file fixes the extents of their inputs, asked to take others (--shape): right, or refused, never something else.

    other_size.py --tool build/onnx-tile cases                  small graphs: constants that only fit the old size, and look-alikes
    other_size.py --tool build/onnx-tile nets                   networks of models/make_models.py, made at three sizes
    other_size.py --tool build/onnx-tile files MODEL.onnx ...   any models of pictures: fixed at a size, asked for two others

cases  An accepted model must give what ONNX Runtime gives on the model with changed inputs; a refused one must say why: exit status 2,
       one line with the words that the case names.
nets   The same network is made at size A and at size B, with the same weights. The file of size A, asked for size B, must compute what
       the file of size B computes, or be refused.
files  As cases; inputs with dynamic extents are fixed first. Refusals are listed.
Exit status 1 when anything is wrong.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, shape_inference

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, 'models'), os.path.join(ROOT, 'tests', 'models')]
import builder  # noqa: E402
ort.set_default_logger_severity(4)


def dims_of(value):
    return [d.dim_value if d.HasField('dim_value') else 0 for d in value.type.tensor_type.shape.dim]


def real_inputs(model):
    made = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in made]


def set_dims(model, shapes):
    """Other inputs; what was stated of other values goes."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    del m.graph.value_info[:]
    for i in m.graph.input:
        if i.name in shapes:
            i.type.tensor_type.shape.ClearField('dim')
            for d in shapes[i.name]:
                i.type.tensor_type.shape.dim.add().dim_value = d
    for o in m.graph.output:
        o.type.tensor_type.ClearField('shape')
    return m


def feeds(model, shapes, seed=1):
    rng = np.random.default_rng(seed)
    out = {}
    for i in real_inputs(model):
        dims = shapes.get(i.name) or dims_of(i)
        t = i.type.tensor_type.elem_type
        dtype = helper.tensor_dtype_to_np_dtype(t)
        out[i.name] = (rng.random(dims) * 2 - 1).astype(dtype) if t in (1, 10, 11) else rng.integers(0, 2, dims).astype(dtype)
    return out


def run(path_or_bytes, feed):
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return ort.InferenceSession(path_or_bytes, o, providers=['CPUExecutionProvider']).run(None, feed)


def differ(a, b):
    """What is wrong with outputs a in place of b, or None."""
    for k, (x, y) in enumerate(zip(a, b)):
        if x.shape != y.shape:
            return 'output %d has shape %s, not %s' % (k, x.shape, y.shape)
        x, y = x.astype(np.float64), y.astype(np.float64)
        scale = max(float(np.abs(y).max(initial=0)), 1e-3)
        if not np.array_equal(np.isnan(x), np.isnan(y)) or float(np.nanmax(np.abs(x - y), initial=0)) > 1e-3 * scale:
            return 'output %d is another one' % k
    return None


class Judge:
    def __init__(self, tool):
        self.tool, self.tmp, self.bad, self.accepted, self.refused = tool, tempfile.TemporaryDirectory(), 0, 0, 0

    def path(self, name):
        return os.path.join(self.tmp.name, name)

    def fail(self, name, text):
        self.bad += 1
        print('FAIL %s: %s' % (name, text))

    def resize(self, name, model, shapes, options=('--force',)):
        """(status, error line, tiled file); status None when the answer was no proper one."""
        src, out = self.path('in.onnx'), self.path('out.onnx')
        onnx.save(model, src)
        if os.path.exists(out):
            os.remove(out)
        args = [self.tool, src, '-o', out, '-q', '--threads', '1', *options]
        for k, v in shapes.items():
            args += ['--shape', '%s=%s' % (k, ','.join(map(str, v)))]
        r = subprocess.run(args, capture_output=True, text=True)
        if r.returncode == 0 and os.path.exists(out):
            return 0, '', out
        lines = r.stderr.splitlines()
        if r.returncode != 2 or len(lines) != 1 or not lines[0].startswith('onnx-tile: error: --shape') or os.path.exists(out):
            self.fail(name, 'exit %d: %s' % (r.returncode, r.stderr.strip()))
            return None, '', None
        return 2, lines[0], None

    def check(self, name, out, want, shapes):
        """The written model states the new inputs, is whole, and computes what is wanted."""
        m = onnx.load(out)
        for i in real_inputs(m):
            if i.name in shapes and dims_of(i) != list(shapes[i.name]):
                return self.fail(name, 'the written input is %s' % dims_of(i))
        try:
            onnx.checker.check_model(m)
            shape_inference.infer_shapes(m, strict_mode=True)
            wrong = differ(run(out, feeds(m, shapes)), want)
        except Exception as e:  # whatever ONNX Runtime throws
            wrong = str(e)
        if wrong:
            return self.fail(name, wrong)
        self.accepted += 1
        return ''

    def compare(self, name, model, shapes, options=('--force',)):
        """What the refusal says, '' when it was accepted; None: neither was right."""
        status, line, out = self.resize(name, model, shapes, options)
        if status is None:
            return None
        if status == 2:
            self.refused += 1
            return line
        if status == 0:
            try:
                want = run(set_dims(model, shapes).SerializeToString(), feeds(model, shapes))
            except Exception as e:
                self.fail(name, 'accepted, but: ' + str(e))
                return None
            return self.check(name, out, want, shapes)


# ---- small graphs ----

def graph(nodes, inits=(), size=(1, 8, 32, 32), out='y', more=(), opset=17, dtype=TensorProto.FLOAT):
    """x -> nodes -> out, with value_info and output shapes at this size."""
    outs = [builder.value(o, None, dtype) for o in ([out] if isinstance(out, str) else out)]
    m = builder.model(list(nodes), [builder.value('x', size), *more], outs, [builder.constant(k, v, None) for k, v in inits], opset, ir=8)
    if any(n.domain for n in nodes):
        m.opset_import.append(helper.make_opsetid('com.acme', 1))
        return m
    return shape_inference.infer_shapes(m)


N = helper.make_node
I64 = np.int64


def ints(*v):
    return np.array(v, I64)


def weight(*dims):
    return np.random.default_rng(3).standard_normal(dims).astype(np.float32) * 0.2


def conv(x, y, name='conv', k=3):
    return N('Conv', [x, 'w'], [y], name=name, kernel_shape=[k, k], pads=[k // 2] * 4)


W = ('w', weight(8, 8, 3, 3))
HEAD = conv('x', 'h')
TAIL = N('Relu', ['t'], ['y'], name='relu')


def reshape_case(*target, back=None, **more):
    nodes = [HEAD, N('Reshape', ['h', 's'], ['t'], name='guilty', **more), TAIL]
    return graph(nodes, [W, ('s', ints(*target))])


def cases():
    """name, model, new dims of x, words of the refusal (None: must be accepted)."""
    big, tall, small = (1, 8, 64, 64), (1, 8, 64, 16), (1, 8, 16, 16)
    yield 'conv relu', graph([HEAD, N('Relu', ['h'], ['y'])], [W]), big, None
    yield 'conv relu, smaller', graph([HEAD, N('Relu', ['h'], ['y'])], [W]), (1, 8, 17, 5), None
    yield 'batch', graph([HEAD, N('Relu', ['h'], ['y'])], [W]), (3, 8, 32, 32), None
    yield 'channels', graph([HEAD, N('Relu', ['h'], ['y'])], [W]), (1, 4, 32, 32), 'wants 8 x group 1'
    # Reshape
    yield 'reshape -1', reshape_case(1, 8, -1), big, None
    yield 'reshape groups', reshape_case(1, 4, -1), big, None
    yield 'reshape zeros', reshape_case(0, 0, -1), big, None
    yield 'reshape splits channels', reshape_case(1, 2, 4, -1), big, None
    yield 'reshape to old product', reshape_case(1, 8, 1024), big, "'s' has the old size baked in"
    yield 'reshape, product as it was', reshape_case(1, 8, 1024), tall, None
    yield 'reshape to old product, batch takes the rest', reshape_case(-1, 8, 1024), big, 'guilty'
    yield 'reshape, batch takes the rest, smaller', graph([HEAD, N('Reshape', ['h', 's'], ['t'], name='guilty'), TAIL], [W, ('s', ints(-1, 8, 256))], size=(4, 8, 16, 16)), (2, 8, 16, 32), 'guilty'
    yield 'reshape, channels take the rest', reshape_case(1, -1, 1024), big, 'guilty'
    yield 'reshape to old rows', reshape_case(1, 8, 32, -1), (1, 8, 32, 64), None
    yield 'reshape to old rows, moved', reshape_case(1, 8, 32, -1), big, 'guilty'
    yield 'reshape, h and w exchanged', reshape_case(1, 8, 32, 32), tall, 'guilty'
    yield 'windows', reshape_case(1, 8, 4, 8, 4, 8), big, 'guilty'
    yield 'rows in windows, rest unknown', reshape_case(1, 8, -1, 8, 32), (1, 8, 64, 32), 'guilty'
    yield 'old batch', reshape_case(1, 8, 1024), (2, 8, 32, 32), 'guilty'
    yield 'new batch goes into -1', reshape_case(-1, 8, 1024), (2, 8, 32, 32), None
    yield 'batch with channels in -1', reshape_case(-1, 1024), (2, 8, 32, 32), None
    yield 'batch into pixels', reshape_case(8, -1), (2, 8, 32, 32), 'guilty'
    yield 'computed target', graph(
        [HEAD, N('Shape', ['h'], ['sh']), N('Slice', ['sh', 'zero', 'two'], ['nc']), N('Concat', ['nc', 'minus'], ['s'], axis=0),
         N('Reshape', ['h', 's'], ['t'], name='guilty'), TAIL], [W, ('zero', ints(0)), ('two', ints(2)), ('minus', ints(-1))]), big, None
    yield 'computed product', graph(
        [HEAD, N('Shape', ['h'], ['sh']), N('Gather', ['sh', 'i2'], ['hh']), N('Gather', ['sh', 'i3'], ['ww']), N('Mul', ['hh', 'ww'], ['hw']),
         N('Concat', ['front', 'hw'], ['s'], axis=0), N('Reshape', ['h', 's'], ['t'], name='guilty'), TAIL],
        [W, ('i2', ints(2)), ('i3', ints(3)), ('front', ints(1, 8))]), big, None
    # operands of the old size
    yield 'position added', graph([HEAD, N('Add', ['h', 'pos'], ['y'], name='guilty')], [W, ('pos', weight(1, 8, 32, 32))]), big, "'pos' has the old size baked in"
    yield 'position added, one row', graph([HEAD, N('Add', ['h', 'pos'], ['y'], name='guilty')], [W, ('pos', weight(1, 8, 1, 32))]), big, "'pos'"
    yield 'position kept', graph([HEAD, N('Add', ['h', 'pos'], ['y'], name='guilty')], [W, ('pos', weight(1, 8, 1, 32))]), (1, 8, 64, 32), None
    yield 'bias', graph([HEAD, N('Add', ['h', 'b'], ['y'], name='guilty')], [W, ('b', weight(8, 1, 1))]), big, None
    yield 'position, new extent 1', graph([HEAD, N('Add', ['h', 'pos'], ['y'], name='guilty')], [W, ('pos', weight(1, 8, 32, 32))]), (1, 8, 1, 1), "'pos'"
    yield 'mask', graph([HEAD, N('Greater', ['m', 'half'], ['c']), N('Where', ['c', 'h', 'zero'], ['y'], name='guilty')],
                        [W, ('m', weight(32, 32)), ('half', np.float32(0)), ('zero', np.float32(0))]), big, "'c' has the old size baked in"
    yield 'layer norm over the picture', graph([HEAD, N('LayerNormalization', ['h', 's', 'b'], ['y'], name='guilty', axis=2)],
                                               [W, ('s', weight(32, 32)), ('b', weight(32, 32))]), big, "'s'"
    yield 'flatten gemm', graph([HEAD, N('Flatten', ['h'], ['f']), N('Gemm', ['f', 'g'], ['y'], name='guilty')], [W, ('g', weight(8192, 4))]), big, "'g'"
    yield 'matmul over pixels', graph([HEAD, N('MatMul', ['h', 'g'], ['y'], name='guilty')], [W, ('g', weight(32, 5))]), big, "'g'"
    yield 'matmul from the left', graph([HEAD, N('MatMul', ['g', 'h'], ['y'], name='guilty')], [W, ('g', weight(5, 32))]), big, "'g'"
    yield 'global pool then gemm', graph([HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Flatten', ['p'], ['f']), N('Gemm', ['f', 'g'], ['y'])],
                                         [W, ('g', weight(8, 4))]), big, None
    yield 'global pool, fixed reshape', graph([HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Reshape', ['p', 's'], ['y'])],
                                              [W, ('s', ints(1, 8))]), big, None
    # pooling
    def pool(k, s, op='AveragePool', pads=None):
        return graph([HEAD, N(op, ['h'], ['y'], name='guilty', kernel_shape=[k, k], strides=[s, s], **({'pads': pads} if pads else {}))], [W])
    yield 'pool over all', pool(32, 1), big, 'kernel_shape has the old size baked in'
    yield 'pool over all, pool by 2', pool(2, 2), big, None
    yield 'adaptive pool to 2', pool(16, 16), big, 'kernel_shape has the old size baked in'
    yield 'adaptive pool to 4', pool(8, 8, 'MaxPool'), big, 'kernel_shape'
    yield 'pool 3 stride 2', pool(3, 2, 'MaxPool', [1] * 4), big, None
    yield 'pool 9, padded', pool(9, 1, 'MaxPool', [4] * 4), big, None
    # Resize
    def resize(scales=None, sizes=None, tail=()):
        inits = [W] + ([('k', np.array(scales, np.float32))] if scales else [('k', ints(*sizes))])
        ins = ['h', '', 'k'] if scales else ['h', '', '', 'k']
        return graph([HEAD, N('Resize', ins, ['t' if tail else 'y'], name='guilty', mode='linear'), *tail], inits)
    yield 'resize by 2', resize((1, 1, 2, 2)), big, None
    yield 'resize by 0.75', resize((1, 1, .75, .75)), big, None
    yield 'resize by 33/32', resize((1, 1, 33 / 32, 33 / 32)), big, 'no plain factor'
    yield 'resize to sizes', resize(sizes=(1, 8, 64, 64)), big, "'k' has the old size baked in"
    yield 'resize to sizes, w moved', resize(sizes=(1, 8, 64, 64)), (1, 8, 32, 48), "for axis 3"
    yield 'pooled, resized to the old size', graph(
        [HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Resize', ['p', '', '', 'k'], ['u'], name='guilty'), N('Concat', ['h', 'u'], ['y'], axis=1)],
        [W, ('k', ints(1, 8, 32, 32))]), big, 'guilty'
    yield 'pooled, scaled to the old size', graph(
        [HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Resize', ['p', '', 'k'], ['u'], name='guilty'), N('Concat', ['h', 'u'], ['y'], axis=1)],
        [W, ('k', np.array([1, 1, 32, 32], np.float32))]), big, 'guilty'
    yield 'pooled, expanded to the old size', graph(
        [HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Expand', ['p', 'k'], ['y'], name='guilty')], [W, ('k', ints(1, 8, 32, 32))]), big, 'guilty'
    yield 'pooled, tiled to the old size', graph(
        [HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Tile', ['p', 'k'], ['y'], name='guilty')], [W, ('k', ints(1, 1, 32, 32))]), big, 'guilty'
    yield 'tiled twice', graph([HEAD, N('Tile', ['h', 'k'], ['y'], name='guilty')], [W, ('k', ints(1, 1, 2, 2))]), big, None
    # Slice, Gather, Split, Pad
    def cut(starts, ends, axes=(2, 3), steps=None):
        inits = [W, ('a', ints(*starts)), ('b', ints(*ends)), ('c', ints(*axes))] + ([('d', ints(*steps))] if steps else [])
        return graph([HEAD, N('Slice', ['h', 'a', 'b', 'c'] + (['d'] if steps else []), ['y'], name='guilty')], inits)
    end = 2**63 - 1
    yield 'margins', cut((2, 2), (-2, -2)), big, None
    yield 'every other', cut((0, 1), (end, end), steps=(2, 2)), big, None
    yield 'to the old end', cut((0, 0), (32, 32)), big, "'b' has the old size baked in"
    yield 'to beyond the old end', cut((0, 0), (40, 40)), big, "'b'"
    yield 'to far beyond', cut((1, 1), (100000, 100000)), big, None
    yield 'half', cut((0, 0), (16, 32)), (1, 8, 64, 32), "'b'"
    yield 'from the middle', cut((16,), (end,), (2,)), big, "'a'"
    yield 'last rows', cut((-4,), (end,), (2,)), big, "'a'"
    yield 'first row', cut((0,), (1,), (2,)), big, None
    yield 'last row', cut((-1,), (end,), (2,)), big, None
    yield 'channels only', cut((0,), (4,), (1,)), big, None
    yield 'reversed', cut((-1,), (-100000,), (3,), (-1,)), big, None
    yield 'reversed from the old end', cut((31,), (-100000,), (3,), (-1,)), big, "'a'"
    yield 'gather fixed rows', graph([HEAD, N('Gather', ['h', 'i'], ['y'], name='guilty', axis=2)], [W, ('i', ints(*range(31, -1, -1)))]), big, "'i'"
    yield 'gather first row', graph([HEAD, N('Gather', ['h', 'i'], ['y'], name='guilty', axis=2)], [W, ('i', I64(0))]), big, None
    yield 'gather channels', graph([HEAD, N('Gather', ['h', 'i'], ['y'], name='guilty', axis=1)], [W, ('i', ints(3, 1))]), big, None
    yield 'split in fixed parts', graph([HEAD, N('Split', ['h', 's'], ['y', 'z'], name='guilty', axis=2)], [W, ('s', ints(16, 16))], out=('y', 'z')), big, 'guilty'
    yield 'split in halves', graph([HEAD, N('Split', ['h'], ['y', 'z'], name='guilty', axis=2)], [W], out=('y', 'z')), big, None
    yield 'pad', graph([HEAD, N('Pad', ['h', 'p'], ['y'], mode='reflect')], [W, ('p', ints(0, 0, 3, 3, 0, 0, 3, 3))]), big, None
    # positions and numbers
    flat = [HEAD, N('Reshape', ['h', 's'], ['f']), N('ArgMax', ['f'], ['i'], axis=2, keepdims=0)]
    yield 'argmax', graph(flat + [N('Cast', ['i'], ['y'], to=1)], [W, ('s', ints(1, 8, -1))]), big, None
    yield 'argmax divided by the old width', graph(flat + [N('Div', ['i', 'w32'], ['y'], name='guilty')], [W, ('s', ints(1, 8, -1)), ('w32', I64(32))], dtype=7), big, "'w32'"
    yield 'argmax over channels', graph([HEAD, N('ArgMax', ['h'], ['i'], axis=1), N('Mul', ['i', 'three'], ['y'])], [W, ('three', I64(3))], dtype=7), big, None
    yield 'multiplied by the old width', graph([HEAD, N('GlobalAveragePool', ['h'], ['p']), N('Mul', ['p', 'k'], ['y'], name='guilty')], [W, ('k', np.float32(32))]), big, "'k'"
    yield 'multiplied by 255', graph([HEAD, N('Mul', ['h', 'k'], ['y'])], [W, ('k', np.float32(255))], size=(1, 8, 256, 16)), (1, 8, 128, 16), None
    yield 'sum divided by its elements', graph([conv('x', 'h'), N('MaxPool', ['h'], ['m'], kernel_shape=[2, 2], strides=[2, 2]),
                                               N('ReduceSum', ['m', 'ax'], ['r']), N('Div', ['r', 'k'], ['y'], name='guilty')],
                                              [W, ('ax', ints(2, 3)), ('k', np.float32(256))]), big, "'k'"
    yield 'grid', graph([HEAD, N('GridSample', ['h', 'g'], ['y'], name='guilty')], [W, ('g', weight(1, 32, 32, 2))]), big, "'g'"
    yield 'not known', graph([HEAD, N('Mystery', ['h'], ['y'], name='guilty', domain='com.acme')], [W]), big, 'not known to this tool'
    two = [helper.make_tensor_value_info('z', TensorProto.FLOAT, (1, 8, 32, 32))]
    yield 'another input keeps its size', graph([HEAD, N('Add', ['h', 'z'], ['y'], name='guilty')], [W], more=two), big, "input 'z' keeps its size of 32"
    yield 'transposed convolution to a fixed size', graph(
        [N('ConvTranspose', ['x', 'w'], ['y'], name='guilty', kernel_shape=[3, 3], strides=[2, 2], output_shape=[64, 64])], [W]), big, 'output_shape'


def judge_cases(j):
    for name, model, dims, words in cases():
        line = j.compare(name, model, {'x': dims})
        if words is None and line:
            j.fail(name, 'refused: ' + line)
        if words is not None and line is not None and words not in line:
            j.fail(name, 'the refusal does not say %r: %s' % (words, line or 'it was accepted'))


# ---- networks made at several sizes ----

def judge_nets(j):
    import make_models
    for name in make_models.MODELS:
        made = {}
        for size in (64, 96, 128):
            try:
                made[size] = make_models.build(name, True, batch=None, size=size, width=None, depth=None, seed=None)
            except Exception:  # a network that has its own sizes
                pass
        sizes = sorted(made)
        for a in sizes:
            for b in sizes:
                shapes = {i.name: dims_of(i) for i in real_inputs(made[b])}
                if shapes == {i.name: dims_of(i) for i in real_inputs(made[a])} or not all(all(d) for d in shapes.values()):
                    continue
                label = '%s %d -> %d' % (name, a, b)
                status, line, out = j.resize(label, made[a], shapes)
                if status == 2:
                    j.refused += 1
                    print('refused %s: %s' % (label, line[len('onnx-tile: error: '):]))
                elif status == 0:
                    j.check(label, out, run(made[b].SerializeToString(), feeds(made[b], shapes)), shapes)


# ---- files ----

def judge_files(j, paths, options, size):
    for path in paths:
        model, name = onnx.load(path), os.path.basename(path)
        free = {i.name: [d if d > 0 else 1 if k == 0 else size for k, d in enumerate(dims_of(i))] for i in real_inputs(model)}
        fixed = set_dims(model, free)
        try:
            fixed = shape_inference.infer_shapes(fixed, data_prop=True)
        except Exception:
            pass
        for num, den in ((2, 1), (3, 2), (1, 2)):
            shapes = {k: [d if a < 2 else d * num // den for a, d in enumerate(v)] for k, v in free.items()}
            if shapes == free or any(d < 1 for v in shapes.values() for d in v) or not all(shapes.values()):
                continue
            label = '%s %s' % (name, ' '.join('x'.join(map(str, v)) for v in shapes.values()))
            line = j.compare(label, fixed, shapes, options)
            print('%-8s %s %s' % ('wrong' if line is None else 'refused' if line else 'same', label, line or ''), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', required=True)
    p.add_argument('--args', default='--force', help='options of the tool')
    p.add_argument('--size', type=int, default=256, help='of files whose inputs are free')
    p.add_argument('what', choices=('cases', 'nets', 'files'))
    p.add_argument('paths', nargs='*')
    a = p.parse_args()
    j = Judge(a.tool)
    if a.what == 'cases':
        judge_cases(j)
    elif a.what == 'nets':
        judge_nets(j)
    else:
        judge_files(j, a.paths, a.args.split(), a.size)
    print('%s: %d accepted and right, %d refused, %d wrong' % (a.what, j.accepted, j.refused, j.bad))
    return 1 if j.bad else 0


if __name__ == '__main__':
    sys.exit(main())
