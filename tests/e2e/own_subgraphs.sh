#!/usr/bin/env bash
# Files with If, Loop and Scan of their own that share weights with the graph around, and with shape arithmetic about what is tiled: written,
# and equal.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
