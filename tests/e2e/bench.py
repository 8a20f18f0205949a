"""What bench.sh has in Python: its models, the figures of a file, the trace."""
import json

import numpy as np
from onnx import helper

from builder import constant, conv_chain, model, save, value
from command_line import commands


def models(d):
    """net: three convolutions with activations; other: with another one at the end; two, renamed: one node; merged: as ONNX Runtime
    saves a convolution."""
    net = conv_chain([8] * 3, 8, (1, 96, 96), act='Relu', scale=.2)
    save(net, f'{d}/net.onnx')
    net.graph.node[-1].op_type = 'Sigmoid'
    save(net, f'{d}/other.onnx')
    for name, extents, node_name in ('two', [2, 3], 'odd name "here"'), ('renamed', [3, 2], ''):
        node = helper.make_node('Identity', ['x'], ['y'], node_name)
        save(model([node], [value('x', extents)], [value('y', extents)]), f'{d}/{name}.onnx')
    c = constant('w', np.ones((8, 8, 3, 3)) / 72)
    merged = helper.make_node('FusedConv', ['x', 'w'], ['y'], domain='com.microsoft', pads=[1] * 4, activation='Relu')
    ends = [value(v, [1, 8, 16, 16]) for v in 'xy']
    save(model([merged], ends[:1], ends[1:], [c], domains=[('com.microsoft', 1)]), f'{d}/merged.onnx')


def traced(path):
    """The trace has a process for each of both models, and their nodes with times."""
    e = json.load(open(path))['traceEvents']
    groups = {x['pid']: x['args']['name'] for x in e if x['name'] == 'process_name'}
    assert groups == {0: 'original', 1: 'tiled'}, groups
    x = [v for v in e if v['ph'] == 'X']
    assert all(v['ts'] >= 0 and v['dur'] >= 0 and v['args']['op'] for v in x)
    assert {'conv0', 'conv1'} <= {v['name'] for v in x if v['pid'] == 0}
    assert any(v['name'].startswith('tile/') for v in x if v['pid'] == 1), x


def command(path):
    """Print the command that a report tells to use."""
    print(json.load(open(path))['command'])


def of_a_file(path):
    """bench of a model and its tiled file: figures that fit together."""
    j = json.load(open(path))
    assert j['threads'] == 2 and j['runs'] == 3 and j['target'] == 'cpu-generic'
    assert j['model'] == 'net.onnx' and j['tiled_model'] == 'tiled.onnx'
    assert j['same'] and [o['name'] for o in j['outputs']] == ['y'] and j['outputs'][0]['nmse'] <= 1e-8
    o, t = j['original'], j['tiled']
    for s in (o, t):
        assert 0 < s['least_seconds'] <= s['median_seconds'] <= s['p90_seconds'] <= s['p99_seconds']
        assert s['predicted_seconds'] is None
        assert s['cache_references'] >= s['cache_misses'] >= 0 if j['counted'] else 'cache_misses' not in s
        assert s['weight_bytes'] >= 3 * 8 * 8 * 9 * 4
    # six nodes read and write 288 KiB each, of which no more than 64 KiB fit
    beyond = [s['mid_operand_bytes'] + s['slow_operand_bytes'] for s in (o, t)]
    assert beyond[0] == 6 * 2 * 8 * 96 * 96 * 4 and o['fast_operand_bytes'] == 3 * 8 * 8 * 9 * 4
    assert beyond[1] < beyond[0] * 0.8
    assert abs(j['time_ratio'] - t['least_seconds'] / o['least_seconds']) < 1e-6


if __name__ == '__main__':
    commands(models, traced, of_a_file, command)
