#!/usr/bin/env bash
# Values between the statistics and the use of a normalisation, computed twice in place of being kept: random style networks (few channels, then many,
# normalised, then less again) with time to spare, in ONNX Runtime and the engine, against float64 arithmetic. Taken where it saves memory, never
# with --bit-exact, and by what is predicted never more memory than without time to spare.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${SEED:-1}" "${ROUNDS:-5}" ${VERBOSE:-} >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
