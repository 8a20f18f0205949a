#!/usr/bin/env bash
# What is written is whole or not there: two writers, signals, limits on files, a closed standard output.
. "$(dirname "$0")/lib.bash"

mkdir "$tmp/w"
py "$TOOL" "$tmp/w" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
