"""Models that ONNX Runtime saved with its optimisations, read as standard operators. optimised_files.py TOOL FOLDER SEED"""
import filecmp
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from builder import Net, model, save, value
from checks import nodes, outputs

BLOCKED, MS = 'com.microsoft.nchwc', 'com.microsoft'
TILES = ('--force', '--l2', '16K', '--threads', '1', '--target', 'cpu-generic')


def saved(path):
    """The file as ONNX Runtime saves it with all of its optimisations."""
    options, out = ort.SessionOptions(), path.replace('.onnx', '_all.onnx')
    options.optimized_model_filepath, options.log_severity_level = out, 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    return out


def call(*words):
    p = subprocess.run(words, capture_output=True, text=True)
    if p.returncode: sys.exit(f'{" ".join(words)}: exit {p.returncode}: {p.stderr}')
    return p.stdout


def same(name, got, want, tol):
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape: sys.exit(f'{name}: {a.shape}, not {b.shape}')
        error = np.abs(a.astype('f8') - b).max() / max(np.abs(b).max(), 1e-30)
        if not error <= tol: sys.exit(f'{name}: off by {error:.1e}')


def tiled(path, fed, tol=1e-4, engine=True):
    """Tiled into standard operators alone, and as the engine computes it: equal. Returns how many regions."""
    out = path.replace('.onnx', '_out.onnx')
    want = outputs(path, fed)
    facts = json.loads(call(tool, path, '-o', out, '--json', *TILES))
    same(path, outputs(out, fed), want, tol)
    left = {n.domain for n in onnx.load(out).graph.node} & {BLOCKED}
    if left: sys.exit(f'{path}: still has nodes of {left}')
    if engine:
        call(tool, path, '-o', out, '-q', '--emit', 'engine', '--verify', *TILES)
        np.save(f'{folder}/x.npy', fed['x'])
        call(tool, 'run', path, '-q', '--input', f'x={folder}/x.npy', '--output-dir', folder)
        same(f'{path} (run)', [np.load(f'{folder}/0.npy')], want, tol)
    return len(facts['regions'])


# ---- blocks of channels ----

WIDTHS = [4, 8, 12, 16, 20, 24, 32, 40, 48]


def step(net, rng, v, c):
    """One more layer behind v of c channels; returns its result and channels."""
    kind = rng.integers(0, 9)
    if kind == 0: return net.conv(v, 1, c, bias=.1, group=c, pads=[1] * 4), c  # one channel a group
    if kind == 1: return net.op('MaxPool', v, kernel_shape=[3, 3], pads=[1] * 4), c
    if kind == 2: return net.op('AveragePool', v, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=int(rng.integers(0, 2))), c
    if kind == 3:  # a gate by channel
        gate = net.op('Sigmoid', net.conv(net.op('GlobalAveragePool', v), c, c, k=1, bias=.1))
        return net.op('Mul', v, gate), c
    if kind == 4:  # a block that is added to what it reads
        return net.op('Relu', net.op('Add', net.conv(net.op('Relu', net.conv(v, c, c, pads=[1] * 4)), c, c, pads=[1] * 4), v)), c
    if kind == 5 and c % 16 == 0:
        more = net.conv(v, c, 16, bias=.1, pads=[1] * 4)
        return net.op('Concat', v, net.op('Relu', more), axis=1), c + 16
    wide = int(rng.choice(WIDTHS))
    v = net.conv(v, c, wide, bias=.1 if rng.random() < .7 else None, pads=[1] * 4)
    act = rng.integers(0, 5)
    if act == 0: v = net.op('Relu', v)
    if act == 1: v = net.op('LeakyRelu', v, alpha=.1)
    if act == 2: v = net.op('Clip', v, net.const(-.5), net.const(.7))
    if act == 3: v = net.op('HardSigmoid', v, alpha=.3, beta=.4)
    return v, wide


