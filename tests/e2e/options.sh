#!/usr/bin/env bash
# Every option that --help lists under a command is taken by it, every other refused; the man page has the same options.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/e2e/options.py" "$TOOL" "$root" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
tail -n 1 "$tmp/out"
finish
