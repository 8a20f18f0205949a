"""What free_sizes.sh has in Python."""
from builder import Net, TensorProto, attention, save
from command_line import commands


def models(folder):
    """Tokens, integers, a line, a volume, two images, nameless bytes; and maps of which one size alone is taken."""
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
    net = Net()
    y = net.op('Conv', net.input('x', ['n', 1, 'd', 'h', 'w']), net.uniform((2, 1, 3, 3, 3)), pads=[1] * 6)
    net.output(net.op('Relu', y), ['n', 2, 'd', 'h', 'w'])
    save(net.model(), f'{folder}/volume.onnx')
    net = Net()
    y = net.op('Concat', *(net.input(x, ['n', 3, 'h', 'w']) for x in ('left', 'right')), axis=1)
    net.output(net.op('Relu', net.conv(y, 6, 4, pads=[1] * 4)), ['n', 4, 'h', 'w'])
    save(net.model(), f'{folder}/pair.onnx')
    net = Net()
    y = net.op('Transpose', net.op('Cast', net.input('x', [None, None, None, 3], TensorProto.UINT8), to=1), perm=[0, 3, 1, 2])
    y = net.op('ArgMax', net.conv(y, 3, 4, pads=[1] * 4), axis=1, keepdims=0)
    net.output(y, [None, None, None], TensorProto.INT64)
    save(net.model(), f'{folder}/bytes.onnx')


if __name__ == '__main__':
    commands(models)
