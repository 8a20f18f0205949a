#!/usr/bin/env bash
# What nobody reads is not computed (src/transform/narrow.c): last steps, tokens and frames, crops, parts of a Split, in ONNX Runtime.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