def network(seed):
    rng = np.random.default_rng([seed, 77])
    net = Net([seed, 78], opset=int(rng.choice([11, 13, 17])))
    free = rng.random() < .3
    v, c = net.input('x', [1, 3, 'h', 'w'] if free else [1, 3, 40, 36]), 3
    for _ in range(int(rng.integers(3, 7))): v, c = step(net, rng, v, c) if c > 3 else (net.conv(v, 3, 16, bias=.1, pads=[1] * 4), 16)
    if rng.random() < .4:
        mode = {'mode': 'nearest', 'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor'}
        if rng.random() < .5: mode = {'mode': 'linear', 'coordinate_transformation_mode': 'half_pixel'}
        v = net.op('Resize', net.conv(v, c, 16, pads=[1] * 4), net.const(np.zeros(0)), net.const([1, 1, 2, 2]), **mode)
        c = 16
    v = net.conv(v, c, int(rng.choice([1, 3, 16])), bias=.1, pads=[1] * 4)
    net.op('Tanh', v, out='y')
    net.output('y', [None] * 4)
    return net.model(), free


def blocked_networks():
    kinds, regions = set(), 0
    for seed in range(seed0, seed0 + 16):
        m, free = network(seed)
        path = saved(save(m, f'{folder}/net{seed}.onnx'))
        nodes = onnx.load(path).graph.node
        kinds |= {n.op_type for n in nodes if n.domain == BLOCKED}
        fed = {'x': np.random.default_rng(seed).standard_normal((1, 3, 40, 36)).astype('f4')}
        if free:  # sizes stay free
            out = path.replace('.onnx', '_out.onnx')
            call(tool, path, '-o', out, '-q', '--goal', 'memory', '--threads', '1')
            same(path, outputs(out, fed), outputs(path, fed), 1e-4)
        else:
            regions += tiled(path, fed)
    wanted = {'Conv', 'ReorderInput', 'ReorderOutput', 'MaxPool', 'AveragePool', 'GlobalAveragePool', 'Upsample'}
    if not wanted <= kinds: sys.exit(f'ONNX Runtime writes only {kinds}')
    if regions < 16: sys.exit(f'{regions} regions in all')


