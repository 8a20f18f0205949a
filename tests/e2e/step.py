"""What step.sh has in Python: models, and comparisons with the whole model in ONNX Runtime."""
import json
import os
import sys

import numpy as np
from onnx import helper

from builder import save
from checks import check_lines
from step_networks import Kind, networks
from stepping import compare, run_steps, session

ROUNDING = 5e-6  # of the largest value: kernels for few rows add up in another order
FREE = {'t': 96}


def padded(mode, value=None, cells=None, late=True):
    """A convolution, a Pad, another one; cells: with a recurrent layer, whose operand is late or not, between."""
    net = Kind(5)
    v = net.layer(net.input('x', [1, 4, 't']), 4, 6, 3, pads=[1, 1] if late else [2, 0])
    if cells:
        v = net.cells(v, 6, 6, cells, **({'linear_before_reset': 1} if cells == 'GRU' else {}))
    pads = net.const([0, 0, 3, 0, 0, 3], 'i8')
    v = net.op('Pad', v, pads, *([net.const(value)] if value else []), mode=mode)
    return net.done(net.layer(v, 6, 2, 7), [1, 2, 't'])


def started(cells):
    """A recurrent layer that does not start with zeros."""
    net = Kind(6)
    v = net.op('Transpose', net.layer(net.input('x', [1, 4, 't']), 4, 6, 3, pads=[1, 1]), perm=[2, 0, 1])
    first = [net.const(net.rng.normal(0, 1, (1, 1, 5))) for _ in range(2 if cells == 'LSTM' else 1)]
    gates = {'LSTM': 20, 'GRU': 15}[cells]
    y = net.op(cells, v, net.const(net.rng.normal(0, .3, (1, gates, 6))), net.const(net.rng.normal(0, .3, (1, gates, 5))), '', '',
               *first, hidden_size=5)
    return net.done(net.op('Transpose', net.op('Squeeze', y, net.const([1], 'i8')), perm=[1, 2, 0]), [1, 5, 't'])


def summed(exclusive):
    net = Kind(7)
    v = net.layer(net.input('x', [1, 4, 't']), 4, 6, 3, pads=[1, 1])
    v = net.op('CumSum', v, net.const(-1, 'i8'), exclusive=exclusive)
    return net.done(net.layer(v, 6, 2, 3, pads=[1, 1]), [1, 2, 't'])


def guided():
    """Two inputs that have rows, one of half the rate, one input that has none, two outputs of other rates."""
    net = Kind(8)
    x, g = net.input('x', [1, 2, 't']), net.input('guide', [1, 2, 'u'])
    style = net.input('style', [1, 2, 1])
    up = net.op('Resize', g, '', net.const([1, 1, 2], 'f4'), mode='nearest')
    v = net.op('Mul', net.op('Add', net.layer(x, 2, 2, 3, pads=[1, 1]), up), style)
    net.op('MaxPool', v, out='z', kernel_shape=[2], strides=[2])
    net.output('z', [1, 2, 'u'])
    return net.done(net.layer(v, 2, 2, 5, pads=[2, 2]), [1, 2, 't'])


def uneven():
    """Padding that depends on the extent, and rows that are cut off at the end: of odd extents, none of which is whole steps."""
    net = Kind(10)
    v = net.layer(net.input('x', [1, 4, 't']), 4, 4, 3, strides=[2], auto_pad='SAME_UPPER')
    v = net.op('Slice', v, net.const([0], 'i8'), net.const([-4], 'i8'), net.const([2], 'i8'))
    return net.done(net.layer(v, 4, 4, 3, pads=[1, 1]), [1, 4, None])


