"""What free_sizes.sh has in Python."""
from builder import Net, TensorProto, attention, save
from command_line import commands


def models(folder):
    """Tokens, integers, a line; and maps of which one size alone is taken."""
    save(attention(tokens='t'), f'{folder}/tokens.onnx')
    net = Net()
    table = net.const(net.rng.normal(0, 1, (30, 16)))
    net.output(net.op('Relu', net.op('Gather', table, net.input('ids', ['b', 't'], TensorProto.INT64))), ['b', 't', 16])
    save(net.model(), f'{folder}/ids.onnx')
    net = Net()
    w = net.const(net.rng.normal(0, .3, (8, 1, 5)))
    net.output(net.op('Relu', net.op('Conv', net.input('x', ['n', 1, 't']), w, pads=[2, 2])), ['n', 8, 't'])
    save(net.model(), f'{folder}/line.onnx')
    net = Net()
    y = net.op('Relu', net.conv(net.input('x', ['n', 3, 'h', 'w']), 3, 8, pads=[1] * 4))
    net.output(net.op('Add', y, net.uniform((1, 8, 64, 64))), None)
    save(net.model(), f'{folder}/only64.onnx')


if __name__ == '__main__':
    commands(models)
