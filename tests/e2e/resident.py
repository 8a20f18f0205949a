"""What resident.sh has in Python, but for what it measures: its models, and outputs."""
import sys

import numpy as np
import onnx

from builder import Net
from command_line import commands


def models(folder):
    """whole, outside: 65 MB of weights, in the file and beside it."""
    net = Net(1)

    def weight(*dims):
        return net.const((net.rng.random(dims, 'f4') - .5) / np.sqrt(np.prod(dims[1:])).astype('f4'))

    def conv(x, m, c, k):
        norm = [*(weight(m) for _ in range(3)), net.const(np.ones(m))]
        y = net.op('Conv', x, weight(m, c, k, k), pads=[k // 2] * 4)
        return net.op('Relu', net.op('BatchNormalization', y, *norm))

    v = conv(net.input('x', [4, 64, 16, 16]), 512, 64, 3)
    for _ in range(3):
        v = conv(v, 512, 512, 3)
    v = net.op('Flatten', net.op('GlobalAveragePool', conv(v, 1024, 512, 1)))
    v = net.op('Gemm', v, weight(4096, 1024), transB=1)
    net.op('MatMul', v, weight(4096, 1000), out='y')
    net.output('y', [4, 1000])
    m = net.model()
    onnx.save(m, f'{folder}/whole.onnx')
    onnx.save(m, f'{folder}/outside.onnx', save_as_external_data=True, location='outside.bin', size_threshold=1024)


def compare(reference, *folders):
    """Outputs of all folders are those of the reference."""
    want = np.load(reference + '/0.npy')
    for d in folders:
        got = np.load(d + '/0.npy')
        if not np.allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max()):
            sys.exit(f'{d}: differs by {np.abs(got - want).max()} of {np.abs(want).max()}')


if __name__ == '__main__':
    commands(models, compare)
