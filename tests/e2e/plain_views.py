"""Views of blocked values in a U-Net, tiled with goal memory. plain_views.py TOOL MODEL TILED"""
import subprocess
import sys

import numpy as np
import onnx

from checks import graphs, session

tool, src, dst = sys.argv[1:4]

subprocess.run([tool, src, '-o', dst, '--goal', 'memory', '--target', 'cpu-generic', '-q'], check=True)
m = onnx.load(dst)
onnx.checker.check_model(m, full_check=True)
views = [(g, n) for g in graphs(m.graph) for n in g.node if n.name.startswith('tile/view/')]
if not views: sys.exit('no view of any value')
for g, n in views:
    # v/blocks --> Reshape --> v: who reads v/blocks otherwise is as blocked as its maker, who reads v is not
    others = [k for k in g.node if n.input[0] in k.input and k.name != n.name]
    makers = [k for k in g.node if n.input[0] in k.output]
    if n.op_type != 'Reshape' or len(makers) != 1: sys.exit(f'{n.name}: no view')
    if any(k.op_type in ('Loop', 'Scan', 'Slice', 'Resize') for k in others): sys.exit(f'{n.name}: {others[0].name} reads blocks')
a, b = session(src), session(dst)
x = {i.name: np.random.default_rng(1).random(i.shape, dtype='f4') for i in a.get_inputs()}
for u, v in zip(a.run(None, x), b.run(None, x)):
    if not np.allclose(u, v, rtol=1e-5, atol=1e-5): sys.exit('outputs differ')
print(len(views), 'views')
