"""What other_size.sh has in Python."""
import numpy as np
import onnx

from checks import input_extents
from command_line import commands


def larger(path):
    """Print a larger shape of the model's input, as --shape takes it."""
    m = onnx.load(path)
    n, c, h, w = input_extents(m)
    print(f'{m.graph.input[0].name}={n},{c},{h * 2},{w + 8}')


def extents(folder, shape):
    """Written files have the extents that were given, also where nothing is tiled."""
    want = [int(d) for d in shape.split('=')[1].split(',')]
    for name in ('a', 'untouched'):  # also when nothing is tiled
        m = onnx.load('%s/%s.onnx' % (folder, name))
        onnx.shape_inference.infer_shapes(m, strict_mode=True, check_type=True)
        assert input_extents(m) == want, (name, m.graph.input[0])


def same(folder):
    """Arrays of the folders one and two are the same."""
    a, b = (np.load('%s/%s/0.npy' % (folder, k)) for k in ('one', 'two'))
    assert a.shape == b.shape and np.abs(a - b).max() <= 1e-4 * np.abs(a).max(), (a.shape, b.shape)


if __name__ == '__main__':
    commands(larger, extents, same)
