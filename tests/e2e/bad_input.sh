#!/usr/bin/env bash
# Wrong, broken and hostile models: one clear line, the right exit status, no output file.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/e2e/bad_input.py" "$TOOL" >"$tmp/out" 2>&1 || fail "$(grep -v '^ok' "$tmp/out" | head -n 60)"
finish
