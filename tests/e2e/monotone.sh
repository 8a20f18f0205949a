#!/usr/bin/env bash
# More slowdown, a larger budget or a larger fast memory never gives a worse plan.
. "$(dirname "$0")/lib.bash"
make_model unet dncnn mobilenet_v2 --small
"$PYTHON" "$root/scripts/monotone.py" --tool "$TOOL" "$tmp" >"$tmp/said" || fail "a step back: $(grep 'step back,' "$tmp/said")"
grep -q '^123 runs 0 steps back, ' "$tmp/said" || fail "not all runs: $(tail -n 1 "$tmp/said")"
finish
