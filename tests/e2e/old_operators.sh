#!/usr/bin/env bash
# Operators of old opsets, tiled: equal to the original in ONNX Runtime, accepted by onnx.checker, silent when loaded.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/oracle/old_operators.py" "$TOOL" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"

# Before IR 4 constants that are no inputs are Constant nodes, which make floats alone before opset 9: an integer is cast.
cat >"$tmp/view.ot" <<'OT'
model ir 3 opset 7
graph main {
  input %x : float32[2,6]
  init %s : int64[2] = [3, -1]
  %y = Reshape(%x, %s)
  output %y
}
OT
expect 0 "$TOOL" "$tmp/view.ot" -o "$tmp/view.onnx" -q
"$PYTHON" - "$tmp/view.onnx" <<'PY' || fail "an integer constant of opset 7"
import sys
import numpy as np
import onnx
import onnxruntime as ort
m = onnx.load(sys.argv[1])
onnx.checker.check_model(m, full_check=True)
assert [n.op_type for n in m.graph.node] == ['Constant', 'Cast', 'Reshape'], m.graph.node
assert m.ir_version == 3 and len(m.graph.input) == 1
x = np.arange(12, dtype='f4').reshape(2, 6)
y, = ort.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider']).run(None, {'x': x})
assert np.array_equal(y, x.reshape(3, 4))
PY
finish
