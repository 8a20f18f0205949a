#!/usr/bin/env bash
# Constants that a file has by two names have one in bodies of tiles: ONNX Runtime, which takes the second away, cannot where a body reads both.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
finish
