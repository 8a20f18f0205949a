"""What size_bounds.sh has in Python."""
import json

from builder import FLOAT, Net, conv_chain, save
from command_line import commands


def models(folder):
    """free: four convolutions; data: a size computed of data; falls: larger where the input is smaller."""
    save(conv_chain([16, 16, 16, 3], extents=('n', 'h', 'w'), fill=.1), f'{folder}/free.onnx')
    net = Net()
    where = net.op('NonZero', net.input('x', ['n', 3, 'h', 'w']), name='where')
    net.op('Cast', where, out='y', name='cast', to=FLOAT)
    net.output('y')
    save(net.model(), f'{folder}/data.onnx')
    net = Net()
    h = net.op('Gather', net.op('Shape', net.input('x', ['n', 3, 'h', 'w'])), net.const([2], 'i8'))
    filled = net.op('ConstantOfShape', net.op('Sub', net.const([100000], 'i8'), h), name='filled')
    net.op('Add', 'x', net.op('ReduceSum', filled, keepdims=1), out='y')
    net.output('y')
    save(net.model(), f'{folder}/falls.onnx')


def proved(path):
    """The bound of a range of sizes, untiled and tiled."""
    r = json.load(open(path))['range']
    assert r['sizes'] == 'x=1,3,64:512:7,64:512:32' and r['untiled']['verdict'] == r['tiled']['verdict'] == 'proved', r
    assert r['untiled']['peak_at'] == '1x3x512x512' and r['untiled']['peak_bytes'] == 512 * 512 * 32 * 4, r
    assert r['tiled']['peak_bytes'] < r['untiled']['peak_bytes'] and r['tiled']['growth_bytes'] < r['untiled']['growth_bytes'], r


def within(path):
    """The tiled model keeps the budget, which the untiled one passes."""
    r = json.load(open(path))['range']
    assert r['untiled']['verdict'] == 'exceeds' and r['tiled']['verdict'] == 'proved', r
    assert max(r['tiled']['peak_bytes'], r['tiled']['process_bytes']) <= 58 << 20, r


if __name__ == '__main__':
    commands(models, proved, within)
