#!/usr/bin/env bash
# Constants that a network computes, masks of shifted windows, are in the file of goal memory (src/transform/fold_constants.c): in ONNX Runtime.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
