"""What max_tensor.sh has in Python."""
import numpy as np

from builder import Net, save
from command_line import commands


def models(folder):
    """softmax: a node that needs all of its input; relu: two convolutions at a free batch; pooled, gated: a map that is multiplied by what is pooled of it,
    made by two convolutions, and by three;
    norm: a map that is normalised as a whole."""
    for name, batch in ('softmax', 1), ('relu', 'n'):
        net = Net()
        v = net.op('Conv', net.input('x', [batch, 4, 64, 64]), net.const(np.ones((32, 4, 3, 3))), name='wide', pads=[1] * 4)
        if name == 'softmax':
            v = net.op('Softmax', net.op('Flatten', v), name='needs_all')
            net.op('ReduceSum', v, out='y', name='sum')
        else:
            net.op('Conv', net.op('Relu', v), net.const(np.ones((1, 32, 1, 1))), out='y', name='narrow')
        net.output('y')
        save(net.model(), f'{folder}/{name}.onnx')
    for name, convolutions in ('pooled', 2), ('gated', 3):
        net = Net()
        v, c = net.input('x', [1, 3, 512, 512]), 3
        for _ in range(convolutions):
            v, c = net.op('Relu', net.conv(v, c, 16, pads=[1] * 4)), 16
        s = net.op('Relu', net.conv(net.op('GlobalAveragePool', v, name='pool'), 16, 4, k=1))
        v = net.op('Mul', v, net.op('Sigmoid', net.conv(s, 4, 16, k=1)))
        net.output(net.op('MaxPool', net.conv(v, 16, 4, pads=[1] * 4), kernel_shape=[8, 8], strides=[8, 8]))
        save(net.model(), f'{folder}/{name}.onnx')
    net = Net()
    v = net.conv(net.input('x', [1, 3, 384, 512]), 3, 16, pads=[1] * 4)
    v = net.op('Relu', net.op('InstanceNormalization', v, net.const([1] * 16), net.const([0] * 16)))
    net.output(net.conv(v, 16, 1, pads=[1] * 4))
    save(net.model(), f'{folder}/norm.onnx')


if __name__ == '__main__':
    commands(models)
