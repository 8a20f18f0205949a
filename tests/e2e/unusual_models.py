"""Valid models of kinds that few exporters write. unusual_models.py TOOL FOLDER [KIND...]

Tiled at defaults, for memory and by force: ONNX Runtime loads them, outputs are equal and have the names of before, onnx.checker
passes where it passes the original.
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper
from onnx.helper import make_node as node

from builder import constant, ir_of, model, value
from checks import session

tool, folder = sys.argv[1:3]
MODES = {'default': [], 'memory': ['--goal', 'memory'], 'force': ['--force', '--l2', '16K', '--target', 'cpu-generic', '--threads', '1']}
random = np.random.default_rng(5)
X, Y = [1, 3, 32, 32], [1, 8, 32, 32]
COUNT = 97
KINDS = {}  # name: (model, feeds, how far floats may be off, by their range)


def add(name, m, feeds, error=1e-5): KINDS[name] = (m, feeds, error)
def some(*extents): return random.normal(0, 1, extents).astype('f4')
def weights(name, *extents): return constant(name, random.normal(0, .1, extents))
def graph(nodes, inputs, outputs, inits=(), name='b'): return helper.make_graph(nodes, name, inputs, outputs, list(inits))


def chain(x='x', y='v'):
    """Three convolutions, each with a Relu: (nodes, weights)."""
    nodes, inits = [], []
    for k in range(3):
        inits.append(weights(f'w{k}', 8, 8 if k else 3, 3, 3))
        nodes += [node('Conv', [x, f'w{k}'], [f'c{k}'], pads=[1] * 4, name=f'conv{k}'), node('Relu', [f'c{k}'], [y if k == 2 else f'r{k}'], name=f'relu{k}')]
        x = f'r{k}'
    return nodes, inits


def behind(name, tail, outs, inits=(), opset=18, error=1e-5, x=X, ins=(), feeds=None, **more):
    """The chain makes v, the tail goes on."""
    nodes, w = chain()
    add(name, model([*nodes, *tail], [value('x', x), *ins], outs, [*w, *inits], opset, **more), {'x': some(*[d if isinstance(d, int) else 2 for d in x]), **(feeds or {})}, error)


def plain(name, change=None, x=X, extent=None, **more):
    """The chain alone, after a change of the model."""
    nodes, w = chain(y='y')
    m = model(nodes, [value('x', x)], [value('y', [x[0], 8, *x[2:]])], w, **more)
    if change: change(m)
    add(name, m, {'x': some(*[d if isinstance(d, int) else extent or 2 for d in x])})


def operators():
    y = [value('y', Y)]
    behind('mish', [node('Mish', ['v'], ['y'])], y)
    behind('gelu', [node('Gelu', ['v'], ['y'], approximate='tanh')], y, opset=20)
    for opset, n in (18, 4), (21, 8):
        behind(f'group_norm{opset}', [node('GroupNormalization', ['v', 's', 'b'], ['y'], num_groups=4)], y, [weights('s', n), weights('b', n)], opset)
    behind('pad_axes', [node('Pad', ['v', 'p', '', 'ax'], ['q'], mode='reflect'), node('Relu', ['q'], ['y'])], [value('y', [1, 8, 36, 35])],
           [constant('p', [2, 1, 2, 2], 'i8'), constant('ax', [2, -1], 'i8')])
    behind('pad_less', [node('Pad', ['v', 'p'], ['q']), node('Relu', ['q'], ['y'])], [value('y', [1, 8, 29, 33])], [constant('p', [0, 0, -1, 2, 0, 0, -2, -1], 'i8')])
    behind('split_unevenly', [node('Split', ['v'], ['a', 'b', 'c'], axis=1, num_outputs=3)], [value(o, None) for o in 'abc'])
    behind('resize_axes', [node('Resize', ['v', '', 'f'], ['y'], axes=[2, 3], mode='linear', antialias=1)], [value('y', [1, 8, 16, 16])], [constant('f', [.5, .5])])
    behind('resize_ratio', [node('Resize', ['v', '', '', 'z'], ['y'], axes=[2, 3], mode='linear', keep_aspect_ratio_policy='not_larger')], [value('y', None)],
           [constant('z', [20, 48], 'i8')])
    behind('crop_and_pad', [node('CenterCropPad', ['v', 'z'], ['y'], axes=[2, 3])], [value('y', [1, 8, 20, 50])], [constant('z', [20, 50], 'i8')])
    behind('slice_backwards', [node('Slice', ['v', 'a', 'b', 'k', 's'], ['q']), node('Relu', ['q'], ['y'])], [value('y', None)],
           [constant('a', [-1, 30], 'i8'), constant('b', [-99, 2], 'i8'), constant('k', [2, 3], 'i8'), constant('s', [-1, -3], 'i8')])
    behind('deconvolution', [node('ConvTranspose', ['v', 'd'], ['y'], strides=[2, 3], output_shape=[65, 96], auto_pad='SAME_UPPER', group=2)], [value('y', None)], [weights('d', 8, 2, 3, 5)])
    behind('pool_and_unpool', [node('MaxPool', ['v'], ['p', 'i'], kernel_shape=[2, 2], strides=[2, 2]), node('MaxUnpool', ['p', 'i'], ['y'], kernel_shape=[2, 2], strides=[2, 2])], y)
    behind('average_ceil', [node('AveragePool', ['v'], ['y'], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 0], ceil_mode=1, count_include_pad=1)], [value('y', None)], opset=19)
    behind('dropout_off', [node('Dropout', ['v', 'r', 'tr'], ['y', 'mask'])], [*y, value('mask', Y, T.BOOL)], [constant('r', 0.), constant('tr', True, '?')])
    behind('layer_norm', [node('LayerNormalization', ['v', 's'], ['y', 'mean', 'd'], axis=-2)], [*y, value('mean', None), value('d', None)], [weights('s', 32, 32)], 17)
    behind('topk', [node('TopK', ['v', 'k'], ['a', 'i'], axis=2, largest=0), node('Relu', ['a'], ['y'])], [value('y', [1, 8, 5, 32]), value('i', [1, 8, 5, 32], T.INT64)], [constant('k', [5], 'i8')])
    behind('nonzero', [node('NonZero', ['v'], ['n']), node('Transpose', ['n'], ['t'], perm=[1, 0]), node('GatherND', ['v', 't'], ['y'])], [value('y', ['n'])])
    behind('not_numbers', [node('Div', ['v', 'z'], ['d']), node('IsNaN', ['d'], ['b']), node('Where', ['b', 'z', 'd'], ['y'])], y, [constant('z', np.zeros((1, 8, 1, 1)))])
    behind('doubles', [node('Cast', ['v'], ['d'], to=T.DOUBLE), node('Sqrt', ['d'], ['e']), node('Cast', ['e'], ['y'], to=T.FLOAT)], y)
    behind('einsum', [node('Einsum', ['v', 'm'], ['y'], equation='...ij,jk->...ik')], [value('y', None)], [weights('m', 32, 7)])
    behind('cumulative', [node('CumSum', ['v', 'a'], ['y'], reverse=1, exclusive=1)], y, [constant('a', -2, 'i8')], error=1e-4)
    behind('softmax11', [node('Softmax', ['v'], ['y'])], y, opset=11)
    behind('clip6', [node('Clip', ['v'], ['y'], min=.1, max=.2)], y, opset=10)
    behind('rms_norm', [node('RMSNormalization', ['v', 's'], ['y'], axis=-1)], y, [weights('s', 32)], 23)
    behind('attention', [node('Attention', ['v', 'v', 'v'], ['y'], is_causal=1)], y, opset=23)
    behind('fused_conv', [node('FusedConv', ['v', 'f'], ['y'], domain='com.microsoft', activation='LeakyRelu', activation_params=[.2], pads=[1] * 4)], y, [weights('f', 8, 8, 3, 3)],
           domains=[('com.microsoft', 1)])
    add('lstm', model([node('LSTM', ['x', 'w', 'r', '', 'n', '', '', ''], ['', 'h', ''], hidden_size=4, direction='bidirectional')], [value('x', [5, 3, 6]), value('n', [3], T.INT32)],
                      [value('h', [2, 3, 4])], [weights('w', 2, 16, 6), weights('r', 2, 16, 4)]), {'x': some(5, 3, 6), 'n': np.array([5, 2, 3], 'i4')})
    add('detector', model([node('NonMaxSuppression', ['b', 's', 'k', 'i'], ['n']), node('Shape', ['n'], ['y'])], [value('b', [1, 9, 4]), value('s', [1, 2, 9])], [value('n', ['n', 3], T.INT64), value('y', [2], T.INT64)],
                          [constant('k', 3, 'i8'), constant('i', [.5])]), {'b': np.sort(random.uniform(0, 1, (1, 9, 4))).astype('f4'), 's': some(1, 2, 9)})
    add('scaler', model([node('Scaler', ['x'], ['s'], domain='ai.onnx.ml', offset=[.5] * 16, scale=[2.] * 16), node('Normalizer', ['s'], ['y'], domain='ai.onnx.ml', norm='L2')],
                        [value('x', [256, 16])], [value('y', [256, 16])], domains=[('ai.onnx.ml', 3)]), {'x': some(256, 16)})


def types():
    half = model([node('Conv', ['x', 'w'], ['c'], pads=[1] * 4), node('Relu', ['c'], ['y'])], [value('x', X, T.FLOAT16)], [value('y', Y, T.FLOAT16)])
    half.graph.initializer.append(onnx.TensorProto(name='w', data_type=T.FLOAT16, dims=[8, 3, 3, 3], int32_data=random.normal(0, .1, 216).astype('f2').view('u2').astype(int)))
    add('half_in_integers', half, {'x': some(*X).astype('f2')}, 2 ** -8)
    add('bfloat', model([node('Cast', ['x'], ['b'], to=T.BFLOAT16), node('Cast', ['b'], ['f'], to=T.FLOAT), node('Conv', ['f', 'w'], ['y'], pads=[1] * 4)], [value('x', X)], [value('y', Y)],
                        [weights('w', 8, 3, 3, 3)], 13), {'x': some(*X)})
    for name, t in ('f8_e4', T.FLOAT8E4M3FN), ('f8_e5', T.FLOAT8E5M2):
        add(name, model([node('Cast', ['x'], ['q'], to=t), node('Cast', ['q'], ['r'], to=T.FLOAT), node('Relu', ['r'], ['y'])], [value('x', X)], [value('y', X)], opset=19), {'x': some(*X)})
    for name, t in ('int4', T.INT4), ('uint4', T.UINT4):
        q = helper.make_tensor('q', t, [64, 32], [int(v) for v in random.integers(0, 7, 2048)])
        add(name, model([node('DequantizeLinear', ['q', 's', 'z'], ['w'], axis=0, block_size=16), node('MatMul', ['x', 'w'], ['m']), node('Relu', ['m'], ['y'])], [value('x', [4, 128, 64])],
                        [value('y', [4, 128, 32])], [q, weights('s', 4, 32), helper.make_tensor('z', t, [4, 32], [1] * 128)], 21), {'x': some(4, 128, 64)}, .02)
    strings = [helper.make_tensor('k', T.STRING, [1], [b'a']), helper.make_tensor('k2', T.STRING, [1, 3], [b'a', b'\xc3\xbc', b''])]
    add('strings', model([node('Equal', ['x', 'k'], ['e']), node('Cast', ['e'], ['f'], to=T.FLOAT), node('Concat', ['x', 'k2'], ['y'], axis=0)], [value('x', [4, 3], T.STRING)],
                         [value('f', [4, 3]), value('y', [5, 3], T.STRING)], strings, 19), {'x': np.array([['a', 'b', '']] * 4, object)})
    add('integers', model([node('Add', ['x', 'k'], ['a']), node('BitShift', ['a', 'k'], ['b'], direction='LEFT'), node('Mod', ['b', 'm'], ['c']), node('BitwiseAnd', ['c', 'm'], ['y'])],
                          [value('x', X, T.UINT32)], [value('y', X, T.UINT32)], [constant('k', [3], 'u4'), constant('m', [1000], 'u4')], 18), {'x': random.integers(0, 9999, X).astype('u4')})
    add('by_channel', model([node('QuantizeLinear', ['x', 'xs', 'xz'], ['q']), node('QLinearConv', ['q', 'xs', 'xz', 'w', 'ws', 'wz', 'ys', 'xz'], ['r'], pads=[1] * 4),
                             node('DequantizeLinear', ['r', 'ys', 'xz'], ['y'])], [value('x', X)], [value('y', Y)],
                            [constant('xs', .05), constant('xz', 128, 'u1'), constant('w', random.integers(-127, 127, (8, 3, 3, 3)), 'i1'), constant('ws', random.uniform(.001, .01, 8)),
                             constant('wz', [0] * 8, 'i1'), constant('ys', .05)], 13), {'x': some(*X)})
    add('axis_of_bytes', model([node('QuantizeLinear', ['x', 's', 'z'], ['q'], axis=1), node('DequantizeLinear', ['q', 's', 'z'], ['d'], axis=1), node('Relu', ['d'], ['y'])], [value('x', X)],
                               [value('y', X)], [constant('s', [.05, .1, .2]), constant('z', [128, 3, 7], 'u1')], 13), {'x': some(*X)})
    behind('sequence', [node('SplitToSequence', ['v'], ['s'], axis=1), node('SequenceAt', ['s', 'two'], ['a']), node('ConcatFromSequence', ['s'], ['c'], axis=2), node('SequenceLength', ['s'], ['n'])],
           [value('a', [1, 1, 32, 32]), value('c', None), value('n', [], T.INT64)], [constant('two', 2, 'i8')])
    behind('sequence_out', [node('SequenceConstruct', ['v', 'r0'], ['s'])], [helper.make_tensor_sequence_value_info('s', T.FLOAT, None)])
    behind('optional', [node('Optional', ['v'], ['o']), node('OptionalHasElement', ['o'], ['h']), node('OptionalGetElement', ['o'], ['y'])], [value('y', Y), value('h', [], T.BOOL)])
    sparse = helper.make_sparse_tensor(helper.make_tensor('w_sp', T.FLOAT, [4], [1., 2., 3., 4.]), helper.make_tensor('at', T.INT64, [4], [0, 70, 140, 215]), [8, 27])
    m = model([node('Reshape', ['w_sp', 'sh'], ['w']), node('Conv', ['x', 'w'], ['c'], pads=[1] * 4), node('Relu', ['c'], ['y'])], [value('x', X)], [value('y', Y)], [constant('sh', [8, 3, 3, 3], 'i8')])
    m.graph.sparse_initializer.append(sparse)
    add('sparse', m, {'x': some(*X)})
    constants = {'value_float': 2., 'value_floats': [1., 2.], 'value_int': 3, 'value_ints': [1, 2]}
    casts = [node('Cast', [k], [f'{k}_f'], to=T.FLOAT) for k in constants]
    add('constants', model([*[node('Constant', [], [k], **{k: v}) for k, v in constants.items()], *casts, node('Sum', ['x', *[f'{k}_f' for k in constants]], ['y'])], [value('x', [4, 32, 2])],
                           [value('y', [4, 32, 2])]), {'x': some(4, 32, 2)})


def bodies():
    yes, c = {'c': np.array(True)}, [value('c', [], T.BOOL)]
    half, whole = graph([node('MaxPool', ['v'], ['p'], kernel_shape=[2, 2], strides=[2, 2])], [], [value('p', None)], name='t'), graph([node('Tanh', ['v'], ['q'])], [], [value('q', None)], name='e')
    behind('branches_differ', [node('If', ['c'], ['z'], then_branch=half, else_branch=whole), node('Relu', ['z'], ['y'])], [value('y', [1, 8, 'h', 'w'])], ins=c, feeds=yes)
    reads = graph([node('Add', ['v', 'r0'], ['t1']), node('Conv', ['t1', 'w1'], ['t2'], pads=[1] * 4)], [], [value('t2', None)], name='t')
    other = graph([node('Identity', ['x'], ['e0']), node('Conv', ['e0', 'w0'], ['e1'], pads=[1] * 4)], [], [value('e1', None)], name='e')
    behind('branches_read', [node('If', ['c'], ['z'], then_branch=reads, else_branch=other), node('Add', ['z', 'v'], ['y'])], [value('y', Y)], ins=c, feeds=yes)
    step = [value('i', [], T.INT64), value('g', [], T.BOOL), value('a', None)]
    ends = graph([node('Add', ['a', 'v'], ['a2']), node('ReduceMax', ['a2'], ['top'], keepdims=0), node('Less', ['top', 'most'], ['on']), node('Sqrt', ['a2'], ['each'])], step,
                 [value('on', [], T.BOOL), value('a2', None), value('each', None)])
    behind('loop_ends', [node('Loop', ['', 'c', 'v'], ['last', 'all'], body=ends)], [value('last', Y), value('all', ['n', *Y])], [constant('most', 2.)], ins=c, feeds=yes)
    none = graph([node('Identity', ['g'], ['on']), node('Exp', ['a'], ['a2']), node('Neg', ['a'], ['each'])], step, [value('on', [], T.BOOL), value('a2', None), value('each', None)])
    behind('loop_of_none', [node('Loop', ['zero', '', 'v'], ['last', 'all'], body=none)], [value('last', Y), value('all', None)], [constant('zero', 0, 'i8')])
    sums = graph([node('Add', ['s', 'e'], ['s2']), node('Identity', ['s2'], ['o'])], [value('s', [1, 8, 32]), value('e', [1, 8, 32])], [value('s2', [1, 8, 32]), value('o', [1, 8, 32])])
    behind('scan_backwards', [node('Scan', ['zeros', 'v'], ['last', 'y'], body=sums, num_scan_inputs=1, scan_input_axes=[2], scan_input_directions=[1], scan_output_axes=[-1], scan_output_directions=[1])],
           [value('last', [1, 8, 32]), value('y', None)], [constant('zeros', np.zeros((1, 8, 32)))])
    add('sequence_map', model([node('SplitToSequence', ['x'], ['s'], axis=1), node('SequenceMap', ['s'], ['m'], body=graph([node('Exp', ['e'], ['f'])], [value('e', None)], [value('f', None)])),
                               node('ConcatFromSequence', ['m'], ['y'], axis=1)], [value('x', X)], [value('y', X)]), {'x': some(*X)})
    sets, mine = [helper.make_opsetid('', 18), helper.make_opsetid('my', 1)], [('my', 1)]
    act = helper.make_function('my', 'Act', ['a'], ['b'], [node('LeakyRelu', ['a'], ['b'])], sets[:1], attributes=['al'])
    block = helper.make_function('my', 'Block', ['a', 'w'], ['b'], [node('Conv', ['a', 'w'], ['c'], pads=[1] * 4), node('Act', ['c'], ['b'], domain='my')], sets, attribute_protos=[helper.make_attribute('al', .25)])
    for n, name in (act.node[0], 'alpha'), (block.node[1], 'al'): n.attribute.add(name=name, ref_attr_name='al', type=onnx.AttributeProto.FLOAT)
    two = [weights('w0', 8, 3, 3, 3), weights('w1', 8, 8, 3, 3)]
    add('function_default', model([node('Block', ['x', 'w0'], ['t'], domain='my'), node('Block', ['t', 'w1'], ['y'], domain='my', al=.7)], [value('x', X)], [value('y', Y)], two, 18, 9, domains=mine,
                                  functions=[act, block]), {'x': some(*X)})
    select = helper.make_function('my', 'Select', ['a', 'c'], ['b'], [node('If', ['c'], ['b'], then_branch=graph([node('Relu', ['a'], ['t1'])], [], [value('t1', None)], name='t'),
                                                                            else_branch=graph([node('Tanh', ['a'], ['e1'])], [], [value('e1', None)], name='e'))], sets[:1])
    outer = helper.make_function('my', 'Outer', ['a', 'w', 'c'], ['b'], [node('Conv', ['a', 'w'], ['q'], pads=[1] * 4), node('Select', ['q', 'c'], ['b'], domain='my')], sets)
    add('function_in_function', model([node('Outer', ['x', 'w0', 'c'], ['t'], domain='my'), node('Outer', ['t', 'w1', 'c'], ['y'], domain='my')], [value('x', X), *c], [value('y', Y)], two, 18, 9, domains=mine,
                                      functions=[select, outer]), {'x': some(*X), **yes})


def names():
    strange = 'выход/☃ \n"<&>'
    behind('strange_names', [node('Relu', ['v'], [strange], name='a b/c:0')], [value(strange, Y)])
    behind('long_names', [node('Relu', ['v'], ['n' * 5000], name='m' * 5001)], [value('n' * 5000, Y)])
    behind('names_of_tiles', [node('Relu', ['v'], ['tile/r0/while'], name='tile/r0/slice'), node('Tanh', ['tile/r0/while'], ['tile/r0'], name='tile/r0/slice_2')], [value('tile/r0', Y)])

    def nameless(m):
        for n in m.graph.node: n.ClearField('name')
        m.graph.ClearField('name')
    plain('nameless', nameless)
    behind('outputs_twice', [], [value('v', Y), value('r0', Y), value('v', Y)])
    add('input_is_output', model([node('Relu', ['x'], ['y'])], [value('x', X)], [value('x', X), value('y', X)]), {'x': some(*X)})
    plain('weight_is_output', lambda m: m.graph.output.append(value('w0', [8, 3, 3, 3])))
    plain('weight_is_input', lambda m: m.graph.input.append(value('w1', [8, 8, 3, 3])))
    behind('unread_input', [], [value('v', Y)], ins=[value('u', [1 << 40, 3, 0])], feeds={'u': np.zeros((1 << 40, 3, 0), 'f4')})
    add('identity', model([node('Identity', ['x'], ['y'])], [value('x', X)], [value('y', X)]), {'x': some(*X)})
    add('no_nodes', model([], [value('x', X)], [value('x', X)]), {'x': some(*X)})
    add('read_twice', model([node('Conv', ['x', 'w'], ['c'], pads=[1] * 4), node('Add', ['c', 'c'], ['a']), node('Mul', ['a', 'a'], ['b']), node('Concat', ['b', 'b', 'a'], ['d'], axis=1),
                             node('Max', ['d', 'd', 'd'], ['y'])], [value('x', X)], [value('y', [1, 24, 32, 32])], [weights('w', 8, 3, 3, 3)]), {'x': some(*X)})

    def backwards(m):
        nodes = list(m.graph.node)[::-1]
        del m.graph.node[:]
        m.graph.node.extend(nodes)
    plain('unsorted', backwards)

    def described(m):
        m.producer_name, m.doc_string, m.model_version = 'p', 'text\n' * 1000, -5
        helper.set_model_props(m, {'key': 'value', '': 'nothing', 'onnx_tile': 'x'})
        for n in m.graph.node: n.doc_string = 'of the node'
        m.graph.quantization_annotation.add(tensor_name='r0').quant_parameter_tensor_names.add(key='SCALE_TENSOR', value='w0')
        m.graph.metadata_props.add(key='k', value='v')
    plain('described', described, ir=10)
    plain('domain_twice', lambda m: m.opset_import.add(domain='ai.onnx', version=17))
    plain('domain_unread', lambda m: m.opset_import.add(domain='nobody', version=9))
    plain('domain_written_out', lambda m: setattr(m.graph.node[1], 'domain', 'ai.onnx'))
    plain('stale_values', lambda m: m.graph.value_info.extend([value('r0', [1, 8, 'q', 7]), value('nothing', [3])]))


def sizes():
    plain('no_batch', x=[0, *X[1:]])
    plain('free', x=['n', 3, 'h', 'h'], extent=9)
    plain('free_without_name', x=[None, 3, None, 40])
    plain('one_pixel', x=[1, 3, 1, 1])
    plain('long_row', x=[1, 3, 1, 3000])
    behind('none_joined', [node('Concat', ['v', 'e'], ['y'], axis=1)], [value('y', Y)], [constant('e', np.zeros((1, 0, 32, 32)))])
    behind('none_cut', [node('Slice', ['v', 'a', 'a', 'a'], ['s']), node('Relu', ['s'], ['y'])], [value('y', None)], [constant('a', [1], 'i8')])
    behind('none_reshaped', [node('Slice', ['v', 'a', 'a', 'a'], ['s']), node('Reshape', ['s', 'r'], ['y'], allowzero=1)], [value('y', None)], [constant('a', [1], 'i8'), constant('r', [0, 32, 32], 'i8')])
    behind('kept_by_zero', [node('Reshape', ['v', 'r'], ['q']), node('Softmax', ['q'], ['y'])], [value('y', None)], [constant('r', [0, 0, -1], 'i8')])
    numbers = {k: np.array(v, 'f4') for k, v in {'s': 2, 't': 1, 'lo': 0, 'hi': 1}.items()}
    add('numbers', model([node('Mul', ['x', 's'], ['m']), node('Add', ['m', 't'], ['a']), node('Clip', ['a', 'lo', 'hi'], ['y'])], [value('x', X), *[value(k, []) for k in numbers]], [value('y', X)]), {'x': some(*X), **numbers})
    add('numbers_alone', model([node('Add', ['a', 'b'], ['c']), node('Exp', ['c'], ['y'])], [value('a', []), value('b', [])], [value('y', [])]), {'a': np.array(1, 'f4'), 'b': np.array(2, 'f4')})
    for opset in *range(8, 18), 19, 22, 24: plain(f'opset{opset}', opset=opset, ir=ir_of(opset) if opset > 10 else 4)
    add('opset7', model([node('Conv', ['x', 'w'], ['c'], pads=[1] * 4), node('Upsample', ['c'], ['u'], scales=[1., 1., 2., 2.], mode='nearest'), node('Relu', ['u'], ['y'])],
                        [value('x', X), value('w', [8, 3, 3, 3])], [value('y', [1, 8, 64, 64])], [weights('w', 8, 3, 3, 3)], 7, 3), {'x': some(*X)})

    def outside(m):
        data = b'pad!' * 7
        for t in m.graph.initializer:
            for key, what in ('location', 'w ü.bin'), ('offset', str(len(data))), ('length', str(len(t.raw_data))), ('checksum', 'none'): t.external_data.add(key=key, value=what)
            data, t.data_location = data + t.raw_data + bytes(13), T.EXTERNAL
            t.ClearField('raw_data')
        with open(f'{folder}/w ü.bin', 'wb') as f: f.write(data)
    plain('weights_outside', outside)


def is_same(a, b, error):
    if isinstance(a, list): return len(a) == len(b) and all(is_same(x, y, error) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype: return False
    if a.dtype.kind != 'f' or a.size == 0: return np.array_equal(a, b)
    fine = np.isfinite(a)
    span = max(np.ptp(a[fine].astype('f8')), 1e-6) if fine.any() else 1
    return np.array_equal(a[~fine], b[~fine], equal_nan=True) and np.allclose(b[fine].astype('f8'), a[fine].astype('f8'), rtol=0, atol=error * span)


def passes(path):
    try: onnx.checker.check_model(path, full_check=True)
    except Exception: return False
    return True


def check(kind, m, feeds, error):
    path, out = f'{folder}/{kind}.onnx', f'{folder}/tiled.onnx'
    with open(path, 'wb') as f: f.write(m.SerializeToString())
    original = session(path)
    want, names, valid, texts = original.run(None, feeds), [o.name for o in original.get_outputs()], passes(path), set()
    for mode, options in MODES.items():
        done = subprocess.run([tool, path, '-o', out, '-q', *options], capture_output=True, text=True)
        assert done.returncode == 0, (mode, done.returncode, done.stderr)
        with open(out, 'rb') as f: text = f.read()
        if text in texts: continue
        texts.add(text)
        tiled = session(out)
        assert [o.name for o in tiled.get_outputs()] == names, (mode, 'other outputs')
        assert is_same(want, tiled.run(None, feeds), error), (mode, 'not equal')
        assert passes(out) or not valid, (mode, 'not valid')
    return len(texts) > 1


for build in operators, types, bodies, names, sizes: build()
assert len(KINDS) == COUNT, len(KINDS)
failed = several = 0
for kind in sys.argv[3:] or KINDS:
    try: several += check(kind, *KINDS[kind])
    except Exception as e:
        failed += 1
        print(f'{kind}: {type(e).__name__}: {str(e)[-400:]}')
print(len(KINDS), 'kinds,', several, 'written in more ways than one,', failed, 'failed')
sys.exit(failed > 0 or not sys.argv[3:] and several < 40)
