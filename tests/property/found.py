#!/usr/bin/env python3
"""Bugs that random graphs have found, one small model each, checked like a random graph in every form: found.py [--tool T] [NAME]

Each case is a function that builds the model; its text says what went wrong. The name is the name of the bug.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'models')]
import numpy as np  # noqa: E402
from onnx import TensorProto as TP, helper as H  # noqa: E402

import builder  # noqa: E402
import graph_gen  # noqa: E402
import random_graphs  # noqa: E402

CASES = {}
FORMS = [None, 'scan', 'unrolled', 'loop-peeled', 'loop', 'prescan', 'stream']


def case(make):
    CASES[make.__name__] = make
    return make


def node(op, ins, outs, **attrs):
    return H.make_node(op, ins.split(','), outs.split(','), f'{op}_{outs.split(",")[0]}', **attrs)


def build(nodes, shape, outputs, opset=17, ir=8, inits=None):
    inits = {k: np.asarray(v) for k, v in (inits or {}).items()}
    ins = [builder.value('x', shape)]
    if ir < 4:
        ins += [builder.value(k, v.shape, H.np_dtype_to_tensor_dtype(v.dtype)) for k, v in inits.items()]
    outs = [builder.value(o, None, t) for o, t in outputs.items()]
    m = builder.model(nodes, ins, outs, [builder.constant(k, v, None) for k, v in inits.items()], opset, ir, name='found')
    arrays = graph_gen.session(m.SerializeToString(), optimise=False).run(None, {'x': floats(*shape)})
    for o, a in zip(m.graph.output, arrays):      # the checker wants shapes
        o.CopyFrom(H.make_tensor_value_info(o.name, o.type.tensor_type.elem_type, a.shape))
    return m


def ints(*v):
    return np.array(v, np.int64)


def floats(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype('f4')


F, U8 = TP.FLOAT, TP.UINT8


@case
def split_counts_its_outputs():
    """A tile's Split left out the outputs nobody reads; ONNX Runtime then split into fewer parts."""
    return build([node('Split', 'x', 'a,b', axis=1, num_outputs=2), node('Relu', 'a', 'y')], [1, 50, 24], {'y': F}, opset=19)


@case
def split_uses_the_last_part():
    return build([node('Split', 'x,s', 'a,b,c', axis=1), node('Relu', 'b', 'y')], [1, 50, 24], {'y': F}, inits={'s': ints(10, 25, 15)})


@case
def integer_constants_before_opset_9():
    """A folded Shape became a Constant of int64, which opset 7 does not have."""
    return build([node('Relu', 'x', 'r'), node('Shape', 'r', 's'), node('Gather', 's,first', 'd'), node('Concat', 'd,rest', 't', axis=0),
                  node('Neg', 'r', 'y')], [4, 6, 20, 20], {'y': F, 't': TP.INT64}, opset=7, ir=3,
                 inits={'first': ints(0), 'rest': ints(-1)})


@case
def small_integer_weights_before_opset_9():
    """The same for uint8 weights."""
    return build([node('Relu', 'x', 'r'), node('Cast', 'r', 'i', to=U8), node('Concat', 'i,w', 'c', axis=2)], [2, 3, 40, 20], {'c': U8}, opset=7,
                 ir=3, inits={'w': np.arange(2 * 3 * 3 * 20, dtype='u1').reshape(2, 3, 3, 20)})


@case
def ceil_pool_without_a_last_window():
    """The last window would start in the end padding. The shape inference of older runtimes counts it: shapes that the
    rewriter wrote down then contradicted."""
    return build([node('Relu', 'x', 'r'), node('AveragePool', 'r', 'p', kernel_shape=[2, 3], strides=[3, 2], pads=[0, 1, 0, 1], ceil_mode=1),
                  node('Neg', 'p', 'y')], [2, 8, 3, 200], {'y': F}, opset=10, ir=5)


@case
def ceil_pool_cut_along_the_batch():
    return build([node('AveragePool', 'x', 'p', kernel_shape=[1, 2], dilations=[1, 3], strides=[2, 1], pads=[0, 1, 0, 1], ceil_mode=1),
                  node('Neg', 'p', 'y')], [64, 2, 4, 5], {'y': F}, opset=20, ir=9)


QUANT = {'s': np.float32(0.05), 'z': np.uint8(120)}


@case
def captured_behind_a_dequantize():
    """DequantizeLinear, Transpose, and a Loop that captures the result: ONNX Runtime dies while loading."""
    return build([node('ReduceMax', 'x', 'r', axes=[1, 2, 3], keepdims=0), node('QuantizeLinear', 'r,s,z', 'q'),
                  node('DequantizeLinear', 'q,s,z', 'd'), node('Unsqueeze', 'd,one', 'u'), node('Mul', 'x,u', 'm'), node('Sigmoid', 'm', 'y')],
                 [1, 6, 40, 20], {'y': F}, inits=dict(QUANT, one=ints(1)))


@case
def captured_before_a_quantize():
    """A value that a Loop captures and a Transpose moves towards a QuantizeLinear: ONNX Runtime quantized it for the Loop, too."""
    return build([node('ReduceMax', 'x', 'r', axes=[2], keepdims=0), node('Neg', 'r', 'n'), node('Transpose', 'n', 't', perm=[1, 0]), node('QuantizeLinear', 't,s,z', 'q'),
                  node('DequantizeLinear', 'q,s,z', 'd'), node('MatMul', 'n,w', 'm'), node('Add', 'm,b', 'y')], [1, 1, 20],
                 {'y': F, 'd': F}, inits=dict(QUANT, w=floats(1, 4), b=floats(4)))


