"""Networks around operators that are cut along axes of their own. cut_operators.py TOOL FOLDER [NAME]

Each is judged by what ONNX Runtime computes of it as it was, of what the tool writes for memory and in small tiles, and by what the
engine computes of its own form. Where memory is the point, the predicted growth is at most `share` of the untiled model's.
"""
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from builder import Net, save
from checks import outputs

INT64 = onnx.TensorProto.INT64
FORMS = [('--goal', 'memory'), ('--force', '--l2', '16K'), ('--force', '--l2', '64K', '--goal', 'memory')]
CASES = {}


def case(share=None, tol=1e-5, opset=17, engine=True, holds=()):
    """share: of growth that is left for goal memory at most; None: not asked. holds: operators of com.microsoft that ONNX Runtime saves the
    model with, optimised, which is judged in its place."""
    def add(make):
        CASES[make.__name__] = make, share, tol, opset, engine, holds
        return make
    return add


# ---- repeated ----

@case(share=.1)
def expand_mask(net):
    """Attention under a mask that is expanded along all rows."""
    x, mask = net.input('x', [1, 2048, 32]), net.input('m', [1, 1, 2048])
    scores = net.op('Softmax', net.op('MatMul', x, net.op('Transpose', x, perm=[0, 2, 1])), axis=-1)
    seen = net.op('Mul', scores, net.op('Expand', mask, net.const([1, 2048, 2048], 'i8')))
    net.output(net.op('MatMul', seen, x), [1, 2048, 32])


@case(share=.2)
def expand_inside(net):
    """A row that the network itself makes, repeated over all rows, between convolutions, along an axis that the row lacks as well."""
    x = net.input('x', [1, 4, 512, 64])
    row = net.op('Relu', net.input('r', [8, 1, 64]))
    a = net.op('Relu', net.conv(x, 4, 8, pads=[1] * 4))
    b = net.op('Concat', a, net.op('Expand', row, net.const([1, 8, 512, 64], 'i8')), axis=1)
    net.output(net.conv(net.op('Sigmoid', b), 16, 2, pads=[1] * 4), [1, 2, 512, 64])


@case(share=.4)
def tile_rows(net):
    """One row, repeated 512 times."""
    x, row = net.input('x', [1, 8, 512, 64]), net.input('r', [1, 8, 1, 64])
    a = net.op('Add', net.op('Relu', x), net.op('Tile', row, net.const([1, 1, 512, 1], 'i8')))
    net.output(net.conv(net.op('Tanh', a), 8, 2, pads=[1] * 4), [1, 2, 512, 64])


@case()
def tile_copies(net):
    """Three copies of a picture below each other, and two beside each other."""
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 40, 24]), 3, 4, pads=[1] * 4))
    y = net.op('Tile', x, net.const([1, 1, 3, 2], 'i8'))
    net.output(net.conv(net.op('Sigmoid', y), 4, 2, pads=[1] * 4), [1, 2, 120, 48])


# ---- batches ----

@case(share=.4)
def top_classes(net):
    """The best three of many classes, resized to the picture."""
    x = net.op('Relu', net.conv(net.input('x', [1, 4, 48, 48]), 4, 48, pads=[1] * 4))
    large = net.op('Resize', x, '', net.const([1, 1, 4, 4]), mode='linear')
    best, at = net.fresh(), net.fresh()
    net.nodes.append(helper.make_node('TopK', [large, net.const([3], 'i8')], [best, at], axis=1))
    net.output(net.op('Sigmoid', best), [1, 3, 192, 192])
    net.output(net.op('Identity', at), [1, 3, 192, 192], INT64)


@case(share=.4)
def top_numbers(net):
    """The numbers of the best three, of which the values are not read."""
    x = net.op('Relu', net.conv(net.input('x', [1, 4, 48, 48]), 4, 48, pads=[1] * 4))
    large = net.op('Resize', x, '', net.const([1, 1, 4, 4]), mode='linear')
    best, at = net.fresh(), net.fresh()
    net.nodes.append(helper.make_node('TopK', [large, net.const([3], 'i8')], [best, at], axis=1))
    net.output(net.op('Identity', at), [1, 3, 192, 192], INT64)


@case(share=.25)
def coded_labels(net):
    """Labels as planes of ones and zeros, a convolution behind them."""
    x = net.input('x', [1, 256, 64], INT64)
    planes = net.op('OneHot', x, net.const(32, 'i8'), net.const([0, 1]), axis=1)
    net.output(net.conv(net.op('Sigmoid', planes), 32, 2, pads=[1] * 4), [1, 2, 256, 64])


