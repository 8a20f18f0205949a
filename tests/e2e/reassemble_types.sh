#!/usr/bin/env bash
# Every element type in every output form: written models pass onnx.checker and load in ONNX Runtime, at opsets where types came
# (others: REASSEMBLE_OPSETS="7 25").
# run: first
. "$(dirname "$0")/lib.bash"
opsets=()
for o in ${REASSEMBLE_OPSETS:-11 13 16 19 21 24}; do opsets+=(--opset "$o"); done
"$PYTHON" "$root/tests/oracle/reassemble_types.py" "$BUILD/tests/force_tile" --every 3 "${opsets[@]}" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
finish
