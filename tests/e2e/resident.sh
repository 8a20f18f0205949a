#!/usr/bin/env bash
# run: the process never holds more than the model file, the planned arena, its inputs and outputs, and 50 MB. A model with 65 MB of
# weights in convolutions and products, which kernels keep packed, must not be there twice.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi

cat >"$tmp/make.py" <<'EOF'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

r = np.random.default_rng(1)
inits, nodes = [], []


def weight(name, *dims):
    inits.append(numpy_helper.from_array((r.random(dims, 'f4') - .5) / np.sqrt(np.prod(dims[1:])).astype('f4'), name))
    return name


def conv(x, y, m, c, k):
    norm = [weight(f'{y}.{p}', m) for p in 'sbm']
    inits.append(numpy_helper.from_array(np.ones(m, 'f4'), f'{y}.v'))
    nodes.append(h.make_node('Conv', [x, weight(f'{y}.w', m, c, k, k)], [f'{y}.c'], pads=[k // 2] * 4))
    nodes.append(h.make_node('BatchNormalization', [f'{y}.c', *norm, f'{y}.v'], [f'{y}.n']))
    nodes.append(h.make_node('Relu', [f'{y}.n'], [y]))


conv('x', 'c0', 512, 64, 3)
for k in range(3):
    conv(f'c{k}', f'c{k + 1}', 512, 512, 3)
conv('c3', 'c4', 1024, 512, 1)
nodes.append(h.make_node('GlobalAveragePool', ['c4'], ['p']))
nodes.append(h.make_node('Flatten', ['p'], ['f']))
nodes.append(h.make_node('Gemm', ['f', weight('w1', 4096, 1024)], ['g'], transB=1))
nodes.append(h.make_node('MatMul', ['g', weight('w2', 4096, 1000)], ['y']))
g = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, [4, 64, 16, 16])],
                 [h.make_tensor_value_info('y', T.FLOAT, [4, 1000])], inits)
m = h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=8)
onnx.save(m, sys.argv[1] + '/whole.onnx')
onnx.save(m, sys.argv[1] + '/outside.onnx', save_as_external_data=True, location='outside.bin', size_threshold=1024)
EOF
cat >"$tmp/peak.py" <<'EOF'
import json, os, resource, subprocess, sys
tool, model, outside = sys.argv[1:]
arrays = 4 * (4 * 64 * 16 * 16 + 4 * 1000)
p = subprocess.run([tool, 'run', model, '--json', '--threads', '2', '--repeat', '2'], capture_output=True)
if p.returncode:
    sys.exit(p.stderr.decode())
planned = json.loads(p.stdout)['planned_peak_bytes']
held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
stored = os.path.getsize(model) + (os.path.getsize(outside) if outside else 0)
over = held - stored - planned - arrays
if over > 50e6:
    sys.exit(f'{model}: {held} bytes resident: {over} more than {stored} in files, {planned} planned and {arrays} of arrays')
EOF

"$PYTHON" "$tmp/make.py" "$tmp" || { echo "FAIL: cannot make the models"; exit 1; }
expect 0 "$PYTHON" "$tmp/peak.py" "$TOOL" "$tmp/whole.onnx" ""
expect 0 "$PYTHON" "$tmp/peak.py" "$TOOL" "$tmp/outside.onnx" "$tmp/outside.bin"
expect 0 "$TOOL" "$tmp/whole.onnx" -o "$tmp/tiled.onnx" -q --emit engine --goal memory --force
expect 0 "$PYTHON" "$tmp/peak.py" "$TOOL" "$tmp/tiled.onnx" ""

# what was given back is not missed: the same outputs as the reference, in every run
for m in whole outside tiled; do
    expect 0 "$TOOL" run "$tmp/$m.onnx" -q --threads 2 --repeat 2 --output-dir "$tmp/$m"
done
expect 0 "$TOOL" run "$tmp/whole.onnx" -q --threads 2 --reference --output-dir "$tmp/reference"
cat >"$tmp/compare.py" <<'EOF'
import sys
import numpy as np
want = np.load(sys.argv[1] + '/0.npy')
for d in sys.argv[2:]:
    got = np.load(d + '/0.npy')
    if not np.allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max()):
        sys.exit(f'{d}: differs by {np.abs(got - want).max()} of {np.abs(want).max()}')
EOF
expect 0 "$PYTHON" "$tmp/compare.py" "$tmp/reference" "$tmp/whole" "$tmp/outside" "$tmp/tiled"
finish
