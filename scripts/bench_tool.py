#!/usr/bin/env python3
"""How long the tool itself takes, and how much memory: bench_tool.py [--tool build/onnx-tile] [--nodes 4000] [--keep DIR] [-v]

Large graphs are made, a convolutional one (residual blocks) and a transformer written out in plain operators, and each is run
through the tool in a few modes. A line per run: seconds (best of three), peak resident size, model size, and whether the
figures are within the aims: 2 seconds, and 3 x model size + 100 MB.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as TP, helper as H, numpy_helper as NH

MODES = [('time', []), ('memory', ['--goal', 'memory']), ('force', ['--force', '--l2', '512K']), ('inspect', None)]


class Net:
    def __init__(self, shape):
        self.rng = np.random.default_rng(0)
        self.nodes, self.inits = [], []
        self.shape = shape

    def op(self, kind, *ins, **attrs):
        name = f'{kind.lower()}_{len(self.nodes)}'
        self.nodes.append(H.make_node(kind, list(ins), [name], name, **attrs))
        return name

    def weight(self, *shape):
        name = f'w_{len(self.inits)}'
        fan = max(int(np.prod(shape[1:])), 1)
        self.inits.append(NH.from_array((self.rng.standard_normal(shape) / np.sqrt(fan)).astype('f4'), name))
        return name

    def ints(self, *values):
        name = f'c_{len(self.inits)}'
        self.inits.append(NH.from_array(np.array(values, np.int64), name))
        return name

    def model(self, out):
        g = H.make_graph(self.nodes, 'bench', [H.make_tensor_value_info('x', TP.FLOAT, self.shape)],
                         [H.make_tensor_value_info(out, TP.FLOAT, None)], self.inits)
        return H.make_model(g, opset_imports=[H.make_opsetid('', 17)], ir_version=8)


def cnn(n_nodes):
    """Residual blocks of 8 nodes; every 50 blocks the map is halved."""
    n = Net([1, 16, 256, 256])
    h, halvings = 'x', 0
    conv = lambda x, **a: n.op('Conv', x, n.weight(16, 16, 3, 3), n.weight(16), pads=[1] * 4, **a)
    while len(n.nodes) < n_nodes - 8:
        block = len(n.nodes) // 8
        if block % 50 == 49 and halvings < 4:
            h, halvings = n.op('MaxPool', h, kernel_shape=[2, 2], strides=[2, 2]), halvings + 1
        a = n.op('Relu', conv(h))
        b = n.op('Mul', conv(a), n.op('Sigmoid', conv(a)))
        h = n.op('Relu', n.op('Add', b, h))
    return n.model(h)


def transformer(n_nodes):
    """Layers of about 40 nodes: normalisation in plain operators, 4 heads of attention, feed-forward with Gelu by Erf."""
    s, d, heads = 512, 64, 4
    n = Net([1, s, d])
    split, join = n.ints(1, s, heads, d // heads), n.ints(1, s, d)
    scalar = lambda v: (n.inits.append(NH.from_array(np.float32(v), f's_{len(n.inits)}')), f's_{len(n.inits) - 1}')[1]

    def norm(x):
        c = n.op('Sub', x, n.op('ReduceMean', x, axes=[-1]))
        var = n.op('ReduceMean', n.op('Mul', c, c), axes=[-1])
        return n.op('Add', n.op('Mul', n.op('Div', c, n.op('Sqrt', n.op('Add', var, scalar(1e-5)))), n.weight(d)), n.weight(d))

    def dense(x, k, m):
        return n.op('Add', n.op('MatMul', x, n.weight(k, m)), n.weight(m))

    h = 'x'
    while len(n.nodes) < n_nodes - 45:
        x = norm(h)
        q, k, v = (n.op('Reshape', dense(x, d, d), split) for _ in range(3))
        q, v = (n.op('Transpose', t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = n.op('Mul', n.op('MatMul', q, n.op('Transpose', k, perm=[0, 2, 3, 1])), scalar(0.25))
        o = n.op('Transpose', n.op('MatMul', n.op('Softmax', scores, axis=-1), v), perm=[0, 2, 1, 3])
        h = n.op('Add', h, dense(n.op('Reshape', o, join), d, d))
        x = dense(norm(h), d, 4 * d)
        x = n.op('Mul', n.op('Mul', x, scalar(0.5)), n.op('Add', n.op('Erf', n.op('Mul', x, scalar(0.7071))), scalar(1)))
        h = n.op('Add', h, dense(x, 4 * d, d))
    return n.model(h)


def run(command):
    """Seconds and peak resident MB of one run."""
    start = time.perf_counter()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    error = p.stderr.read()
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f'{" ".join(command)}: exit {p.returncode}: {error.strip()}')
    return time.perf_counter() - start, usage.ru_maxrss / 1024, error


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--nodes', type=int, default=4000)
    p.add_argument('--keep', help='folder that the models stay in')
    p.add_argument('-v', action='store_true', help='time of each pass')
    o = p.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as tmp:
        folder = o.keep or tmp
        os.makedirs(folder, exist_ok=True)
        print(f'{"model":12s} {"mode":8s} {"nodes":>6s} {"seconds":>8s} {"peak MB":>8s} {"model MB":>9s} {"peak/model":>10s}')
        for make in (cnn, transformer):
            path = os.path.join(folder, make.__name__ + '.onnx')
            m = make(o.nodes)
            onnx.save(m, path)
            size = os.path.getsize(path) / 1e6
            for mode, args in MODES:
                command = [o.tool, path, '-o', os.path.join(tmp, 'out.onnx')] + args if args is not None else [o.tool, 'inspect', path]
                runs = [run(command + ['-v' if o.v else '-q', '--target', 'cpu-generic']) for _ in range(3)]
                seconds, peak = min(r[0] for r in runs), max(r[1] for r in runs)
                within = seconds < 2 and peak <= 3 * size + 100
                slow += not within
                print(f'{make.__name__:12s} {mode:8s} {len(m.graph.node):6d} {seconds:8.2f} {peak:8.1f} {size:9.2f} {peak / size:10.1f}'
                      f'{"" if within else "   over the aim"}')
                if o.v:
                    print('    ' + runs[0][2].strip().replace('onnx-tile: ', '').replace('\n', '\n    '))
    return 1 if slow else 0


if __name__ == '__main__':
    sys.exit(main())
