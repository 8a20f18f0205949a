#!/usr/bin/env bash
# Values that stay in pieces between two regions: random networks, cut in two by force, tiles of any counts on both sides, in ONNX Runtime
# against the untiled network and in the engine.
. "$(dirname "$0")/lib.bash"

py "$BUILD/tests/force_unjoined" "$TOOL" "$tmp" "${SEED:-$RANDOM}" "${ROUNDS:-40}" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
[ -z "${VERBOSE:-}" ] || cat "$tmp/out"
finish
