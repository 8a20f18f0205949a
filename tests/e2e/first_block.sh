#!/usr/bin/env bash
# A tensor that comes before all others (goal memory): written where ONNX Runtime's arena then asks for fewer regions, within the time allowed;
# equal in ONNX Runtime.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
