#!/usr/bin/env bash
# What a node takes while a file of 30,000 is tiled.
. "$(dirname "$0")/lib.bash"
py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
py "$TOOL" "$tmp" measure >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
