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
py view "$tmp/view.onnx" || fail "an integer constant of opset 7"
finish
