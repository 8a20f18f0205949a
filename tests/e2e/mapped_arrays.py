"""What mapped_arrays.sh has in Python: networks and arrays, files that change during a run."""
import glob
import os
import signal
import subprocess
import time

import numpy as np

from onnx import TensorProto, helper

from builder import Net, save, value
from command_line import commands

SHAPES = [(1, 3, 400, 392), (2, 2, 260, 300), (1, 320, 330, 3), (1, 4, 7000, 24)]


def segmentation(net, x, c_in):
    """A U-Net of two levels."""
    a = net.op('Relu', net.conv(x, c_in, 4, bias=.1, pads=[1] * 4))
    b = net.op('MaxPool', a, kernel_shape=[2, 2], strides=[2, 2])
    b = net.op('Relu', net.conv(b, 4, 8, bias=.1, pads=[1] * 4))
    b = net.op('Resize', b, '', net.const([1, 1, 2, 2]), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    return net.op('Sigmoid', net.conv(net.op('Concat', a, b, axis=1), 12, 2, k=1))


def last_channel(net, x, c_in):
    """Rows are axis 1: a convolution between two Transposes."""
    v = net.conv(net.op('Transpose', x, perm=[0, 3, 1, 2]), c_in, 3, bias=.1, pads=[1] * 4)
    return net.op('Transpose', net.op('Relu', v), perm=[0, 2, 3, 1])


def stacked(net, x, c_in):
    """The input is read once more at the end."""
    v = x
    for _ in range(3):
        v = net.op('Relu', net.conv(v, c_in, c_in, bias=.1, pads=[1] * 4))
    return net.op('Add', v, x)


def networks():
    for k, (shape, kind) in enumerate(zip(SHAPES, (segmentation, stacked, last_channel, stacked))):
        net = Net(seed=k)
        channel = 3 if kind == last_channel else 1
        free = [n if i in (0, channel) else f'd{i}' for i, n in enumerate(shape)]
        x = net.input('x', free)
        net.op('Identity', kind(net, x, shape[channel]), out='y')
        net.output('y')
        m = net.model()
        save(m, f'net{k}.onnx')
        open(f'shape{k}', 'w').write(','.join(map(str, shape)))
        a = np.random.default_rng(k).standard_normal(shape).astype('f4')
        np.save(f'x{k}.npy', a)
        a.tofile(f'x{k}.raw')
    net = Net()
    x = net.input('x', [1, 1, 600, 600])
    for out, op in (('y', 'Relu'), ('z', 'Neg')):
        net.op(op, x, out=out)
        net.output(out, [1, 1, 600, 600])
    save(net.model(), 'two.onnx')
    others()


def others():
    """half: its input is of half precision; sum: of two inputs, one of whole numbers; branch: an If reads its input."""
    net = Net(dtype=TensorProto.FLOAT16)
    net.op('Identity', net.input('x', SHAPES[3]), out='y')
    net.output('y', SHAPES[3])
    save(net.model(), 'half.onnx')
    net = Net()
    a, b = net.input('a', [4]), net.input('b', [4], TensorProto.INT32)
    net.op('Add', a, net.op('Cast', b, to=TensorProto.FLOAT), out='y')
    net.output('y', [4])
    save(net.model(), 'sum.onnx')
    net = Net()
    x, c = net.input('x', [4]), net.input('c', [], TensorProto.BOOL)
    bodies = {f'{name}_branch': helper.make_graph([helper.make_node(op, [x], [f'{name}_y'])], name, [], [value(f'{name}_y', [4])])
              for name, op in (('then', 'Relu'), ('else', 'Neg'))}
    net.op('If', c, out='y', **bodies)
    net.output('y', [4])
    save(net.model(), 'branch.onnx')


def typed(k, dtype, scale):
    """typed.npy and .raw, an input of network k; float.npy: as NumPy converts it."""
    a = np.random.default_rng(int(k)).integers(0, 250, SHAPES[int(k)]).astype(dtype)
    np.save('typed.npy', a)
    a.tofile('typed.raw')
    np.save('float.npy', a.astype('f4') * np.float32(eval(scale)))


def halved(source, path, scale=1):
    want = (np.load(source).astype('f4') * np.float32(scale)).astype('f2')
    assert np.array_equal(np.load(path), want)


def same(want, path):
    """The elements of an .npy are the bytes of a file."""
    assert np.load(path).tobytes() == open(want, 'rb').read()


def large(n, path, dtype='f4'):
    a = np.lib.format.open_memmap(path, 'w+', dtype, (1, 3, int(n), int(n)))
    row = np.random.default_rng(0).random((3, int(n)))
    for k in range(int(n)):
        a[0, :, k] = np.roll(row, k, axis=1) * (255 if dtype == 'u1' else 1)


def started(tool):
    """A run that is not done at once that has its output's file, and has written to it."""
    command = [tool, 'run', 'big.onnx', '--input', 'x=large.npy', '--output', 'y=late.npy', '-q', '--repeat', '8']
    p = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (temp := glob.glob('.onnx-tile-*.tmp')) or os.stat(temp[0]).st_size < 1 << 20:
        assert p.poll() is None, p.communicate()[1]
        time.sleep(.005)
    return p, temp[0]


def ended(p, status, text):
    err = p.communicate(timeout=300)[1]
    assert p.returncode == status and text in err and err.count('\n') == (status > 0), (p.returncode, err)
    assert not os.path.exists('late.npy') and not glob.glob('.onnx-tile-*.tmp')


def changing(tool):
    """An input, and the output, that somebody shortens; signals that end the program."""
    size = os.stat('large.npy').st_size
    p, _ = started(tool)
    os.truncate('large.npy', 100000)
    ended(p, 1, "'large.npy': it has become shorter, or unreadable, while it was in use")
    os.truncate('large.npy', size)
    p, temp = started(tool)
    os.truncate(temp, 100000)
    ended(p, 4, "cannot write 'late.npy': it has become shorter, or its disk is full")
    for number in (signal.SIGTERM, signal.SIGINT):
        p, _ = started(tool)
        p.send_signal(number)
        ended(p, -number, '')


if __name__ == '__main__':
    commands(networks, typed, halved, same, large, changing)
