"""What verify.sh has in Python."""
import numpy as np
from onnx import helper

from builder import Net, TensorProto, conv_chain, save, value
from command_line import commands


def models(d):
    """net, external (weights beside it), large (likewise, too large for the message), free, faint, strange: three convolutions, and what follows."""
    tail = [('Relu', {}), ('GlobalAveragePool', {}), ('Tanh', {})]
    for name, extents, outside in (('net', (1, 64, 64), None), ('external', (1, 64, 64), 'external.bin'), ('free', ('n', 'h', 64), None)):
        save(conv_chain([4] * 3, 4, extents, scale=.2, tail=tail), f'{d}/{name}.onnx', outside)
    save(conv_chain([32] * 3, 4, (1, 64, 64)), f'{d}/large.onnx', 'large.bin')
    faint = Net(seed=1, dtype=TensorProto.FLOAT16)  # probabilities next to the least that half precision has
    v = faint.op('Cast', faint.input('x', [1, 8, 256, 256], TensorProto.FLOAT), to=TensorProto.FLOAT16)
    for _ in range(3):
        v = faint.op('Relu', faint.conv(v, 8, 8, pads=[1] * 4))
    v = faint.op('Cast', faint.op('Sigmoid', faint.op('ConvTranspose', v, faint.const(-faint.rng.random((8, 8, 2, 2))), faint.const(np.full(8, -17)),
                                                      strides=[2, 2])), to=TensorProto.FLOAT)
    faint.output(v, [1, 8, 512, 512], TensorProto.FLOAT)
    save(faint.model(), f'{d}/faint.onnx')
    strange = conv_chain([4] * 3, 4, (1, 64, 64), scale=.2, act='Relu')
    strange.graph.node.append(helper.make_node('Strange', ['y'], ['odd'], 'odd', domain='here'))
    strange.graph.output[0].CopyFrom(value('odd', None))
    strange.opset_import.append(helper.make_opsetid('here', 1))
    save(strange, f'{d}/strange.onnx')


if __name__ == '__main__':
    commands(models)
