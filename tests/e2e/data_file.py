"""Weights in a file of their own, constants that several regions read. data_file.py TOOL FOLDER"""
import collections
import glob
import json
import os
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import graphs, nmse, nodes, outputs

tool, folder = sys.argv[1:3]


def tiled(model, name, *options, output=None):
    """The path of what the tool writes, and the data files beside it."""
    path = os.path.join(folder, name)
    for old in glob.glob(path + '*'):
        os.remove(old)
    done = subprocess.run([tool, model, '-o', output or path, '--target', 'cpu-generic', *options], capture_output=True)
    assert done.returncode == 0, done.stderr
    if output:
        open(path, 'wb').write(done.stdout)
    return path, glob.glob(path + '.*.data')


def external(path):
    """Of every tensor outside of the model: its place, how often it is referred to."""
    places = collections.Counter()
    for g in graphs(onnx.load(path, load_external_data=False).graph):
        for t in g.initializer:
            if t.data_location == onnx.TensorProto.EXTERNAL:
                places[next(e.value for e in t.external_data if e.key == 'offset')] += 1
    return places


def convolutions(normalised):
    """2.4 MB of weights, maps of 8 MiB."""
    net = Net(seed=5)
    x, c = net.input('x', [1, 3, 256, 256]), 3
    for k in range(6):
        x, c = net.conv(x, c, 128 if k else 32, pads=[1] * 4), 128 if k else 32
        if normalised:
            x = net.op('BatchNormalization', x, *(net.const(net.rng.uniform(.5, 1.5, c)) for _ in range(4)))
        x = net.op('Relu', x)
    net.output(net.conv(x, c, 3, pads=[1] * 4), [1, 3, 256, 256])
    return net.model()


