"""Constants that a file has by two names, as exporters write equal biases. one_name.py TOOL FOLDER"""
import os
import subprocess
import sys

import numpy as np
import onnx

from builder import Net, save
from checks import graphs, session

tool, folder = sys.argv[1:3]


def network(extent):
    """Convolutions whose biases are one constant: under its name, under a second and under a third, that is a second one's."""
    net = Net(seed=1)
    v = net.input('x', [1, 8, extent, extent])
    bias = net.const(np.arange(8) / 8, 'f4', 'bias')
    for _ in range(3):
        v = net.op('Relu', net.op('Conv', v, net.const(net.rng.standard_normal((8, 8, 3, 3)) / 9), bias, pads=[1] * 4))
        bias = net.op('Identity', bias)
    net.output(v, [1, 8, extent, extent])
    net.output(bias, [8])
    return net.model()


for extent, goal in ((256, 'memory'), ('n', 'memory'), ('n', 'time')):
    what, src, dst = f'{extent}, goal {goal}', os.path.join(folder, 'net.onnx'), os.path.join(folder, 'tiled.onnx')
    save(network(extent), src)
    subprocess.run([tool, src, '-o', dst, '--goal', goal, '--target', 'cpu-generic', '--force', '-q'], check=True)
    m = onnx.load(dst)
    onnx.checker.check_model(m, full_check=True)
    bodies = [g for g in graphs(m.graph) if g is not m.graph and any(n.op_type == 'Conv' for n in g.node)]
    if not bodies: sys.exit(f'{what}: not tiled')
    own = {v for g in bodies for v in [*(i.name for i in g.initializer), *(v for n in g.node for v in n.output)]}
    read = {n.input[2] for g in bodies for n in g.node if n.op_type == 'Conv'} - own
    if read - {'bias'}: sys.exit(f'{what}: convolutions read {sorted(read)} of the graph around them')
    x = {'x': np.random.default_rng(1).random((1, 8, 256, 256), dtype='f4')}
    for u, v in zip(session(src).run(None, x), session(dst).run(None, x)):
        if not np.allclose(u, v, rtol=1e-5, atol=1e-5): sys.exit(f'{what}: outputs differ')
    print(what, 'one name')
