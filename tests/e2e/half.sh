#!/usr/bin/env bash
# Networks in half precision for ONNX Runtime, which computes them in float32: tiled, they are written so (src/transform/widen.c). They give what
# the same network with the same weights gives in float32, and keep the types of inputs and outputs.
. "$(dirname "$0")/lib.bash"

# half IN OUT FLOAT: weights and everything between inputs and outputs in half precision; FLOAT: the same weights in float32
cat >"$tmp/half.py" <<'EOF_PY'
import sys

import onnx
from onnx import TensorProto, numpy_helper

path, half, wide = sys.argv[1:]
for out, last in ((half, 'f2'), (wide, 'f4')):
    m = onnx.load(path)
    factors = {n.input[2] for n in m.graph.node if n.op_type == 'Resize'}
    for t in m.graph.initializer:
        if t.data_type == TensorProto.FLOAT and t.name not in factors:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype('f2').astype(last), t.name))
    if last == 'f2':
        for v in [*m.graph.input, *m.graph.output]:
            if v.type.tensor_type.elem_type == TensorProto.FLOAT: v.type.tensor_type.elem_type = TensorProto.FLOAT16
        del m.graph.value_info[:]
    onnx.save(m, out)
EOF_PY

cat >"$tmp/same.py" <<'EOF_PY'
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto

half, wide, tiled = sys.argv[1:4]


def graphs(g):
    yield g
    for n in g.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH: yield from graphs(a.g)


def run(path, x):
    so = ort.SessionOptions()
    so.log_severity_level = 3
    s = ort.InferenceSession(path, so)
    return s.run(None, {s.get_inputs()[0].name: x})


m = onnx.load(tiled)
onnx.checker.check_model(m, full_check=True)
for g in graphs(m.graph):
    if any(t.data_type == TensorProto.FLOAT16 for t in g.initializer): sys.exit('weights in half precision')
    free = len(sys.argv) > 4 # windows of inputs are in half precision, until they are cast
    if not free and any(v.type.tensor_type.elem_type == TensorProto.FLOAT16 and not any(v.name in n.output and n.op_type == 'Cast' for n in g.node)
                        for v in g.value_info): sys.exit('a value in half precision')
dims = [d.dim_value or int(sys.argv[4]) for d in m.graph.input[0].type.tensor_type.shape.dim]
x = np.random.default_rng(3).standard_normal(dims).astype('f2')
want, truth, got = run(half, x), run(wide, x.astype('f4')), run(tiled, x)
for a, t, b in zip(want, truth, got):
    if a.dtype != b.dtype or a.shape != b.shape: sys.exit(f'{a.dtype} {a.shape} became {b.dtype} {b.shape}')
    off = np.abs(b.astype('f8') - t).max() / np.ptp(t)
    own = np.abs(a.astype('f8') - t).max() / np.ptp(t)
    if off > max(1e-5, 2 ** -11) or off > own + 2 ** -11: sys.exit(f'off by {off:.1e} of the range, the untiled model by {own:.1e}')
EOF_PY

# check GOAL MODEL ARGUMENTS...
check() {
    local goal=$1 model=$2
    shift 2
    make_model "$model" "$@"
    "$PYTHON" "$tmp/half.py" "$tmp/$model.onnx" "$tmp/half.onnx" "$tmp/wide.onnx"
    expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal "$goal" --target cpu-generic
    expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal "$goal" --target cpu-generic --verify=all
    "$PYTHON" "$tmp/same.py" "$tmp/half.onnx" "$tmp/wide.onnx" "$tmp/tiled.onnx" >"$tmp/out" 2>&1 || fail "$model $*: $(cat "$tmp/out")"
}
check memory unet --size 256 --width 8
check memory resnet50 --size 256
check memory decoder --size 128
check memory espcn --size 270

# Free dimensions stay free, and casts that an exporter wrote around what it kept in float32 are gone.
make_model unet --size 256 --width 8
"$PYTHON" "$tmp/half.py" "$tmp/unet.onnx" "$tmp/half.onnx" "$tmp/wide.onnx"
"$PYTHON" - "$tmp/half.onnx" "$tmp/wide.onnx" <<'EOF_PY'
import sys

import onnx
from onnx import TensorProto, helper

for path in sys.argv[1:]:
    m = onnx.load(path)
    for v in [*m.graph.input, *m.graph.output]:
        for k, d in enumerate(v.type.tensor_type.shape.dim):
            if k > 1: d.Clear(); d.dim_param = f'd{k}'
    del m.graph.value_info[:]
    pool = next(n for n in m.graph.node if n.op_type == 'MaxPool')
    if path == sys.argv[1]:
        at = list(m.graph.node).index(pool)
        m.graph.node.insert(at + 1, helper.make_node('Cast', ['kept/y'], [pool.output[0]], 'kept/out', to=TensorProto.FLOAT16))
        m.graph.node.insert(at, helper.make_node('Cast', [pool.input[0]], ['kept/x'], 'kept/in', to=TensorProto.FLOAT))
        pool.input[0], pool.output[0] = 'kept/x', 'kept/y'
    onnx.checker.check_model(m, full_check=True)
    onnx.save(m, path)
EOF_PY
expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal memory --target cpu-generic --threads 1 --design x=1,3,512,512 --json
grep -q '"dynamic_dims": *true' "$tmp/out" || fail "free: $(head -c 400 "$tmp/out")"
grep -q '"loop-peeled"\|"stream"' "$tmp/out" || fail "free: nothing is tiled"
for size in 512 96; do
    "$PYTHON" "$tmp/same.py" "$tmp/half.onnx" "$tmp/wide.onnx" "$tmp/tiled.onnx" $size >"$tmp/out" 2>&1 || fail "free, $size: $(cat "$tmp/out")"
done
"$PYTHON" - "$tmp/tiled.onnx" <<'EOF_PY' || fail "free: casts with nothing to do are left"
import sys

import onnx

sys.exit(b'kept/in' in onnx.load(sys.argv[1]).SerializeToString())
EOF_PY

# What was asked to the bit, or in live bytes, stays as the file has it.
for option in --bit-exact --force "--memory-budget 100M"; do
    # shellcheck disable=SC2086
    expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal memory --target cpu-generic $option
    "$PYTHON" - "$tmp/tiled.onnx" <<'EOF_PY' || fail "$option: weights became float32"
import sys

import onnx

sys.exit(b'tile/wide' in onnx.load(sys.argv[1]).SerializeToString())
EOF_PY
done
finish
