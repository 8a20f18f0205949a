"""Bytes of the process for each node of large models. many_nodes.py TOOL FOLDER [measure]

To measure it loads nothing but the standard library: what this process holds before its child begins counts as the child's.
"""
import os
import sys

tool, folder = sys.argv[1:3]
FEW, MANY = 3000, 30000
KINDS = {'chain': ['Relu', 'Sigmoid'], 'sums': ['Conv', 'Sigmoid', 'Add']}
BYTES = 3000  # a node, by which more of them raise the process' peak


def network(kind, n):
    import numpy as np
    from onnx import helper

    from builder import constant, model, save, value
    nodes, x, before = [], 'x', 'x'
    for k in range(n):
        op = KINDS[kind][k % len(KINDS[kind])]
        y = f'v{k}' if k + 1 < n else 'y'
        nodes.append(helper.make_node(op, [x, *{'Conv': ['w'], 'Add': [before]}.get(op, [])], [y]))
        if op == 'Conv': before = y
        x = y
    w = constant('w', np.ones((8, 8, 1, 1)) / 8)
    save(model(nodes, [value('x', [1, 8, 64, 64])], [value('y', [1, 8, 64, 64])], [w]), f'{folder}/{kind}{n}.onnx')


def peak(file, *options):
    pid = os.posix_spawn(tool, [tool, f'{folder}/{file}.onnx', '-o', f'{folder}/o.onnx', '-q', *options], os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (file, status)
    return usage.ru_maxrss * 1024


for kind in KINDS:
    if sys.argv[3:] != ['measure']:
        network(kind, FEW)
        network(kind, MANY)
        continue
    for goal in ('time', 'memory'):
        each = (peak(f'{kind}{MANY}', '--goal', goal) - peak(f'{kind}{FEW}', '--goal', goal)) / (MANY - FEW)
        print(kind, goal, round(each))
        assert 0 < each < BYTES, (kind, goal, each)
