#!/usr/bin/env bash
# Decoders of video and image autoencoders are tiled, and give what they gave: in ONNX Runtime.
# run: first
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
