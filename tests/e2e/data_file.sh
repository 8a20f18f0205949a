#!/usr/bin/env bash
# Weights in a file beside the model, which bodies refer to; a large constant that regions share is computed once.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
