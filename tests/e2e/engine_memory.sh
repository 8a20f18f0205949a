#!/usr/bin/env bash
# What --emit engine says of memory is what a session takes, and with goal memory tiles never take more (engine_memory/*.ot).
. "$(dirname "$0")/lib.bash"
"$TOOL" --help | grep -q 'bench MODEL.*needs the native engine' && finish
truth=("$PYTHON" "$root/scripts/engine_truth.py" --tool "$TOOL" --models "$root/tests/e2e/engine_memory")
expect 0 "${truth[@]}"
[ "$(grep -c ' -> ' "$tmp/out")" = 6 ] || fail "not three models, two numbers of threads: $(cat "$tmp/out")"
[ "$(grep -c 'regions [1-9]' "$tmp/out")" -ge 3 ] || fail "nothing to compare: $(cat "$tmp/out")"
grep -q '^scratch .*regions 0$' "$tmp/out" || fail "tiles that save nothing: $(cat "$tmp/out")"
[ $failures = 0 ] || cat "$tmp/out"

# what is not tiled for that says so, and the file is the model
cd "$tmp" || exit 1
cp "$root/tests/e2e/engine_memory/scratch.ot" .
expect 0 "$TOOL" inspect scratch.ot --emit engine --goal memory --threads 1
grep -q '^  in a session .* x1.00$' out || fail "$(cat out)"
expect 0 "$TOOL" inspect scratch.ot --emit engine --goal memory --threads 1 --force
grep -q '^  r0 ' out || fail "--force does not force: $(cat out)"
finish
