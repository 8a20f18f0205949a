"""Cases of sweep.py beside include/ops.def: operators of com.microsoft, and of the standard, that have a slice relation of their own.

    OTHERS: name of a case, its operator in front -> (function of (Kit, input) to output, types, opset)
"""
import os
import re

import numpy as np
from onnx import TensorProto as T

MS = 'com.microsoft'
FLOATS, BYTES = ('FLOAT', 'FLOAT16', 'DOUBLE', 'BFLOAT16'), ('UINT8', 'INT8')
ROWS = [2, 384, 64]  # of what transformers have: batch, rows, width


def ms(op, *shapes, n_out=1, rows=False, **attrs):
    """op of com.microsoft over x and weights of these shapes."""
    def build(net, x):
        x = net.reshape(x, ROWS) if rows else x
        return net.many(op, n_out, x, *[net.weight(s) for s in shapes], domain=MS, **attrs)[0]
    return build


def scaled(net, v):
    """v with its scale and zero point."""
    return [v, net.tensor(np.float32(.1), T.FLOAT), net.number((), 0, 2)]


def of_bytes(op, operands=1, **attrs):
    """A quantised operator: triples of operands, then the result's scale and zero point."""
    def build(net, x):
        return net.op(op, *[i for _ in range(operands) for i in scaled(net, x)], *scaled(net, '')[1:], domain=MS, **attrs)
    return build


def skip(op, *shapes):
    def build(net, x):
        x = net.reshape(x, ROWS)
        return net.op(op, x, net.op('Neg', x), *[net.weight(s) for s in shapes], domain=MS)
    return build


def heads(net, x):
    x = net.reshape(x, ROWS)
    return net.op('MultiHeadAttention', x, net.op('Neg', x), net.op('Mul', x, x), num_heads=4, domain=MS)


def groups(net, x):
    x = net.reshape(x, ROWS)
    k, v = [net.op('MatMul', x, net.weight((64, 32))) for _ in range(2)]
    last, rows = net.tensor([ROWS[1] - 1] * ROWS[0], T.INT32), net.tensor(ROWS[1], T.INT32)
    return net.many('GroupQueryAttention', 3, x, k, v, '', '', last, rows, num_heads=4, kv_num_heads=2, domain=MS)[0]


def embedding(net, x):
    most = net.op('ReduceMax', net.reshape(net.op('Cast', x, to=T.FLOAT), ROWS), net.ints(2), keepdims=0)
    words = net.op('Clip', net.op('Cast', most, to=T.INT32), net.tensor(0, T.INT32), net.tensor(15, T.INT32))
    tables = [net.weight(s) for s in ((16, 64), (ROWS[1], 64))]
    return net.many('EmbedLayerNormalization', 2, words, '', *tables, '', net.weight((64,)), net.weight((64,)), domain=MS)[0]


def turned(domain):
    """RotaryEmbedding: of com.microsoft by positions; of the standard by a table for each row."""
    def build(net, x):
        if domain:
            where = net.tensor([list(range(ROWS[1]))] * ROWS[0], T.INT64)
            return net.op('RotaryEmbedding', net.reshape(x, ROWS), where, *[net.weight((ROWS[1], 8)) for _ in range(2)], num_heads=4, domain=domain)
        return net.op('RotaryEmbedding', net.reshape(x, [2, 4, 384, 16]), *[net.weight((2, 384, 8)) for _ in range(2)])
    return build


def few_bits(net, x):
    weights = [net.number((64, 2, 16), 0, 255, T.UINT8), net.weight((64, 2))]
    return net.op('MatMulNBits', net.reshape(x, ROWS), *weights, K=64, N=64, bits=4, block_size=32, domain=MS)


def bytes_attention(net, x):
    one = [net.tensor(np.float32(.1), T.FLOAT)] * 2
    weights = [net.number((64, 192)), net.tensor(np.zeros(192), T.FLOAT)]
    return net.op('QAttention', net.reshape(x, ROWS), *weights, *one, '', net.number(()), net.number(()), num_heads=4, domain=MS)


def bytes_product(net, x):
    a, b = scaled(net, net.reshape(x, ROWS)), scaled(net, net.number((64, 64)))
    return net.op('MatMulIntegerToFloat', a[0], b[0], a[1], b[1], a[2], b[2], domain=MS)


def bytes_gemm(net, x):
    a, b = scaled(net, net.reshape(x, [768, 64])), scaled(net, net.number((64, 64)))
    return net.op('QGemm', *a, *b, '', *scaled(net, '')[1:], domain=MS)


def bytes_concat(net, x):
    return net.op('QLinearConcat', *scaled(net, '')[1:], *scaled(net, x), *scaled(net, x), axis=1, domain=MS)


def to_bytes(net, x):
    scale, zero = net.tensor(np.float32(.1), T.FLOAT), net.number((), 0, 2)
    return net.op('QuantizeLinear', net.op('Cast', x, to=T.FLOAT), scale, zero, domain=MS)