@case
def pad_by_zeros_before_max_pool():
    """ONNX Runtime merges the two when the pool has explicit pads, and only then; the tile got them in place of auto_pad."""
    return build([node('Neg', 'x', 'n'), node('Pad', 'n,p', 'e'), node('MaxPool', 'e', 'y', kernel_shape=[3, 3], auto_pad='SAME_LOWER')],
                 [1, 4, 40, 30], {'y': F}, inits={'p': ints(0, 0, 2, 2, 0, 0, 2, 2)})


@case
def pad_read_twice_before_max_pool():
    return build([node('Pad', 'x,p', 'e'), node('MaxPool', 'e', 'm', kernel_shape=[3, 3]), node('Relu', 'e', 'r')], [1, 4, 40, 30],
                 {'m': F, 'r': F}, inits={'p': ints(0, 0, 1, 1, 0, 0, 1, 1)})


@case
def empty_piece_of_one_output():
    """Two outputs cut along the same axis, one shorter: tiles that had nothing of it stacked it all the same."""
    return build([node('Clip', 'x,lo,hi', 'c'), node('Sigmoid', 'c', 's'), node('Concat', 's,c', 'k', axis=1), node('Abs', 'k', 'y')],
                 [8, 6, 15, 22], {'y': F, 's': F}, opset=19, inits={'lo': np.float32(-1), 'hi': np.float32(1)})


@case
def region_whose_readers_are_folded():
    """Shape arithmetic on floats is no constant, but the integers made of it are: folding them left a loop without results."""
    return build([node('Shape', 'x', 's'), node('Cast', 's', 'f', to=F), node('Min', 'f,big', 'm'), node('Cast', 'm', 'i', to=TP.INT64),
                  node('Relu', 'x', 'r'), node('Reshape', 'r,i', 'y')], [1, 4, 60, 30], {'y': F}, opset=12, ir=7,
                 inits={'big': np.full(4, 1e6, 'f4')})


@case
def sequences_before_opset_13():
    """Loop carries tensors only before opset 13."""
    return build([node('Conv', 'x,w', 'c', pads=[1, 1, 1, 1]), node('Sigmoid', 'c', 'y')], [1, 4, 60, 30], {'y': F}, opset=11, ir=6,
                 inits={'w': floats(4, 4, 3, 3) / 6})


@case
def scratchpad_is_a_hard_limit():
    """The search estimates working sets; on a scratchpad the exact one was over and the run failed."""
    return build([node('Transpose', 'x', 't', perm=[0, 1, 3, 2]), node('MatMul', 'x,t', 'y')], [1, 6, 31, 7], {'y': F},
                 opset=11, ir=6)


@case
def resize_by_one_in_blocks():
    """In the engine, without a change of length on any axis, rows ran along the axis of channels and past the array's end."""
    return build([node('MaxPool', 'x', 'p', kernel_shape=[1]), node('Resize', 'p,s', 'y', mode='nearest')], [1, 43, 4], {'y': F},
                 opset=10, ir=5, inits={'s': np.ones(3, 'f4')})


@case
def resize_at_ties():
    """The engine took another neighbour than ONNX Runtime where a coordinate is in the middle but for the rounding of its scale."""
    near = dict(mode='nearest', coordinate_transformation_mode='half_pixel')
    return build([node('Resize', 'x,,s', 'r', nearest_mode='round_prefer_floor', **near),
                  node('Resize', 'r,,,n', 'y', nearest_mode='round_prefer_ceil', **near)], [1, 2, 45, 20], {'y': F},
                 opset=13, inits={'s': np.array([1, 1, 1.3, 1], 'f4'), 'n': np.array([1, 2, 58, 6])})


class Feeds:
    uneven_resize = False

    def feeds(self, model):
        dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        return {'x': floats(*dims, seed=2)}


def has_engine(tool):
    said = subprocess.run([tool, '--help'], capture_output=True, text=True, check=True).stdout
    return 'needs the native engine' not in said


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('names', nargs='*')
    p.add_argument('--tool', default='build/onnx-tile')
    o = p.parse_args()
    bad = n = regions = 0
    engine = 2 * has_engine(o.tool)
    for name, make in CASES.items():
        if o.names and name not in o.names:
            continue
        model = make()
        for form in FORMS:
            for l2, target, goal in (('1K', 'cpu-generic', 'memory'), ('4K', 'cpu-generic', 'time'), ('16K', 'mcu-512k', 'time'),
                                     ('1K', 'tlf-16m', 'memory')):
                args = ['--force', '--l2', l2, '--target', target, '--goal', goal] + (['--form', form] if form else [])
                n += 1
                with tempfile.TemporaryDirectory() as tmp:
                    try:
                        verdict, found = random_graphs.check_model(os.path.abspath(o.tool), model, Feeds(), args, [], tmp,
                                                                   engine=engine)
                        regions += found
                        if verdict != 'ok':
                            raise random_graphs.Failed(verdict)
                    except random_graphs.Failed as e:
                        bad += 1
                        print(f'FAIL {name} ({" ".join(args)}): {e}')
    print(f'found before: {n - bad} passed, {bad} failed; {regions} tiled regions')
    return 1 if bad or not n else 0


if __name__ == '__main__':
    sys.exit(main())
