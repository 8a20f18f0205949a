#!/usr/bin/env bash
# Views of blocked values that regions read: a U-Net's skip connections become Reshapes, outputs stay equal, and what the process takes does
# not depend on the session.
. "$(dirname "$0")/lib.bash"

cat >"$tmp/views.py" <<'EOF_PY'
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort

tool, src, dst = sys.argv[1:4]


def session(path):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = 1, 3
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])


def nodes(g):
    for n in g.node:
        yield g, n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH: yield from nodes(a.g)


subprocess.run([tool, src, '-o', dst, '--goal', 'memory', '--target', 'cpu-generic', '-q'], check=True)
m = onnx.load(dst)
onnx.checker.check_model(m, full_check=True)
views = [(g, n) for g, n in nodes(m.graph) if n.name.startswith('tile/view/')]
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
EOF_PY
"$PYTHON" "$root/models/make_models.py" "$tmp" unet --size 512 >/dev/null || fail "make_models.py"
"$PYTHON" "$tmp/views.py" "$TOOL" "$tmp/unet.onnx" "$tmp/tiled.onnx" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
