#!/usr/bin/env bash
# Quantized operators of com.microsoft in the engine against ONNX Runtime.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/oracle/quant_ops.py" --tool "$TOOL" --seed "${OT_SEED:-1}" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
finish
