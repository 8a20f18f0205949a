#!/usr/bin/env bash
# The check of line widths: columns are characters, and the first that is one too many fails with its place.
. "$(dirname "$0")/lib.bash"
width() { "$PYTHON" "$root/scripts/width.py" "$@"; }
hundred=$(printf 'ä%.0s' $(seq 100))
printf '/* first */\n%s\n' "$hundred" >"$tmp/fits.c"
printf '/* first */\n%s\n%s;\n' "$hundred" "$hundred" >"$tmp/wide.c"
expect 0 width "$tmp/fits.c"
expect 1 width "$tmp/fits.c" "$tmp/wide.c"
grep -qx "$tmp/wide.c:3: 101 columns, 100 are allowed" "$tmp/out" || fail "the wide line is not named: $(cat "$tmp/out")"
[ "$(wc -l <"$tmp/out")" = 1 ] || fail "other lines are named: $(cat "$tmp/out")"
expect 1 width --most 99 "$tmp/fits.c"
finish
