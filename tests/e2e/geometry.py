"""Models and checks of geometry.sh: models DIR; figures NAME F; barrier KIND OP F; open F; bioimage F."""
import json
import os
import sys

import builder
from builder import Net, save

FIXED = [1, 3, 64, 96]


def unet(extents):
    """Two levels: 3 x 3 convolutions of rows 1:1, 1:2 and 1:4."""
    net, skips = Net(seed=5), []
    v, c = net.input('x', extents), 3
    for level in range(3):
        v, c = net.conv(v, c, 4 << level, pads=[1] * 4), 4 << level
        if level < 2:
            skips.append((v, c))
            v = net.op('MaxPool', v, kernel_shape=[2, 2], strides=[2, 2])
    for skip, width in reversed(skips):
        up = net.op('Resize', v, '', net.const([1, 1, 2, 2], 'f4'), mode='nearest', coordinate_transformation_mode='asymmetric',
                    nearest_mode='floor')
        up = net.op('Pad', up, cut_to(net, up, skip), mode='edge')
        v = net.conv(net.op('Concat', up, skip, axis=1), c + width, width, pads=[1] * 4)
        c = width
    net.op('Relu', v, out='y')
    net.output('y')
    return net.model()


def cut_to(net, value, like):
    """Pads at the end that give `value` the rows and columns of `like`."""
    more = net.op('Sub', net.op('Shape', like, start=2), net.op('Shape', value, start=2))
    return net.op('Concat', net.const([0] * 6, 'i8'), more, axis=0)


def small(extents, steps, c_in=3):
    """steps(net, x) between an input and y."""
    net = Net(seed=6)
    net.op('Identity', steps(net, net.input('x', extents)), out='y')
    net.output('y')
    return net.model()


def two():
    """A picture and a guide of half its size."""
    net = Net(seed=7)
    x, guide = net.input('x', [1, 3, 64, 64]), net.input('guide', [1, 3, 32, 32])
    up = net.op('Resize', net.conv(guide, 3, 3, pads=[1] * 4), '', net.const([1, 1, 2, 2], 'f4'), mode='linear')
    net.op('Add', net.conv(x, 3, 3, pads=[1] * 4), up, out='y')
    net.output('y')
    return net.model()


def instance(net, v):
    return net.op('InstanceNormalization', v, net.uniform([3]), net.uniform([3]))


def groups(net, v):
    flat = net.reshape(v, [0, 1, -1])
    flat = net.op('InstanceNormalization', flat, net.uniform([1]), net.uniform([1]))
    return net.op('Reshape', flat, net.op('Shape', v))


def resized(net, v, scale, **attrs):
    return net.op('Resize', net.conv(v, 3, 3, pads=[1] * 4), '', net.const([1, 1, scale, scale], 'f4'), mode='linear', **attrs)


def positions(net, v):
    """Numbers of rows, as many as there are, are added to them."""
    v = net.conv(v, 3, 3, pads=[1] * 4)
    rows = net.op('Squeeze', net.op('Shape', v, start=2, end=3))
    grid = net.op('Cast', net.op('Range', net.const(0, 'i8'), rows, net.const(1, 'i8')), to=1)
    return net.op('Add', v, net.op('Unsqueeze', grid, net.const([1], 'i8')))


def extent(net, v):
    return net.op('Mul', net.conv(v, 3, 3, pads=[1] * 4), net.op('Cast', net.op('Shape', v, start=3), to=1))


def where(net, v):
    return net.op('NonZero', net.conv(v, 3, 3, pads=[1] * 4))


