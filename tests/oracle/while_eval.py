#!/usr/bin/env python3
"""A model in the engine's form (domain onnx_tile) against the model that it was made from, both in onnx.reference, in float64.

  while_eval.py MODEL TILED [--shape INPUT=D,D,...]... [--seed N] [--tol X]    compare; prints one line, exit 1 when they differ
  while_eval.py --pairs MODEL TILED MODEL TILED...                             a line for each: "TILED: same: ...", exit 1 when one differs
  while_eval.py --make DIR [NAME...]                                           write the small models of the tests to DIR

The four operators are written down here a second time, in numpy, sharing nothing with the program:

  Alloc     every element is poison (NaN, or a rare integer)        -> a place that no tile writes is found
  While     iterations run in a shuffled order                      -> tiles that depend on each other are found
            (in order, where buffers are carried)
  Deslice   the place must still hold poison                        -> tiles that write one place twice are found
"""
import argparse, os, sys
import numpy as np
import onnx
from onnx import TensorProto as TP, helper as H, numpy_helper as NH
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
import builder  # noqa: E402

DOMAIN = 'onnx_tile'
POISON = {'f': np.nan, 'i': -86, 'u': 170, 'b': True}


def is_poison(a):
    return np.isnan(a) if a.dtype.kind == 'f' else a == np.array(POISON[a.dtype.kind]).astype(a.dtype)


def window(rank, axes, starts, sizes, i):
    """Index of window i in a tensor."""
    at = [slice(None)] * rank
    for k, axis in enumerate(axes):
        lo = starts[i * len(axes) + k]
        at[axis] = slice(lo, lo + sizes[k])
    return tuple(at)


class Alloc(OpRun):
    op_domain = DOMAIN

    def _run(self, shape=None, dtype=None):
        t = H.tensor_dtype_to_np_dtype(dtype)
        return (np.full([int(d) for d in shape], POISON[np.dtype(t).kind]).astype(t),)


class Slice(OpRun):
    op_domain = DOMAIN

    def _run(self, x, i, axes=None, sizes=None, starts=None):
        at = window(x.ndim, axes, starts, sizes, int(i))
        assert all(0 <= s.start and s.stop <= x.shape[a] for a, s in enumerate(at) if s.start is not None), 'a window leaves its tensor'
        return (x[at],)


class Deslice(OpRun):
    op_domain = DOMAIN

    def _run(self, tile, y, i, axes=None, starts=None, again=0):
        at = window(y.ndim, axes, starts, [tile.shape[a] for a in axes], int(i))
        assert y[at].shape == tile.shape, 'a place is not as large as its tile'
        if y.dtype.kind == 'f' and not again:
            assert is_poison(y[at]).all(), 'a place is written twice'
        y = y.copy()
        y[at] = tile
        return (y,)


class While(OpRun):
    op_domain = DOMAIN
    order = np.random.default_rng(0)

    def need_context(self):
        return True

    def _run(self, *buffers, context=None, body=None, count=None, carried=0, attributes=None, **_):
        names = self.body.input_names
        outer = {k: v for k, v in (context or {}).items()}
        for i in range(count) if carried else self.order.permutation(count):
            given = dict(outer)
            given.update(zip(names[1:], buffers))
            given[names[0]] = np.array(i, dtype=np.int64)
            buffers = tuple(self._run_body(given, attributes=attributes))
        return buffers


def widen(graph):
    """Float32 becomes float64, so that sums in another order do not hide or feign a difference."""
    def tensor(t):
        if t.data_type == TP.FLOAT:
            t.CopyFrom(NH.from_array(NH.to_array(t).astype('f8'), t.name))
    for t in graph.initializer:
        tensor(t)
    for v in list(graph.input) + list(graph.output) + list(graph.value_info):
        if v.type.tensor_type.elem_type == TP.FLOAT:
            v.type.tensor_type.elem_type = TP.DOUBLE
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                widen(a.g)
            elif a.type == onnx.AttributeProto.TENSOR:
                tensor(a.t)
            elif n.op_type in ('Alloc', 'Cast') and a.name in ('dtype', 'to') and a.i == TP.FLOAT:
                a.i = TP.DOUBLE


def evaluate(model, feeds):
    ops = [Alloc, Slice, Deslice, While] if any(o.domain == DOMAIN for o in model.opset_import) else []
    return ReferenceEvaluator(model, new_ops=ops).run(None, feeds)


def inputs_of(model, shapes, seed):
    rng, feeds = np.random.default_rng(seed), {}
    inits = {t.name for t in model.graph.initializer}
    for v in model.graph.input:
        if v.name in inits:
            continue
        t = v.type.tensor_type
        dims = shapes.get(v.name) or [d.dim_value for d in t.shape.dim]
        dtype = H.tensor_dtype_to_np_dtype(t.elem_type)
        whole = np.dtype(dtype).kind in 'iub'
        feeds[v.name] = (rng.integers(0, 8, dims) if whole else rng.standard_normal(dims)).astype(dtype)
    return feeds


