#!/usr/bin/env bash
# Extents that ONNX Runtime does not know before it runs (goal memory): written where the process then takes less; equal in ONNX Runtime and
# in the engine; inputs and outputs as they were; nothing in the branch tells what large values take.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
