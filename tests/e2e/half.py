"""What half.sh has in Python: models in half precision, and how far they are off."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

from builder import free_extents, halve, save
from checks import graphs, input_extents, range_error, session
from command_line import commands


def make_half(path, half, wide):
    """half: weights and all between inputs and outputs in half precision; wide: the same weights in float32."""
    save(halve(onnx.load(path)), half)
    save(halve(onnx.load(path), wide=True), wide)


def same(half, wide, tiled, size=None):
    """Types are kept, and the tiled model is as near to float32 as the untiled one. size: what dynamic extents are."""
    def run(path, x):
        s = session(path, threads=0)
        return s.run(None, {s.get_inputs()[0].name: x})

    m = onnx.load(tiled)
    onnx.checker.check_model(m, full_check=True)
    for g in graphs(m.graph):
        if any(t.data_type == TensorProto.FLOAT16 for t in g.initializer):
            sys.exit('weights in half precision')
        cast = {o for n in g.node if n.op_type == 'Cast' for o in n.output}
        # windows of inputs are in half precision, until they are cast, and so is the element that a branch is chosen by
        read = {}
        for n in g.node:
            for v in n.input:
                read.setdefault(v, set()).add(n.op_type)
        if not size and any(v.type.tensor_type.elem_type == TensorProto.FLOAT16 and v.name not in cast
                            and not read.get(v.name, {'output'}) <= {'Cast', 'Reshape', 'SequenceConstruct'} for v in g.value_info):
            sys.exit('a value in half precision')
    dims = [d or int(size) for d in input_extents(m)]
    x = np.random.default_rng(3).standard_normal(dims).astype('f2')
    want, truth, got = run(half, x), run(wide, x.astype('f4')), run(tiled, x)
    for a, t, b in zip(want, truth, got):
        if a.dtype != b.dtype or a.shape != b.shape:
            sys.exit(f'{a.dtype} {a.shape} became {b.dtype} {b.shape}')
        off, own = range_error(b, t), range_error(a, t)
        if off > max(1e-5, 2 ** -11) or off > own + 2 ** -11:
            sys.exit(f'off by {off:.1e} of the range, the untiled model by {own:.1e}')


def free(half, wide):
    """Extents become free; in `half` there are casts around a node that an exporter kept in float32."""
    for path in half, wide:
        m = free_extents(onnx.load(path))
        if path == half:
            pool = next(n for n in m.graph.node if n.op_type == 'MaxPool')
            at = list(m.graph.node).index(pool)
            m.graph.node.insert(at + 1, helper.make_node('Cast', ['kept/y'], [pool.output[0]], 'kept/out', to=TensorProto.FLOAT16))
            m.graph.node.insert(at, helper.make_node('Cast', [pool.input[0]], ['kept/x'], 'kept/in', to=TensorProto.FLOAT))
            pool.input[0], pool.output[0] = 'kept/x', 'kept/y'
        onnx.checker.check_model(m, full_check=True)
        save(m, path)


def lacks(path, word):
    """Nothing in the model is called by the word."""
    sys.exit(word.encode() in onnx.load(path).SerializeToString())


if __name__ == '__main__':
    commands(make_half, same, free, lacks)
