#!/usr/bin/env bash
# Resize with align_corners, tiled over space: random networks with such Resizes of any extents, modes and opsets, tiled by force in every form (steps of
# a stream are never alike), in ONNX Runtime and the engine, equal to the untiled model within rounding. --bit-exact and dynamic dimensions leave it whole, and say so.
. "$(dirname "$0")/lib.bash"
engine=engine
"$TOOL" --help | grep -q 'run MODEL.*needs the native engine' && engine=

py "$TOOL" "$tmp" "${SEED:-1}" "${ROUNDS:-40}" "$engine" >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"
cat "$tmp/out"
finish
