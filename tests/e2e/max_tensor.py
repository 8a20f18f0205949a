"""What max_tensor.sh has in Python."""
import numpy as np

from builder import Net, save
from command_line import commands


def models(folder):
    """softmax: a node that needs all of its input; relu: two convolutions at a free batch."""
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


if __name__ == '__main__':
    commands(models)
