"""What verify.sh has in Python."""
from onnx import helper

from builder import conv_chain, save, value
from command_line import commands


def models(d):
    """net, external (weights beside it), large (likewise, too large for the message), free, strange: three convolutions, and what follows."""
    tail = [('Relu', {}), ('GlobalAveragePool', {}), ('Tanh', {})]
    for name, extents, outside in (('net', (1, 64, 64), None), ('external', (1, 64, 64), 'external.bin'), ('free', ('n', 'h', 64), None)):
        save(conv_chain([4] * 3, 4, extents, scale=.2, tail=tail), f'{d}/{name}.onnx', outside)
    save(conv_chain([32] * 3, 4, (1, 64, 64)), f'{d}/large.onnx', 'large.bin')
    strange = conv_chain([4] * 3, 4, (1, 64, 64), scale=.2, act='Relu')
    strange.graph.node.append(helper.make_node('Strange', ['y'], ['odd'], 'odd', domain='here'))
    strange.graph.output[0].CopyFrom(value('odd', None))
    strange.opset_import.append(helper.make_opsetid('here', 1))
    save(strange, f'{d}/strange.onnx')


if __name__ == '__main__':
    commands(models)
