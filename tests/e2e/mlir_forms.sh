#!/usr/bin/env bash
# Each construct of kernels in MLIR that public files have: planned no higher than it must be, or refused with one clear line.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