def loss(op):
    return lambda n, x: n.op(op, x, n.op('ArgMax', x, axis=1, keepdims=0), reduction='none')


def columns(net, x):
    return net.op('Col2Im', net.reshape(x, [2, 48, 512]), net.ints(32, 64), net.ints(2, 2), strides=[2, 2])


def written_cache(net, x):
    return net.op('TensorScatter', net.reshape(x, [2, 4, 384, 16]), net.weight((2, 4, 16, 16)), net.ints(3, 5))


def frames(net, x):
    return net.op('STFT', net.reshape(x, [2, 24576, 1]), net.ints(64, scalar=True), '', net.ints(128, scalar=True))


OTHERS = {
    **{f'{MS}.{op}': (build, FLOATS, 21) for op, build in {
        'Gelu': ms('Gelu'), 'FastGelu': ms('FastGelu', (64,)), 'QuickGelu': ms('QuickGelu', alpha=1.5), 'BiasGelu': ms('BiasGelu', (64,)),
        'FusedConv': ms('FusedConv', (8, 8, 3, 3), (8,), activation='Relu', pads=[1] * 4),
        'FusedMatMul': ms('FusedMatMul', (64, 64), alpha=.5, transB=1),
        'SkipLayerNormalization': skip('SkipLayerNormalization', (64,), (64,)),
        'SkipSimplifiedLayerNormalization': skip('SkipSimplifiedLayerNormalization', (64,)),
        'Attention': ms('Attention', (64, 192), (192,), rows=True, num_heads=4),
        'MultiHeadAttention': heads, 'GroupQueryAttention': groups, 'EmbedLayerNormalization': embedding,
        'RotaryEmbedding': turned(MS), 'MatMulNBits': few_bits}.items()},
    **{f'{MS}.{op}': (build, BYTES, 21) for op, build in {
        'QLinearAdd': of_bytes('QLinearAdd', 2), 'QLinearMul': of_bytes('QLinearMul', 2), 'QLinearLeakyRelu': of_bytes('QLinearLeakyRelu'),
        'QLinearSigmoid': of_bytes('QLinearSigmoid'), 'QLinearSoftmax': of_bytes('QLinearSoftmax', opset=13),
        'QLinearAveragePool': of_bytes('QLinearAveragePool', kernel_shape=[3, 3], pads=[1] * 4),
        'QLinearGlobalAveragePool': of_bytes('QLinearGlobalAveragePool'), 'QLinearConcat': bytes_concat, 'QuantizeLinear': to_bytes,
        'DequantizeLinear': lambda n, x: n.op('DequantizeLinear', *scaled(n, x), domain=MS), 'QAttention': bytes_attention,
        'MatMulIntegerToFloat': bytes_product, 'QGemm': bytes_gemm}.items()},
    'BitCast': (lambda n, x: n.op('BitCast', x, to=T.INT32), ('FLOAT',), 26),
    'CenterCropPad': (lambda n, x: n.op('CenterCropPad', x, n.ints(40, 70), axes=[2, 3]), FLOATS, 21),
    'Col2Im': (columns, FLOATS, 21),
    'CumProd': (lambda n, x: n.op('CumProd', x, n.ints(1, scalar=True)), FLOATS, 26),
    'DFT': (lambda n, x: n.op('DFT', n.reshape(x, [2, 384, 64, 1]), '', n.ints(2, scalar=True)), FLOATS, 21),
    'MaxRoiPool': (lambda n, x: n.op('MaxRoiPool', x, n.tensor([[0, 0, 0, 9, 9], [1, 2, 3, 30, 40]], n.type), pooled_shape=[4, 4]), FLOATS, 21),
    'NegativeLogLikelihoodLoss': (loss('NegativeLogLikelihoodLoss'), FLOATS, 21),
    'RotaryEmbedding': (turned(''), FLOATS, 23),
    'STFT': (frames, FLOATS, 21),
    'SoftmaxCrossEntropyLoss': (loss('SoftmaxCrossEntropyLoss'), FLOATS, 21),
    'TensorScatter': (written_cache, FLOATS, 24),
}
# Rows without a case: why.
REASONS = {
    'CausalConvWithState': 'no kernel in ONNX Runtime', 'LinearAttention': 'no kernel in ONNX Runtime',
    'SimplifiedLayerNormalization': 'no operator of the standard: the checker refuses what ONNX Runtime takes',
}


def rows(root):
    """Names of operators, of com.microsoft with their domain, that have a slice relation outside of ops.def."""
    def table(file, domain):
        with open(os.path.join(root, 'src', 'ops', file)) as f: text = f.read()
        return [domain + o for o in re.findall(r'^    \{"(\w+)", (?!OT_WHY_)', text, re.M)]
    found = [table(*x) for x in (('access_contrib.c', f'{MS}.'), ('access_transformers.c', f'{MS}.'), ('access_extra.c', ''))]
    if not all(found): raise ValueError('a table of src/ops has no rows of the form {"Name", ...}')
    return [o for t in found for o in t]