def lost(kind):
    """What needs all rows."""
    net = Kind(9)
    x = net.input('x', [1, 4, 't'])
    v = net.layer(x, 4, 4, 3, pads=[1, 1])
    if kind == 'mean':
        return net.done(net.reduce('ReduceMean', v, [2], keepdims=1))
    if kind == 'norm':
        return net.done(net.op('InstanceNormalization', v, net.uniform(4), net.uniform(4)))
    if kind == 'backwards':
        return net.done(net.cells(v, 4, 4, direction='reverse'))
    if kind == 'wrapped':
        return net.done(net.op('Pad', v, net.const([0, 0, 1, 0, 0, 1], 'i8'), mode='wrap'))
    if kind == 'length':
        n = net.op('Cast', net.op('Shape', x), to=1)
        return net.done(net.op('Div', v, net.op('Gather', n, net.const(2, 'i8'))))
    if kind == 'last':
        y = net.fresh()
        net.nodes.append(helper.make_node('RNN', [net.op('Transpose', v, perm=[2, 0, 1]), net.const(np.ones((1, 4, 4))),
                                                  net.const(np.ones((1, 4, 4)))], ['', y], name='last', hidden_size=4))
        return net.done(y)
    if kind == 'backsum':
        return net.done(net.op('CumSum', v, net.const(2, 'i8'), reverse=1))
    q = net.op('Transpose', v, perm=[0, 2, 1])  # attention
    return net.done(net.op('MatMul', net.op('Softmax', net.op('MatMul', q, v), axis=-1), q))


KINDS = {'edge': padded('edge'), 'reflect': padded('reflect'), 'value': padded('constant', 1.5), 'lstm': padded('edge', cells='LSTM'),
         'gru': padded('reflect', cells='GRU'), 'rnn_causal': padded('constant', cells='RNN', late=False), 'lstm_started': started('LSTM'),
         'gru_started': started('GRU'), 'sum': summed(0), 'sum_before': summed(1)}
LOST = ['mean', 'norm', 'backwards', 'wrapped', 'length', 'last', 'backsum', 'attention']


def models(folder):
    for name, (m, axis) in networks().items():
        save(m, os.path.join(folder, f'{name}.onnx'))
        print(name, axis)
    for name, m in KINDS.items():
        save(m, os.path.join(folder, f'{name}.onnx'))
        print(name, 'x:2')
    save(uneven(), os.path.join(folder, 'uneven.onnx'))
    save(guided(), os.path.join(folder, 'guided.onnx'))
    for name in LOST:
        save(lost(name), os.path.join(folder, f'lost_{name}.onnx'))


def same(model, step, rows):
    most, about = compare(model, step, {'t': int(rows), 'u': int(rows) // 2}, int(rows))
    if most > ROUNDING:
        sys.exit(f'{most:.1e} off')


def same_all(pairs):
    check_lines(pairs, same, 'compared')


def short(model, step):
    """Fewer rows than the delay, one step and a little more."""
    for rows in (3, 5, 9, 16, 17):
        most, _ = compare(model, step, {'t': rows}, rows)
        if most > ROUNDING:
            sys.exit(f'{rows} rows: {most:.1e} off')


def figures(path, **want):
    about = json.loads(session(path).get_modelmeta().custom_metadata_map['onnx_tile.step'])
    for name, value in want.items():
        have = about['outputs'][0]['delay'] if name == 'delay' else len(about['states']) if name == 'n_states' else about[name]
        if str(have) != value:
            sys.exit(f'{name} is {have}, not {value}')


def length(path):
    """What goes from step to step is the same after many rows as after few."""
    sizes = set()
    for rows in (32, 320):
        x = np.zeros([1, 8, rows], 'f4')
        _, about = run_steps(path, {'x': x})
        sizes.add(sum(int(np.prod(s['shape'])) * 4 for s in about['states'] if s['type'] == 'float32'))
    if len(sizes) != 1:
        sys.exit(f'the state takes {sizes}')


if __name__ == '__main__':
    command, *rest = sys.argv[1:]
    if command == 'figures':
        figures(rest[0], **dict(x.split('=') for x in rest[1:]))
    else:
        {'models': models, 'same': same, 'same_all': same_all, 'short': short, 'length': length}[command](*rest)
