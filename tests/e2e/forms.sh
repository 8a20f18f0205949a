#!/usr/bin/env bash
# Every output form on small networks against ONNX Runtime, at opsets whose operators differ (others: FORMS_OPSETS="12 19").
# run: first
. "$(dirname "$0")/lib.bash"
opsets=()
for o in ${FORMS_OPSETS:-7 8 9 10 11 13 17 21}; do opsets+=(--opset "$o"); done
"$PYTHON" "$root/tests/oracle/forms.py" "$BUILD/tests/force_tile" "${opsets[@]}" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
finish
