#!/usr/bin/env bash
# Kernels in MLIR with every construct that is read: planned, then executed in a memory with the planned addresses.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" 0 80 >"$tmp/out" 2>&1 || fail "$(tail -n 3 "$tmp/out")"
finish