def check_typed(graph, outer=()):
    """Every value has a type and a static shape; names of values are unique across graphs."""
    typed = {v.name: v for v in list(graph.input) + list(graph.output) + list(graph.value_info)}
    for n in graph.node:
        ours = n.name.startswith('tile/')
        for o in n.output:
            assert not o or o not in outer, f'{o} hides an outer value'
            if ours and o:
                assert o in typed, f'{o} has no value_info'
                assert all(d.HasField('dim_value') for d in typed[o].type.tensor_type.shape.dim), f'{o} has no static shape'
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH and ours:
                check_typed(a.g, set(outer) | {o for m in graph.node for o in m.output} | {v.name for v in graph.input})


def compare(original, tiled, shapes, seed, tol):
    a, b = onnx.load(original), onnx.load(tiled)
    onnx.checker.check_model(b)
    check_typed(b.graph)
    widen(a.graph)
    widen(b.graph)
    feeds = inputs_of(a, shapes, seed)
    worst = 0.
    for name, x, y in zip([o.name for o in a.graph.output], evaluate(a, feeds), evaluate(b, feeds)):
        assert x.dtype == y.dtype and x.shape == y.shape, f'{name}: {x.dtype}{x.shape} became {y.dtype}{y.shape}'
        if x.dtype.kind != 'f':
            assert (x == y).all(), f'{name}: differs'
            continue
        assert not np.isnan(y[~np.isnan(x)]).any(), f'{name}: no tile writes some of its places'
        err = float(np.max(np.abs(x.astype('f8') - y.astype('f8')) / (1 + np.abs(x.astype('f8'))), initial=0))
        assert err <= tol, f'{name}: differs by {err:.2g}'
        worst = max(worst, err)
    classes = sum(n.domain == DOMAIN and n.op_type == 'While' for n in b.graph.node)
    regions = len({n.name.split('/')[1] for n in b.graph.node if n.name.startswith('tile/r')})
    return regions, classes, worst


# ---- small models ----