def shared_bias(layers=3, n=1024):
    """Attention of several layers, to whose products one constant is added that is computed of constants."""
    net = Net(seed=2)
    index = np.minimum(np.abs(np.arange(n)[:, None] - np.arange(n)) // 16, 31)
    bias = net.op('Unsqueeze', net.op('Transpose', net.op('Gather', net.const(net.rng.normal(0, 1, (32, 4))), net.const(index, 'i8')), perm=[2, 0, 1]),
                  net.const([0], 'i8'))
    x = net.input('x', [1, 4, n, 32])
    for _ in range(layers):
        scores = net.op('Add', net.op('MatMul', x, net.op('Transpose', x, perm=[0, 1, 3, 2])), bias)
        x = net.op('Add', net.op('MatMul', net.op('Softmax', scores, axis=-1), x), x)
    net.output(x, [1, 4, n, 32])
    return net.model()


def feeds(model):
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return {'x': np.random.default_rng(0).standard_normal(dims, dtype='f4')}


def equal(original, path, fed):
    for want, got in zip(outputs(original, fed), outputs(path, fed)):
        assert got.shape == want.shape and nmse(got, want) < 1e-10, (path, nmse(got, want))


def weights():
    for normalised in (False, True):
        m = convolutions(normalised)
        original, fed = save(m, os.path.join(folder, 'conv.onnx')), feeds(m)
        memory = ['--goal', 'memory']
        path, data = tiled(original, 'memory.onnx', *memory)
        assert len(data) == 1 and os.path.getsize(path) < 200_000 < 2_000_000 < os.path.getsize(data[0])
        assert any(len(g.initializer) for g in list(graphs(onnx.load(path).graph))[1:]), 'bodies have no weights'
        outside = [n.op_type for g in graphs(onnx.load(path).graph) if not any('body' in n.name for n in g.node) for n in g.node]
        assert 'BatchNormalization' not in outside, 'normalisations stay'
        equal(original, path, fed)
        for options in ([], memory + ['--single-file'], memory + ['--emit', 'engine'], memory + ['--runtime', 'openvino']):
            one, none = tiled(original, 'one.onnx', *options)
            assert not none and not external(one), (options, none)
            if '--emit' not in options:
                equal(original, one, fed)
        piped, none = tiled(original, 'piped.onnx', *memory, output='-')
        assert not none and not external(piped)
        equal(original, piped, fed)
        for command in (['run', path], ['inspect', path]):  # what was written is read
            done = subprocess.run([tool, *command, '-q'], capture_output=True)
            assert done.returncode == 0, done.stderr
        done = subprocess.run([tool, original, '-o', os.path.join(folder, 'v.onnx'), '--goal', 'memory', '--verify'], capture_output=True)
        assert done.returncode == 0, done.stderr


def places():
    """Bodies that read the same weights refer to one place: the file is no larger than what it was made of."""
    m = convolutions(False)
    original = save(m, os.path.join(folder, 'conv.onnx'))
    path, data = tiled(original, 'forced.onnx', '--goal', 'memory', '--force', '--l2', '256K')
    assert data and sum(external(path).values()) >= 7, external(path)
    assert os.path.getsize(data[0]) < 1.1 * os.path.getsize(original)
    equal(original, path, feeds(m))


def products():
    """Weights of matrix products in loops are the top graph's, each there once: bodies capture them, and that is what is predicted."""
    net = Net(seed=7)
    x = net.input('x', [1, 4096, 256])
    for _ in range(2):
        wide = net.op('Sigmoid', net.op('MatMul', x, net.const(net.rng.normal(0, .05, (256, 2048)))))
        x = net.op('Add', net.op('MatMul', wide, net.const(net.rng.normal(0, .05, (2048, 256)))), x)
    net.output(x, [1, 4096, 256])
    m = net.model()
    original, held = save(m, os.path.join(folder, 'mlp.onnx')), 4 * 256 * 2048 * 4
    for options in ([], ['--single-file']):
        path, _ = tiled(original, 'mlp_tiled.onnx', '--goal', 'memory', *options)
        top, *bodies = graphs(onnx.load(path).graph)
        large = [t for t in top.initializer if len(t.dims) == 2]
        assert len(large) == 4 and any('MatMul' in [n.op_type for n in g.node] for g in bodies), (len(large), len(bodies))
        assert not any(len(t.dims) == 2 for g in bodies for t in g.initializer), 'a body has weights of its own'
        equal(original, path, feeds(m))
        told = subprocess.run([tool, 'inspect', original, '--target', 'cpu-generic', '--goal', 'memory', '--json', *options], capture_output=True, check=True)
        loaded = json.loads(told.stdout)['tiled']['loaded_bytes']
        assert loaded < (30 << 20) + 1.1 * held + (0.7 * held if options else 0), loaded


def constants():
    """What layers compute of the same constants is computed once; with goal memory it is in the file."""
    m = shared_bias()
    original = save(m, os.path.join(folder, 'bias.onnx'))
    path, _ = tiled(original, 'bias_folded.onnx', '--goal', 'memory', '--force')
    held = [t for g in graphs(onnx.load(path, load_external_data=False).graph) for t in g.initializer if bias_name(m) in t.name]
    assert held and len({e.value for t in held for e in t.external_data if e.key == 'offset'}) == 1, [t.name for t in held]
    equal(original, path, feeds(m))
    path, _ = tiled(original, 'bias_tiled.onnx', '--goal', 'time', '--force')
    written = onnx.load(path).graph
    assert sum(n.op_type == 'Softmax' for n in nodes(written)) > 3, 'layers are not tiled'
    read = []
    for g in graphs(written):
        known = {t.name: onnx.numpy_helper.to_array(t).tolist() for t in g.initializer if t.data_type == onnx.TensorProto.INT64}
        read += [(n.op_type, [known.get(i, i) for i in n.input]) for n in g.node if bias_name(m) in n.input]
    assert read and all(a not in read[:k] for k, a in enumerate(read)), read
    equal(original, path, feeds(m))


def bias_name(m):
    """What the Unsqueeze makes."""
    return next(n.output[0] for n in m.graph.node if n.op_type == 'Unsqueeze')


weights()
places()
products()
constants()
