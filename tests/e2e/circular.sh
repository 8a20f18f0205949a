#!/usr/bin/env bash
# Circular padding, of a Pad or of Slices and a Concat, moves to the front of what it is repeated in (src/transform/wraps.c): in ONNX Runtime.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
