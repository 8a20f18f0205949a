#!/usr/bin/env bash
# Networks in half precision for ONNX Runtime, which computes them in float32: tiled, they are written so (src/rewrite/widen.c). They give what
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
    if any(v.type.tensor_type.elem_type == TensorProto.FLOAT16 and not any(v.name in n.output and n.op_type == 'Cast' for n in g.node)
           for v in g.value_info): sys.exit('a value in half precision')
dims = [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim]
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
