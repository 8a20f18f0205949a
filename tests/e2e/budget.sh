#!/usr/bin/env bash
# --memory-budget: live tensors keep to it or the exit status is 3; the process of ONNX Runtime keeps to it as well where a plan for
# that is found, as measured, and where none is the result says so. Normalisations are taken apart where nothing else keeps to it.
. "$(dirname "$0")/lib.bash"

cat >"$tmp/models.py" <<'P'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
d, rng = sys.argv[1], np.random.default_rng(0)
def chain(name, widths, norm):
    nodes, inits, v, last = [], [], 'x', 3
    for k, width in enumerate(widths):
        inits.append(nh.from_array(rng.normal(0, .08, (width, last, 3, 3)).astype('f4'), f'w{k}'))
        nodes.append(h.make_node('Conv', [v, f'w{k}'], [f'c{k}'], pads=[1] * 4))
        v = f'c{k}'
        last = width
        if norm and width > 8:
            inits += [nh.from_array(np.ones(width, 'f4'), f's{k}'), nh.from_array(np.zeros(width, 'f4'), f'b{k}')]
            nodes.append(h.make_node('InstanceNormalization', [v, f's{k}', f'b{k}'], [f'n{k}']))
            v = f'n{k}'
        nodes.append(h.make_node('Relu', [v], [f'r{k}']))
        v = f'r{k}'
    inits.append(nh.from_array(rng.normal(0, .08, (3, last, 1, 1)).astype('f4'), 'last'))
    nodes.append(h.make_node('Conv', [v, 'last'], ['y']))
    io = [h.make_tensor_value_info(k, T.FLOAT, [1, 3, 512, 512]) for k in 'xy']
    onnx.save(h.make_model(h.make_graph(nodes, 'g', io[:1], io[1:], inits), opset_imports=[h.make_opsetid('', 17)], ir_version=8), f'{d}/{name}.onnx')
chain('chain', [32] * 8, False)
chain('norms', [8, 64, 8], True)
P
cat >"$tmp/grows.py" <<'P'
"""Bytes that a process grows by while it runs the model twice; the outputs go to a file."""
import sys
import numpy as np
import onnxruntime as ort
def held(key): return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith(key)) << 10
o = ort.SessionOptions()
o.intra_op_num_threads = 1
s = ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider'])
x = np.random.default_rng(1).random((1, 3, 512, 512), dtype='f4')
before = held('VmRSS')
for _ in range(2): y = s.run(None, {'x': x})
print(held('VmHWM') - before)
np.save(sys.argv[2], y[0])
P
cat >"$tmp/check.py" <<'P'
import json, sys
import numpy as np
told, budget, grown, a, b = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]), np.load(sys.argv[4]), np.load(sys.argv[5])
assert told['tiled']['peak_bytes'] <= budget, told['tiled']
assert told['tiled']['growth_bytes'] <= budget, told['tiled']
assert grown <= budget, f'{grown} measured, {budget} allowed'
assert np.abs(a - b).max() <= 1e-4 * np.abs(a).max(), np.abs(a - b).max()
P
"$PYTHON" "$tmp/models.py" "$tmp" || fail "cannot make the models"
for name in chain norms; do "$PYTHON" "$tmp/grows.py" "$tmp/$name.onnx" "$tmp/$name.npy" >"$tmp/$name.untiled" || fail "$name untiled"; done

# keeps NAME MIB: a plan is found that keeps the measured process within MIB.
keeps() {
    local name=$1 bytes=$(($2 << 20))
    [ "$(cat "$tmp/$name.untiled")" -gt "$bytes" ] || fail "$name takes less than $2 MiB untiled: nothing is tested"
    expect 0 "$TOOL" "$tmp/$name.onnx" -o "$tmp/tiled.onnx" --target cpu-generic --threads 1 --memory-budget "$2M" --json
    cp "$tmp/out" "$tmp/told.json"
    "$PYTHON" "$tmp/grows.py" "$tmp/tiled.onnx" "$tmp/tiled.npy" >"$tmp/grown" || fail "$name does not run"
    "$PYTHON" "$tmp/check.py" "$tmp/told.json" "$bytes" "$(cat "$tmp/grown")" "$tmp/$name.npy" "$tmp/tiled.npy" 2>"$tmp/why" ||
        fail "$name within $2 MiB: $(tail -n 1 "$tmp/why")"
}
keeps chain 60
keeps chain 40
keeps norms 160

# What cannot be kept: by the process, which is said; by live tensors, exit 3 and no file.
expect 0 "$TOOL" inspect "$tmp/chain.onnx" --target cpu-generic --threads 1 --memory-budget 9M
grep -q 'live tensors keep to the budget of 9.0 MiB; the process is predicted to pass it' "$tmp/out" || fail "nothing is said of the process: $(head -n 8 "$tmp/out")"
for name in chain norms; do
    expect 3 "$TOOL" "$tmp/$name.onnx" -o "$tmp/none.onnx" --target cpu-generic --memory-budget 2M
    says "memory budget cannot be met: required "
    [ ! -e "$tmp/none.onnx" ] || fail "a file of a model that passes the budget"
done

# The same bytes from run to run, and with the engine, of whose process nothing is predicted.
for k in 1 2; do expect 0 "$TOOL" "$tmp/norms.onnx" -o "$tmp/run$k.onnx" -q --target cpu-generic --memory-budget 160M; done
cmp -s "$tmp/run1.onnx" "$tmp/run2.onnx" || fail "the result differs from run to run"
expect 0 "$TOOL" "$tmp/norms.onnx" -o "$tmp/engine.onnx" -q --target cpu-generic --emit engine --memory-budget 160M
finish