@case(share=.3)
def neighbours(net):
    """Rows of neighbours, gathered out of an expanded copy of all of them."""
    x, at = net.input('x', [1, 1, 256, 32]), net.input('at', [1, 256, 8, 1], INT64)
    every = net.op('Expand', x, net.const([1, 256, 256, 32], 'i8'))
    rows = net.op('GatherElements', every, net.op('Expand', at, net.const([1, 256, 8, 32], 'i8')), axis=2)
    net.output(net.reduce('ReduceMax', net.op('Relu', rows), [2], keepdims=0), [1, 256, 32])


@case()
def gathered_points(net):
    """Points of each picture of a batch."""
    x, at = net.input('x', [8, 64, 16]), net.input('at', [8, 32, 1], INT64)
    y = net.op('GatherND', net.op('Tanh', x), at, batch_dims=1)
    net.output(net.op('Relu', net.op('ScatterElements', y, at_rows(net, at), net.op('Neg', y), axis=1)), [8, 32, 16])


def at_rows(net, at):
    return net.op('Expand', at, net.const([8, 32, 16], 'i8'))


@case(share=.6)
def sampled_picture(net):
    """A flow between two pictures: the image whole, the result by rows."""
    x, grid = net.input('x', [1, 8, 64, 64]), net.input('grid', [1, 512, 64, 2])
    y = net.op('GridSample', x, net.op('Tanh', grid), mode='bilinear', padding_mode='border', align_corners=1)
    net.output(net.conv(net.op('Sigmoid', y), 8, 2, pads=[1] * 4), [1, 2, 512, 64])


@case(opset=19)
def deformed(net):
    """Deformed convolutions of a batch."""
    x, at = net.input('x', [6, 3, 16, 16]), net.input('at', [6, 18, 16, 16])
    w = net.const(net.rng.normal(0, .2, (4, 3, 3, 3)))
    y = net.op('DeformConv', net.op('Relu', x), w, net.op('Tanh', at), pads=[1] * 4, kernel_shape=[3, 3])
    net.output(net.op('Sigmoid', y), [6, 4, 16, 16])


@case()
def boxes(net):
    """What lies in boxes, box by box."""
    x, at = net.input('x', [1, 8, 32, 32]), net.input('rois', [64, 4])
    rois = net.op('Abs', net.op('Mul', at, net.const(8)))
    y = net.op('RoiAlign', x, rois, net.const(np.zeros(64), 'i8'), output_height=7, output_width=7, sampling_ratio=2)
    net.output(net.op('Relu', net.conv(net.op('Tanh', y), 8, 4, pads=[1] * 4)), [64, 4, 7, 7])


@case(tol=1e-4)
def recurrence(net):
    """A recurrence over short sequences of a large batch."""
    x, (w, r) = net.input('x', [8, 64, 16]), ((net.const(net.rng.normal(0, .2, (1, 64, 16)))) for _ in range(2))
    y, last = net.fresh(), net.fresh()
    net.nodes.append(helper.make_node('LSTM', [net.op('Tanh', x), w, r], [y, last], hidden_size=16))
    net.output(net.op('Relu', y), [8, 1, 64, 16])


# ---- what ONNX Runtime's optimiser writes ----

@case(share=.55, holds=['FusedConv'])
def fused_convolutions(net):
    """Convolutions with activations, and one that is added to another."""
    x = net.op('Relu', net.conv(net.input('x', [1, 3, 160, 128]), 3, 16, bias=.1, pads=[1] * 4))
    y = net.op('Relu', net.conv(x, 16, 16, bias=.1, pads=[1] * 4))
    y = net.op('LeakyRelu', net.conv(y, 16, 16, bias=.1, pads=[1] * 4), alpha=.1)
    y = net.op('Relu', net.op('Add', net.conv(y, 16, 16, bias=.1, pads=[1] * 4), x))
    net.output(net.conv(y, 16, 1, bias=.1, pads=[1] * 4), [1, 1, 160, 128])


