#!/usr/bin/env bash
# Models and external data that somebody else shortens or writes anew while they are in use: an answer or one line, never a signal.
. "$(dirname "$0")/lib.bash"

mkdir "$tmp/c"
py "$TOOL" "$tmp/c" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
