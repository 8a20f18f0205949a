#!/usr/bin/env bash
# docs/testing.md counts what the tests go through as they do.
. "$(dirname "$0")/lib.bash"
expect 0 "$PYTHON" "$root/scripts/covered.py" --check "$root/docs/testing.md"
sed 's/| 9 runtimes x /| 8 runtimes x /' "$root/docs/testing.md" >"$tmp/other.md"
expect 1 "$PYTHON" "$root/scripts/covered.py" --check "$tmp/other.md"
grep -q 'gates and budgets' "$tmp/out" || fail "another number is not found: $(cat "$tmp/out")"
finish
