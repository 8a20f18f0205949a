"""What dynamic_sizes.sh has in Python: its models, and outputs at sizes that nobody planned for."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper

from builder import FLOAT, Net, constant, conv_chain, model, save, value
from checks import input_extents, outputs, session
from command_line import commands


def models(folder):
    """Three convolutions, with dynamic extents and with fixed ones."""
    for name, extents in ('free', ('n', 'h', 'w')), ('fixed', (1, 64, 64)):
        save(conv_chain([3] * 3, 3, extents, fill=.1), f'{folder}/{name}.onnx')


def guesses(folder):
    """A model for each kind of input whose size is guessed."""
    def write(name, inputs, nodes, inits=(), dtype=FLOAT):
        m = model(nodes, [value(n, extents, dtype) for n, extents in inputs], [value('y', None, dtype)], inits)
        save(m, f'{folder}/{name}.onnx')

    def weight(*dims):
        return constant('w', np.full(dims, .1))
    conv = helper.make_node('Conv', ['x', 'w'], ['c'], 'conv')
    relu = helper.make_node('Relu', ['c'], ['y'], 'relu')
    flat = helper.make_node('Reshape', ['c', 'shape'], ['y'], 'flat')
    # a name of all dimensions is none
    write('grey', [('x', ['None'] * 4)], [conv, relu], [weight(4, 1, 3, 3)])
    write('volume', [('x', ['n', 1, 'd', 'h', 'w'])], [conv, relu], [weight(4, 1, 3, 3, 3)])
    write('line', [('x', [None, 2, None])], [conv, relu], [weight(4, 2, 3)])
    write('tokens', [('x', ['n', 't']), ('z', ['n', 't'])], [helper.make_node('Add', ['x', 'z'], ['y'])],
          dtype=TensorProto.INT64)
    write('only224', [('x', [None, 3, None, None])], [conv, flat],
          [weight(4, 3, 3, 3), constant('shape', [1, 4 * 222 * 222], 'i8')])
    # half a GiB of 1024 x 1024
    write('large', [('x', [None, 256, None, None])], [conv, relu], [weight(512, 256, 1, 1)])
    write('nothing', [('x', None)], [helper.make_node('Relu', ['x'], ['y'])])


def every_size(original, tiled, how):
    """The tiled file (how: "tiled", or "untiled") gives what the original gives, at sizes far from the one planned for."""
    assert any(n.op_type in ('Loop', 'If') for n in onnx.load(tiled).graph.node) == (how == 'tiled'), how
    one, two = (session(p, threads=0) for p in (original, tiled))
    for size in ((1, 3, 1024, 1024), (2, 3, 7, 9), (1, 3, 333, 1501), (3, 3, 64, 1)):
        x = np.random.default_rng(7).random(size, 'f4')
        a, b = (s.run(None, {'x': x})[0] for s in (one, two))
        assert a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-6), size


def up(path):
    """Convolutions without pads that end in a transposed one, extents free."""
    net = Net()
    v, c = net.input('x', [1, 3, 'h', 'w']), 3
    for width in (16, 32, 64, 128, 128, 256):
        v = net.op('LeakyRelu', net.op('Conv', v, net.const(np.full((width, c, 3, 3), .01))))
        c = width
    net.op('ConvTranspose', v, net.const(np.full((c, 3, 4, 4), .01)), out='y', strides=[2, 2], pads=[3] * 4)
    net.output('y', [1, 3, None, None])
    save(net.model(), path)


def stays(tmp):
    """A size that is given: the file stays free, takes hardly more than the bound one, and is equal."""
    told, static = json.load(open(f'{tmp}/stays.json')), json.load(open(f'{tmp}/out'))
    assert told['stays_dynamic'] and told['design'] == 'x=1,3,526,526' and not told['design_guessed'], told.get('design')
    assert 'design' not in static, static['design']
    assert told['tiled']['growth_bytes'] <= 1.06 * static['tiled']['growth_bytes'], (told['tiled'], static['tiled'])
    dims = [input_extents(onnx.load(f'{tmp}/{name}.onnx')) for name in ('stays', 'static')]
    assert dims == [[1, 3, 0, 0], [1, 3, 526, 526]], dims
    for size in (526, 96):
        x = np.random.default_rng(7).random((1, 3, size, size), 'f4')
        a, b = (outputs(f'{tmp}/{name}.onnx', {'x': x}, threads=0)[0] for name in ('up', 'stays'))
        assert a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5), size


if __name__ == '__main__':
    commands(models, guesses, every_size, up, stays)