@case(share=.5, tol=1e-4, holds=['SkipLayerNormalization', 'Gelu'])
def fused_block(net):
    """The second half of a transformer block."""
    wide, rows, v = 64, 1024, net.input('x', [1, 1024, 64])
    for _ in range(2):
        h = net.op('Add', net.op('MatMul', v, net.const(net.rng.normal(0, .1, (wide, 4 * wide)))), net.uniform(4 * wide))
        part = net.op('Add', net.op('Erf', net.op('Div', h, net.const(2 ** .5))), net.const(1))
        h = net.op('Mul', net.op('Mul', h, part), net.const(.5))
        h = net.op('Add', net.op('MatMul', h, net.const(net.rng.normal(0, .1, (4 * wide, wide)))), net.uniform(wide))
        v = net.op('LayerNormalization', net.op('Add', h, v), net.uniform(wide), net.uniform(wide), axis=-1, epsilon=1e-5)
    net.output(v, [1, rows, wide])


@case(share=.5, tol=.02, holds=['QLinearConcat', 'QLinearAdd'])
def fused_bytes(net):
    """Quantised convolutions, a sum of two and a Concat of both."""
    def quantised(v, scale=.05):
        number = net.const(scale), net.const(128, 'u1')
        return net.op('DequantizeLinear', net.op('QuantizeLinear', v, *number), *number)

    def conv(v, c_in, c_out):
        w = net.const(net.rng.integers(-100, 100, (c_out, c_in, 3, 3)), 'i1')
        return net.op('Conv', v, net.op('DequantizeLinear', w, net.const(.003), net.const(0, 'i1')), pads=[1] * 4)
    x = quantised(net.input('x', [1, 3, 256, 192]))
    a = quantised(conv(x, 3, 16))
    b = quantised(conv(a, 16, 16))
    total = quantised(net.op('Add', a, b))
    both = quantised(net.op('Concat', total, b, axis=1))
    net.output(quantised(conv(both, 32, 2)), [1, 2, 256, 192])


# ---- the judge ----

def optimised(path, holds):
    """The file as ONNX Runtime saves it, which holds these operators."""
    options, out = ort.SessionOptions(), path.replace('.onnx', '_ort.onnx')
    options.optimized_model_filepath, options.log_severity_level = out, 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    kinds = {n.op_type for n in onnx.load(out).graph.node if n.domain == 'com.microsoft'}
    if not set(holds) <= kinds: sys.exit(f'{path}: ONNX Runtime writes {kinds}, not {holds}')
    return out


def feeds_of(model, rng):
    kinds = {onnx.TensorProto.FLOAT: lambda d: rng.standard_normal(d).astype('f4'), onnx.TensorProto.INT64: lambda d: rng.integers(0, 4, d)}
    fed = {}
    for v in model.graph.input:
        t = v.type.tensor_type
        fed[v.name] = kinds[t.elem_type]([d.dim_value for d in t.shape.dim])
    return fed


def call(*words):
    p = subprocess.run(words, capture_output=True, text=True)
    if p.returncode: sys.exit(f'{" ".join(words)}: exit {p.returncode}: {p.stderr}')
    return p.stdout


def same(name, got, want, tol):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype: sys.exit(f'{name}: output {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}')
        if b.dtype.kind != 'f' or tol == 0:
            if not np.array_equal(a, b): sys.exit(f'{name}: output {k} differs')
            continue
        error = np.abs(a.astype('f8') - b).max() / max(np.abs(b).max(), 1e-30)
        if not error <= tol: sys.exit(f'{name}: output {k} is off by {error:.1e}')


def judge(name, tool, d):
    make, share, tol, opset, engine, holds = CASES[name]
    net = Net([11, *name.encode()], opset=opset)
    make(net)
    path, out = save(net.model(), f'{d}/{name}.onnx'), f'{d}/{name}_out.onnx'
    if holds: path = optimised(path, holds)
    fed = feeds_of(onnx.load(path), np.random.default_rng(3))
    want = outputs(path, fed)
    left = None
    for options in FORMS:
        facts = json.loads(call(tool, path, '-o', out, '--threads', '1', '--target', 'cpu-generic', '--json', *options))
        m = onnx.load(out)
        if not holds: onnx.checker.check_model(m, full_check=True)
        same(f'{name} {" ".join(options)}', outputs(out, fed), want, tol)
        if options == FORMS[0]: left = facts['tiled']['growth_bytes'] / facts['untiled']['growth_bytes']
        elif not facts['regions']: sys.exit(f'{name} {" ".join(options)}: no region')
    if engine: call(tool, path, '-o', out, '-q', '--threads', '1', '--emit', 'engine', '--force', '--l2', '16K', '--verify')
    print(f'{name}: x{left:.2f}')
    if share is not None and left > share: sys.exit(f'{name}: x{left:.2f} is left, not x{share}')


tool, folder, only = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ''
for each in CASES:
    if only in each: judge(each, tool, folder)