class Net(builder.Net):
    def __init__(self, opset=17):
        super().__init__(3, opset)

    def const(self, array):
        self.inits.append(builder.constant(f'w{len(self.inits)}', np.ascontiguousarray(array), None))
        return self.inits[-1].name

    def weight(self, *shape):
        return self.const((self.rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype(np.float32))

    def op(self, kind, *ins, n_out=1, **attrs):
        outs = [f'{kind.lower()}{len(self.nodes)}_{k}' for k in range(n_out)]
        self.nodes.append(H.make_node(kind, list(ins), outs, name=f'{kind}_{len(self.nodes)}', **attrs))
        return outs[0] if n_out == 1 else outs

    def conv(self, x, cin, cout, k=3, s=1, group=1, dil=1, relu=True):
        p = (k - 1) * dil // 2
        x = self.op('Conv', x, self.weight(cout, cin // group, k, k), self.weight(cout), pads=[p] * 4, strides=[s, s], group=group, dilations=[dil, dil])
        return self.op('Relu', x) if relu else x

    def model(self, inputs, outputs):
        """inputs: name -> shape; outputs: names (their shapes are inferred)."""
        ins, outs = [builder.value(n, s) for n, s in inputs.items()], [builder.value(n, None) for n in outputs]
        m = builder.model(self.nodes, ins, outs, self.inits, self.opset, ir=8, name='net')
        return onnx.shape_inference.infer_shapes(m, strict_mode=True, data_prop=True)


def chain(g):
    x = g.conv(g.conv(g.conv('x', 3, 8), 8, 8, k=5), 8, 8, dil=2)
    return g.model({'x': [1, 3, 40, 36]}, [g.conv(x, 8, 4, relu=False)])


def strided(g):
    x = g.op('MaxPool', g.conv('x', 3, 8, s=2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    return g.model({'x': [2, 3, 61, 53]}, [g.conv(x, 8, 8)])


def residual(g):
    x = g.conv('x', 4, 8)
    y = g.op('Add', g.conv(g.conv(x, 8, 8), 8, 8, relu=False), x)
    a = g.op('Relu', y)
    return g.model({'x': [1, 4, 33, 33]}, [a, g.conv(a, 8, 3, k=1, relu=False)])


def mobile(g):
    x = g.op('Clip', g.conv('x', 4, 16, k=1, relu=False), g.const(np.float32(0)), g.const(np.float32(6)))
    x = g.op('Clip', g.conv(x, 16, 16, group=16, relu=False), g.const(np.float32(0)), g.const(np.float32(6)))
    return g.model({'x': [1, 4, 29, 31]}, [g.op('Add', g.conv(x, 16, 4, k=1, relu=False), 'x')])


def softmax(g):
    q, k = g.op('MatMul', 'x', g.weight(24, 24)), g.op('MatMul', 'x', g.weight(24, 24))
    p = g.op('Softmax', g.op('MatMul', q, g.op('Transpose', k, perm=[0, 2, 1])), axis=-1)
    return g.model({'x': [2, 50, 24]}, [g.op('MatMul', p, g.op('MatMul', 'x', g.weight(24, 24)))])


def resize(g):
    roi = '' if g.opset >= 13 else g.const(np.float32([]))
    x = g.op('Resize', g.conv('x', 3, 4), roi, g.const(np.float32([1, 1, 1.5, 1.5])), mode='linear', coordinate_transformation_mode='asymmetric')
    return g.model({'x': [1, 3, 24, 20]}, [g.conv(x, 4, 4)])


def concat(g):
    a, b = g.conv('x', 3, 4), g.conv('x', 3, 4, k=5)
    up = g.op('ConvTranspose', g.op('AveragePool', a, kernel_shape=[2, 2], strides=[2, 2]), g.weight(4, 4, 2, 2), strides=[2, 2])
    return g.model({'x': [1, 3, 32, 28]}, [g.conv(g.op('Concat', a, b, up, axis=1), 12, 4)])


def shuffle(g):
    x = g.op('DepthToSpace', g.conv('x', 1, 9), blocksize=3, mode='CRD')
    return g.model({'x': [1, 1, 17, 19]}, [g.op('Sigmoid', x), x])


def pointwise(g):
    x = 'x'
    for _ in range(3):
        a = g.op('Add', x, g.weight(6, 1, 1))
        x = g.op('Mul', a, g.op('Sigmoid', a))
    return g.model({'x': [1, 6, 30, 26]}, [x])


def reduce(g, kind, x, axes, keepdims):
    if g.opset >= (13 if kind == 'ReduceSum' else 18):
        return g.op(kind, x, g.const(np.int64(axes)), keepdims=keepdims)
    return g.op(kind, x, axes=axes, keepdims=keepdims)


# Regions that end in reductions of what their tiles cut: alone, several of one map, beside the map, with a batch, uneven.

def pooled(g):
    p = g.op('GlobalAveragePool', g.conv(g.conv('x', 3, 8), 8, 8))
    return g.model({'x': [1, 3, 41, 37]}, [g.op('Gemm', g.op('Flatten', p), g.weight(8, 5))])


def pools(g):
    x = g.conv(g.conv('x', 3, 8), 8, 6, s=2)
    return g.model({'x': [1, 3, 46, 38]}, [g.op('GlobalMaxPool', x), reduce(g, 'ReduceSum', x, [3, 2], 0), g.op('GlobalAveragePool', x), reduce(g, 'ReduceMin', x, [2], 0)])


def beside(g):
    x = g.conv('x', 3, 8)
    y = g.conv(x, 8, 8)
    return g.model({'x': [2, 3, 40, 36]}, [reduce(g, 'ReduceMean', y, [2, 3], 0), g.op('Sigmoid', y), reduce(g, 'ReduceL1', x, [-1], 1)])


def whole(g):
    x = g.conv(g.conv('x', 3, 8), 8, 8)
    return g.model({'x': [2, 3, 36, 30]}, [reduce(g, 'ReduceMax', x, [0, 2, 3], 1), reduce(g, 'ReduceMean', x, [0, 1, 2, 3], 0), reduce(g, 'ReduceSumSquare', x, [1, 2], 0)])


def tokens(g):
    x = g.op('MatMul', g.op('Relu', g.op('MatMul', 'x', g.weight(24, 48))), g.weight(48, 24))
    return g.model({'x': [2, 75, 24]}, [reduce(g, 'ReduceMean', x, [1], 0)])


MODELS = {f.__name__: f for f in (chain, strided, residual, mobile, softmax, resize, concat, shuffle, pointwise, pooled, pools, beside, whole, tokens)}


def tell(model, tiled, shapes, seed, tol):
    """Whether both are the same, and a line that says so."""
    try:
        regions, classes, worst = compare(model, tiled, shapes, seed, tol)
    except AssertionError as e:
        return False, f'DIFFERS: {e} (seed {seed})'
    return True, f'same: {regions} regions, {classes} classes, largest difference {worst:.2g}'


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('files', nargs='*')
    ap.add_argument('--make')
    ap.add_argument('--pairs', action='store_true')
    ap.add_argument('--opset', type=int, default=17)
    ap.add_argument('--shape', action='append', default=[])
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--tol', type=float, default=1e-9)
    a = ap.parse_args()
    if a.make:
        for name in a.files or MODELS:
            onnx.save(MODELS[name](Net(a.opset)), os.path.join(a.make, name + '.onnx'))
        return 0
    shapes = {s.rsplit('=', 1)[0]: [int(d) for d in s.rsplit('=', 1)[1].split(',')] for s in a.shape}
    if not a.pairs:
        same, said = tell(*a.files, shapes, a.seed, a.tol)
        print(said)
        return int(not same)
    differ = 0
    for model, tiled in zip(a.files[::2], a.files[1::2], strict=True):
        same, said = tell(model, tiled, shapes, a.seed, a.tol)
        print(f'{tiled}: {said}')
        differ += not same
    return int(differ > 0)


if __name__ == '__main__':
    sys.exit(main())
