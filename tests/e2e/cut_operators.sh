#!/usr/bin/env bash
# Networks around operators that are cut along axes of their own: equal in ONNX Runtime as they were, tiled for memory and in small tiles,
# and in the engine; what they hold.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" "${ONLY:-}" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
[[ -z ${VERBOSE:-} ]] || cat "$tmp/out"
finish
