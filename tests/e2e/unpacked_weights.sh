#!/usr/bin/env bash
# Weights of convolutions that ONNX Runtime does not pack while it loads a model (goal memory): written where the process then takes less,
# within the time allowed, for bodies of loops, too; equal in ONNX Runtime.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