def models(folder):
    def put(name, model):
        save(model, os.path.join(folder, name + '.onnx'))
    put('unet', unet(FIXED))
    put('free', unet(['n', 3, 'h', 'w']))
    put('two', two())
    put('valid', small(FIXED, lambda n, v: n.conv(n.conv(v, 3, 4, k=5), 4, 2)))
    put('upscale', small(FIXED, lambda n, v: n.op('DepthToSpace', n.conv(v, 3, 8, pads=[1] * 4), blocksize=2)))
    put('strided', small(FIXED, lambda n, v: n.op('Pad', n.conv(v, 3, 4, strides=[2, 2], pads=[1] * 4),
                                                  n.const([0, 0, 5, 5, 0, 0, 5, 5], 'i8'), mode='reflect')))
    put('instance', small(FIXED, lambda n, v: instance(n, n.conv(v, 3, 3))))
    put('groups', small(FIXED, lambda n, v: groups(n, n.conv(v, 3, 3))))
    put('pooled', small(FIXED, lambda n, v: n.op('Mul', n.conv(v, 3, 3), n.op('GlobalAveragePool', v))))
    put('softmax', small(FIXED, lambda n, v: n.op('Softmax', n.conv(v, 3, 3), axis=2)))
    put('attention', builder.attention())
    put('corners', small(FIXED, lambda n, v: resized(n, v, 2, coordinate_transformation_mode='align_corners')))
    put('baked', small(['n', 3, 'h', 'w'], lambda n, v: n.op('ConvTranspose', v, n.const(n.rng.normal(0, .2, (3, 2, 3, 3))), strides=[2, 2],
                                                output_shape=[130, 194])))
    put('thirds', small(FIXED, lambda n, v: resized(n, v, 3)))
    put('flat', small(FIXED, lambda n, v: n.reshape(n.conv(v, 3, 3, pads=[1] * 4), [1, 3, 64 * 96])))
    put('joined', small(FIXED, lambda n, v: n.op('Concat', n.conv(v, 3, 3, pads=[1] * 4), v, axis=2)))
    put('positions', small(FIXED, positions))
    put('extent', small(FIXED, extent))
    put('where', small(FIXED, where))


def axes_of(said, output='y', source='x'):
    found, = [p for p in said['outputs'] if (p['name'], p['input']) == (output, source)]
    assert found['barriers'] == [], found
    return found['axes']


def figures(name, said):
    """What composing kernels by hand gives."""
    keys = 'align', 'num', 'den', 'offset', 'halo_lo', 'halo_hi', 'receptive_field', 'extent', 'output_extent'
    want = {'unet': (4, 1, 1, 0, 11, 11), 'valid': (1, 1, 1, -3, 3, 3), 'upscale': (1, 2, 1, 0, 1, 1), 'strided': (2, 1, 2, 10, 0, 0),
            'two': (2, 1, 1, 0, 4, 4)}[name]
    for number, a in enumerate(axes_of(said)):
        assert a['axis'] == a['input_axis'] == number + 2, a
        if name != 'strided':
            assert tuple(a[k] for k in keys[:6]) == want, (a, want)
        assert a['halo_lo'] >= 0 and a['halo_hi'] >= 0 and a['receptive_field'] >= 1, a
    first = axes_of(said)[0]
    if name == 'valid':
        assert (first['receptive_field'], first['extent'], first['output_extent']) == (7, 64, 58), first
        assert first['least'] == 7 and first['any_extent'], first
    if name == 'strided':  # 5 rows mirrored behind the strided convolution: 6 of its rows, whatever else
        assert (first['align'], first['num'], first['den']) == (2, 1, 2) and first['least'] >= 12, first
    if name == 'two':
        guide = axes_of(said, source='guide')[0]
        assert (guide['align'], guide['num'], guide['den'], guide['halo_lo'], guide['halo_hi']) == (1, 2, 1, 2, 2), guide
    assert said['inputs'] == (['x', 'guide'] if name == 'two' else ['x'])


def barrier(kind, op, said):
    assert all(set(b) == {'node', 'op', 'kind', 'why', 'input_axis'} for p in said['outputs'] for b in p['barriers'])
    assert any((b['kind'], b['op']) == (kind, op) and b['why'] and b['node'] for p in said['outputs'] for b in p['barriers'])


def bioimage(said):
    source, = said['inputs']
    assert (source['id'], [a['axis'] for a in source['axes']]) == ('x', [2, 3]), source
    assert all(a['step'] == 4 and a['min'] % 4 == 0 and a['min'] >= 4 for a in source['axes']), source
    made, = said['outputs']
    assert (made['id'], made['reference']) == ('y', 'x')
    assert made['axes'][0] == {'axis': 2, 'reference_axis': 2, 'scale': 1, 'offset': 0, 'halo': 11}, made


def main():
    command, *arguments = sys.argv[1:]
    if command == 'models':
        return models(*arguments)
    with open(arguments.pop(), encoding='utf-8') as f:
        said = json.load(f)
    if command == 'open':
        assert all(a['any_extent'] and a['align'] == 4 for a in axes_of(said)), said
    else:
        {'figures': figures, 'barrier': barrier, 'bioimage': bioimage}[command](*arguments, said)


if __name__ == '__main__':
    main()
