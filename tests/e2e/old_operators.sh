#!/usr/bin/env bash
# Operators of old opsets, tiled: equal to the original in ONNX Runtime, accepted by onnx.checker, silent when loaded.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/oracle/old_operators.py" "$TOOL" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
finish