def shuffled(net, v, c):
    """Channels in four groups, exchanged."""
    parts = net.reshape(net.op('Conv', v, net.const(net.rng.normal(0, .3, (c, c // 4, 1, 1))), group=4), [1, 4, c // 4, 24, 20])
    return net.reshape(net.op('Transpose', parts, perm=[0, 2, 1, 3, 4]), [1, c, 24, 20])


def cut_plain(net, v, c, how):
    """Operators that ONNX Runtime does not put in blocks, whose channels are told by constants; returns channels, too."""
    old = net.opset < 10
    ints = [net.const(a, 'i8') for a in ([0, 4], [24, c], [2, 1])] if how == 'Slice' and not old else []
    if how == 'Slice': return net.op('Slice', v, *ints, **({'starts': [0, 4], 'ends': [24, c], 'axes': [2, 1]} if old else {})), c - 4
    if how == 'Pad':
        pads = [0, 2, 0, 0, 0, 2, 0, 0]
        old = net.opset < 11
        return net.op('Pad', v, *([] if old else [net.const(pads, 'i8')]), mode='reflect', **({'pads': pads} if old else {})), c + 4
    if how == 'DepthToSpace': return net.op('SpaceToDepth', net.op('DepthToSpace', v, blocksize=2), blocksize=2), c
    if how == 'Split':
        a, b = net.fresh(), net.fresh()
        sizes = {'split': [8, c - 8]} if net.opset < 13 else {}
        net.nodes.append(helper.make_node('Split', [v] + ([] if sizes else [net.const([8, c - 8], 'i8')]), [a, b], axis=1, **sizes))
        return net.op('Concat', b, net.op('Neg', a), axis=1), c
    if how == 'Gather': return net.op('Gather', v, net.const(np.arange(c)[::-1], 'i8'), axis=1), c
    if how == 'ReduceMax': return net.op('Sub', v, net.reduce(how, v, [2, 3])), c
    return shuffled(net, v, c), c


def channels_told():
    """Values between blocks, in old and new opsets: where their channels are no whole number of blocks, nothing but what makes them tells how
    many there are."""
    for opset in (8, 9, 10, 11, 17):
        for how in ('shuffle', 'Slice', 'Pad', 'DepthToSpace', 'Split', 'Gather', 'ReduceMax'):
            net = Net([opset, 6], opset=opset)
            v = net.op('Relu', net.conv(net.input('x', [1, 3, 48, 40]), 3, 20, bias=.1, pads=[1] * 4))
            v, c = cut_plain(net, net.op('MaxPool', v, kernel_shape=[2, 2], strides=[2, 2]), 20, how)
            v = net.op('Relu', net.conv(v, 1, c, bias=.1, group=c, pads=[1] * 4))  # the weights of padding are 0
            v = net.conv(net.op('AveragePool', v, kernel_shape=[3, 3], pads=[1] * 4), c, 16, pads=[1] * 4)
            if opset == 9: v = net.op('Upsample', v, net.const([1, 1, 2, 2]), mode='nearest')
            if opset == 10: v = net.op('Resize', v, net.const([1, 1, 2, 2]), mode='nearest')
            net.op('Tanh', net.conv(v, 16, 12, bias=.1, pads=[1] * 4), out='y')
            net.output('y', [None] * 4)
            path = saved(save(net.model(ir=4), f'{folder}/told_{opset}_{how}.onnx'))
            kinds = {n.op_type for n in onnx.load(path).graph.node if n.domain == BLOCKED}
            if not {'Conv', 'ReorderInput'} <= kinds: sys.exit(f'{path}: ONNX Runtime writes only {kinds}')
            if tiled(path, {'x': np.random.default_rng(opset).standard_normal((1, 3, 48, 40)).astype('f4')}) < 1: sys.exit(f'{path}: no region')


def pools_alone():
    """One average in blocks, of no convolution."""
    net = Net(9, opset=9)
    v = net.op('BatchNormalization', net.op('Relu', net.input('x', [1, 32, 48, 40])), *[net.uniform([32]) for _ in range(4)])
    net.op('AveragePool', net.op('LRN', v, size=3), kernel_shape=[5, 5], out='y')
    net.output('y', [1, 32, 44, 36])
    path = saved(save(net.model(ir=4), f'{folder}/pools.onnx'))
    if 'AveragePool' not in {n.op_type for n in onnx.load(path).graph.node if n.domain == BLOCKED}: sys.exit('no pool in blocks')
    if tiled(path, {'x': np.random.default_rng(1).standard_normal((1, 32, 48, 40)).astype('f4')}) < 1: sys.exit(f'{path}: no region')


# ---- quantized, channels last ----

def numbered(net, v, scale=.05, zero=128):
    """Through 8-bit numbers."""
    s, z = net.const(scale), net.const(zero, 'u1')
    return net.op('DequantizeLinear', net.op('QuantizeLinear', v, s, z), s, z)


def byte_conv(net, v, c_in, c_out, k=3, group=1):
    w = net.op('DequantizeLinear', net.const(net.rng.integers(-90, 91, (c_out, c_in // group, k, k)), 'i1'), net.const(.01), net.const(0, 'i1'))
    b = net.op('DequantizeLinear', net.const(net.rng.integers(-999, 1000, c_out), 'i4'), net.const(.05 * .01), net.const(0, 'i4'))
    return numbered(net, net.op('Conv', v, w, b, group=group, pads=[k // 2] * 4))


def byte_step(net, v, c):
    """One more layer behind v of c channels; returns its result and channels."""
    kind = net.rng.integers(0, 9)
    if kind == 0: return numbered(net, net.op('LeakyRelu', v, alpha=.1)), c
    if kind == 1: return numbered(net, net.op('Sigmoid', v), 1 / 256, 0), c
    if kind == 2: return numbered(net, net.op('Add', v, byte_conv(net, v, c, c))), c
    if kind == 3: return numbered(net, net.op('Concat', v, byte_conv(net, v, c, 8), axis=1)), c + 8
    if kind == 4: return numbered(net, net.op('AveragePool', v, kernel_shape=[3, 3], pads=[1] * 4)), c
    if kind == 5: return net.op('MaxPool', v, kernel_shape=[3, 3], pads=[1] * 4), c
    if kind == 6:
        gate = byte_conv(net, numbered(net, net.op('GlobalAveragePool', v)), c, c, k=1)
        return numbered(net, net.op('Mul', v, gate)), c
    if kind == 7: return numbered(net, net.op('Softmax', v, axis=1), 1 / 256, 0), c
    return byte_conv(net, v, c, c, group=c), c


def byte_networks():
    """Convolutions whose channels lie last, and pools and others between them; a value that somebody reads as it lies."""
    kinds, regions = set(), 0
    for seed in range(seed0, seed0 + 16):
        net = Net([seed, 5], opset=int(np.random.default_rng(seed).choice([13, 17])))
        v, c = byte_conv(net, numbered(net, net.input('x', [1, 3, 40, 36])), 3, 16), 16
        for _ in range(int(net.rng.integers(2, 6))): v, c = byte_step(net, v, c)
        net.output(net.op('Identity', byte_conv(net, v, c, 8), out='y'), [1, 8, 40, 36])
        turned = net.op('Transpose', v, perm=[0, 2, 3, 1])
        net.output(net.op('Mul', turned, net.uniform([c]), out='z'), [1, 40, 36, c])
        path = saved(save(net.model(), f'{folder}/bytes{seed}.onnx'))
        kinds |= {n.op_type for n in onnx.load(path).graph.node if any(a.name == 'channels_last' and a.i for a in n.attribute)}
        fed = {'x': np.random.default_rng(seed).standard_normal((1, 3, 40, 36)).astype('f4')}
        regions += tiled(path, fed, tol=1e-6, engine=False)
        left = [n.op_type for n in onnx.load(path.replace('.onnx', '_out.onnx')).graph.node for a in n.attribute if a.name == 'channels_last' and a.i]
        if left: sys.exit(f'{path}: still has {left} whose channels lie last')
    if not {'QLinearConv', 'QLinearAveragePool', 'QLinearGlobalAveragePool'} <= kinds: sys.exit(f'ONNX Runtime writes only {kinds}')
    if regions < 16: sys.exit(f'{regions} regions in all')


def last_pool():
    """A MaxPool whose channels lie last, between others, whose result is shown as it lies as well."""
    w = onnx.numpy_helper.from_array(np.random.default_rng(1).integers(-90, 91, (8, 4, 3, 3)).astype('i1'), 'w')
    def number(name, v, t): return onnx.numpy_helper.from_array(np.array(v, t), name)
    inits = [w, number('s', .05, 'f4'), number('z', 128, 'u1'), number('ws', .01, 'f4'), number('wz', 0, 'i1')]
    nodes = [helper.make_node('Transpose', ['x'], ['a'], perm=[0, 2, 3, 1]),
             helper.make_node('QLinearConv', ['a', 's', 'z', 'w', 'ws', 'wz', 's', 'z'], ['b'], domain=MS, channels_last=1, pads=[1] * 4),
             helper.make_node('NhwcMaxPool', ['b'], ['c'], domain=MS, kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node('Transpose', ['c'], ['d'], perm=[0, 3, 1, 2]), helper.make_node('Transpose', ['c'], ['e'], perm=[0, 3, 1, 2]),
             helper.make_node('DequantizeLinear', ['d', 's', 'z'], ['y']), helper.make_node('DequantizeLinear', ['e', 's', 'z'], ['f'])]
    shapes = {'y': (1, 8, 32, 24), 'f': (1, 8, 32, 24), 'c': (1, 32, 24, 8)}
    U8 = onnx.TensorProto.UINT8
    m = model(nodes, [value('x', [1, 4, 64, 48], U8)], [value(n, s, U8 if n == 'c' else 1) for n, s in shapes.items()], inits, opset=13, domains=[(MS, 1)])
    fed = {'x': np.random.default_rng(2).integers(0, 256, (1, 4, 64, 48)).astype('u1')}
    if tiled(save(m, f'{folder}/last_pool.onnx'), fed, tol=0, engine=False) < 1: sys.exit('NhwcMaxPool: no region')


def edited(path, name, edit):
    m = onnx.load(path)
    edit(m.graph)
    return save(m, f'{folder}/{name}.onnx')


def left_alone():
    """What does not fit, and what needs no change, comes back as it was."""
    net = Net(5)
    v = net.op('Relu', net.conv(net.input('x', [1, 3, 32, 32]), 3, 16, pads=[1] * 4))
    net.op('Relu', net.conv(v, 16, 16, pads=[1] * 4), out='y')
    net.output('y', [1, 16, 32, 32])
    path, out = saved(save(net.model(), f'{folder}/two.onnx')), f'{folder}/out.onnx'

    def shows_blocks(g):
        g.output.append(value(g.node[0].output[0], [1, 16, 32, 32]))

    def moves_blocks(g):
        g.node.insert(1, helper.make_node('Neg', [g.node[0].output[0]], ['negated']))
        g.node[2].input[0] = 'negated'

    def narrows(g):
        g.node[-1].attribute[0].CopyFrom(helper.make_attribute('channels', 99))
        del g.node[-1].attribute[1:]

    def weights_fed(g):
        g.input.append(value(g.node[0].input[1], [16, 3, 3, 3]))
    for edit in (shows_blocks, moves_blocks, narrows, weights_fed):
        file = edited(path, edit.__name__, edit)
        call(tool, file, '-o', out, '-q', *TILES)
        if not filecmp.cmp(file, out, shallow=False): sys.exit(f'{file}: changed')
    call(tool, path, '-o', out, '-q', '--target', 'cpu-generic', '--goal', 'time', '--l2', '1G')
    if not filecmp.cmp(path, out, shallow=False): sys.exit(f'{path}: changed, though nothing is tiled')


# ---- merged activations ----

PARAMETERS = {'Relu': [], 'Sigmoid': [], 'Tanh': [], 'LeakyRelu': [.2], 'Clip': [-.3, .4], 'HardSigmoid': [.3, .4]}


def merged_activations():
    rng = np.random.default_rng(3)
    for opset in (9, 17):
        for act, given in PARAMETERS.items():
            x, z = value('x', [1, 4, 48, 40]), helper.make_tensor_value_info('y', 1, [1, 8, 48, 40])
            w = onnx.numpy_helper.from_array(rng.normal(0, .3, (8, 4, 3, 3)).astype('f4'), 'w')
            v = onnx.numpy_helper.from_array(rng.normal(0, .3, (8, 8, 3, 3)).astype('f4'), 'v')
            more = {'activation_params': given} if given else {}
            nodes = [helper.make_node('FusedConv', ['x', 'w'], ['a'], domain=MS, pads=[1] * 4, activation=act, **more),
                     helper.make_node('FusedConv', ['a', 'v', '', 'a'], ['y'], domain=MS, pads=[1] * 4, activation=act, **more)]
            m = model(nodes, [x], [z], [w, v], opset=opset, domains=[(MS, 1)])
            fed = {'x': rng.standard_normal((1, 4, 48, 40)).astype('f4')}
            if tiled(save(m, f'{folder}/conv_{act}_{opset}.onnx'), fed) < 1: sys.exit(f'FusedConv of {act}, opset {opset}: no region')
            if act == 'Clip': continue  # FusedGemm has no such
            more = {f'activation_{n}': p for n, p in zip(('alpha', 'beta'), given)}
            nodes = [helper.make_node('FusedGemm', ['x', 'w', 'b'], ['a'], domain=MS, transB=1, activation=act, **more),
                     helper.make_node('FusedGemm', ['a', 'w', 'b'], ['y'], domain=MS, transB=1, activation=act, **more)]
            w = onnx.numpy_helper.from_array(rng.normal(0, .2, (32, 32)).astype('f4'), 'w')
            b = onnx.numpy_helper.from_array(rng.normal(0, .2, 32).astype('f4'), 'b')
            m = model(nodes, [value('x', [256, 32])], [value('y', [256, 32])], [w, b], opset=opset, domains=[(MS, 1)])
            fed = {'x': rng.standard_normal((256, 32)).astype('f4')}
            if tiled(save(m, f'{folder}/gemm_{act}_{opset}.onnx'), fed) < 1: sys.exit(f'FusedGemm of {act}, opset {opset}: no region')


def gates():
    """x * sigmoid(factor * x), which is saved as QuickGelu."""
    for k, factor in enumerate((None, 1.702, -.5)):
        net = Net(seed=11 + k)
        v = net.op('MatMul', net.input('x', [1, 256, 32]), net.const(net.rng.standard_normal((32, 64)) / 4))
        t = v if factor is None else net.op('Mul', v, net.const(factor, 'f4'))
        net.output(net.op('MatMul', net.op('Mul', v, net.op('Sigmoid', t)), net.const(net.rng.standard_normal((64, 16)) / 8)), [1, 256, 16])
        path = saved(save(net.model(), f'{folder}/gate{k}.onnx'))
        if 'QuickGelu' not in {n.op_type for n in onnx.load(path).graph.node}: sys.exit(f'{path}: no QuickGelu')
        if tiled(path, {'x': net.rng.standard_normal((1, 256, 32)).astype('f4')}, tol=1e-5) < 1: sys.exit(f'{path}: no region')


# ---- attention ----

def attention_network(rng, rows, mask, scored=False, sizes=None):
    """Attention over one input, between element-wise operators; its mask, feeds."""
    wide, heads, b, packed = 32, 4, 2, sum(sizes or [32] * 3)
    def const(name, a): return onnx.numpy_helper.from_array(a.astype('f4'), name)
    inits = [const('w', rng.normal(0, .3, (wide, packed))), const('bias', rng.normal(0, .1, packed))]
    inputs, fed = [value('x', [b, rows, wide])], {'x': rng.standard_normal((b, rows, wide)).astype('f4')}
    if mask:
        inputs.append(value('m', mask, onnx.TensorProto.INT64))
        fed['m'] = rng.integers(0, 2, mask) if len(mask) == 2 else rng.integers(1, rows, mask)
    if scored:
        inputs.append(value('s', [1, heads, rows, rows]))
        fed['s'] = rng.standard_normal((1, heads, rows, rows)).astype('f4')
    nodes = [helper.make_node('Relu', ['x'], ['a'])] + ([helper.make_node('Cast', ['m'], ['mi'], to=onnx.TensorProto.INT32)] if mask else [])
    ins = ['a', 'w', 'bias', 'mi' if mask else '', '', 's' if scored else '']
    while not ins[-1]: ins.pop()
    more = {'qkv_hidden_sizes': sizes} if sizes else {}
    nodes += [helper.make_node('Attention', ins, ['c'], domain=MS, num_heads=heads, **more), helper.make_node('Tanh', ['c'], ['y'])]
    out = value('y', [b, rows, sizes[2] if sizes else wide])
    return model(nodes, inputs, [out], inits, opset=int(rng.choice([11, 13, 17])), domains=[(MS, 1)]), fed


def attention():
    rng = np.random.default_rng(8)
    for k, asked in enumerate([(None,), ([2, 64],), ([2],), (None, True), ([2, 64], True, [24, 24, 40]), ([2], False, [32, 32, 16])]):
        m, fed = attention_network(rng, 64, *asked)
        path = save(m, f'{folder}/attention{k}.onnx')
        if tiled(path, fed, tol=1e-5, engine=False) < 1: sys.exit(f'{path}: no region')
        if 'Attention' in {n.op_type for n in onnx.load(path.replace('.onnx', '_out.onnx')).graph.node}: sys.exit(f'{path}: still has Attention')
    m, fed = attention_network(rng, 1024, [2, 1024])
    path, out = save(m, f'{folder}/attention_rows.onnx'), f'{folder}/out.onnx'
    facts = json.loads(call(tool, path, '-o', out, '--json', '--goal', 'memory', '--threads', '1', '--target', 'cpu-generic'))
    same(path, outputs(out, fed), outputs(path, fed), 1e-5)
    if facts['tiled']['growth_bytes'] > .3 * facts['untiled']['growth_bytes']: sys.exit(f'{path}: {facts["tiled"]}, of {facts["untiled"]}')
    for name, edit in (('causal', {'unidirectional': 1}), ('masks', None)):  # cut along the batch
        m, fed = attention_network(rng, 64, [2, 64, 64] if edit is None else None)
        fed = {n: v if n == 'x' else rng.integers(0, 2, (2, 64, 64)) for n, v in fed.items()}
        for n in m.graph.node:
            if edit and n.op_type == 'Attention': n.attribute.append(helper.make_attribute('unidirectional', 1))
        path = save(m, f'{folder}/attention_{name}.onnx')
        tiled(path, fed, tol=1e-5, engine=False)
        if 'Attention' not in {n.op_type for n in nodes(onnx.load(path.replace('.onnx', '_out.onnx')).graph)}: sys.exit(f'{path}: no Attention')


tool, folder, seed0 = sys.argv[1], sys.argv[2], int(sys.argv[3])
blocked_networks()
channels_told()
pools_alone()
byte_networks()
last_pool()
attention()
left_alone()
merged_activations()
gates()
