#!/usr/bin/env bash
# Large weights in pieces (goal memory): equal in ONNX Runtime, whose process holds less while it loads; the engine finds the original.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
