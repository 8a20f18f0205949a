#!/usr/bin/env bash
# Tiled models that ONNX Runtime saves with its optimisations load again and compute the same, with functions in the bodies of loops
# that it writes out under the same names everywhere.
. "$(dirname "$0")/lib.bash"
py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
finish
