#!/usr/bin/env bash
# Valid models of kinds that few exporters write, tiled in three ways: loaded, equal, of the same outputs, valid where they were.
. "$(dirname "$0")/lib.bash"
py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
