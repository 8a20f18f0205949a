"""Models for the browser test: OUT/small.onnx, that nothing is worth tiling in, and OUT/hostile.onnx, the U-Net of the same
folder with names that try to become markup."""
import os
import sys

import onnx
from onnx import helper

import builder

NAMES = ('</script><script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "';alert(1)//", '<svg onload=alert(1)>',
         '\u202egnirts', '&lt;b&gt; &amp;', ']]>', 'javascript:alert(1)')


def small():
    nodes, at = [], 'x'
    for k in range(6):
        nodes.append(helper.make_node('Relu' if k % 2 else 'Exp', [at], [f'v{k}'], f'step_{k}'))
        at = f'v{k}'
    shape = [1, 8, 64, 64]
    return builder.model(nodes, [builder.value('x', shape)], [builder.value(at, shape)], name='small')


def hostile(model):
    """The same with every third node, and what it makes, called by one of NAMES."""
    new = {}
    keep = {v.name for v in model.graph.output}
    for k, n in enumerate(model.graph.node):
        if k % 3:
            continue
        n.name = f'{NAMES[k // 3 % len(NAMES)]} {k}'
        if n.output[0] not in keep:
            new[n.output[0]] = f'{n.name} out'
    for n in model.graph.node:
        n.input[:] = [new.get(v, v) for v in n.input]
        n.output[:] = [new.get(v, v) for v in n.output]
    return model


folder = sys.argv[1]
onnx.save(small(), os.path.join(folder, 'small.onnx'))
onnx.save(hostile(onnx.load(os.path.join(folder, 'unet.onnx'))), os.path.join(folder, 'hostile.onnx'))
