#!/usr/bin/env bash
# Models with local functions are tiled as their inlined twins; written back byte for byte where nothing changes.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 5 "$tmp/out")"
finish
