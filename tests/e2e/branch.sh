#!/usr/bin/env bash
# A graph that runs as a branch (goal memory): valid, equal in ONNX Runtime and in the engine, its inputs and outputs as they were; where
# nothing is tiled dynamic extents stay dynamic. What cannot be a branch is written as it was.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
