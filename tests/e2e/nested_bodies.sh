#!/usr/bin/env bash
# If, Loop, Scan and functions inside of one another: shapes as ONNX Runtime makes them, whatever the bodies state; limits see them; results are equal.
. "$(dirname "$0")/lib.bash"
py "$TOOL" "$BUILD/tests/dump_shapes" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"
expect 1 "$TOOL" gate "$tmp/deep.onnx" --max-peak 1G
says 'nested'
finish
