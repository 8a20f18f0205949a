#!/usr/bin/env bash
# Nodes of which only a shape is read take no memory (unread.py).
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
