#!/usr/bin/env bash
# Models that ONNX Runtime saved with its optimisations: blocks of channels, merged activations. Read as standard operators, equal when
# tiled and in the engine, written back byte for byte where nothing changes, left alone where something does not fit.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${OT_SEED:-1}" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
