#!/usr/bin/env bash
# Functions with many parameters: few, and none with very many (the counter is tried on a sample first); files of one job, so of at most
# 600 lines; runtimes differ by their tables, so nothing but options and targets compares their names; a word of which there would be
# many things names two at most: of the engine's operators there are implementations, no kernels.
. "$(dirname "$0")/lib.bash"
cd "$root" || exit 1

cat >"$tmp/sample.c" <<'END'
#define MANY(a, b, c, d, e, f, g, h) { /* none: text of a macro */ }
/* int comment(int a, int b, int c, int d, int e, int f, int g, int h) { } */
int declared(int a, int b, int c, int d, int e, int f, int g, int h);
static const char *text = "f(a, b, c, d, e, f, g, h) {";
int seven(int a, void (*b)(int, int), int c[2], int d, int e, int f, int g) { return call(a, b, c, d, e, f, g, a); }
static int eight(int a, void (*b)(int x, int y), const char *c,
                 int d, int e, int f, int g, int h)
{
    return a;
}
int none(void) { return 0; }
END
expect 0 "$PYTHON" scripts/long_calls.py --root "$tmp"
[ "$(cat "$tmp/out")" = "$tmp/sample.c:6: eight 8
1 functions with more than 7 parameters, 8 at most" ] || fail "of the sample: $(cat "$tmp/out")"
expect 1 "$PYTHON" scripts/long_calls.py --root "$tmp" --most 0
expect 1 "$PYTHON" scripts/long_calls.py --root "$tmp" --widest 7
expect 0 "$PYTHON" scripts/long_calls.py --root "$tmp" --most 1 --widest 8

expect 0 "$PYTHON" scripts/long_calls.py --most 20 --widest 9
[ $failures = 0 ] || cat "$tmp/out"
tail -n 1 "$tmp/out"

long=$(find src include -name '*.[ch]' -exec awk 'FNR == 601 { print FILENAME }' {} +)
[ -z "$long" ] || fail "more than 600 lines: $long"
named=$(grep -rnE 'strcmp\([^;]*runtime(s?\[[a-z]+\])?->name' src --include='*.[ch]' | grep -v '^src/machine/' || true)
[ -z "$named" ] || fail "told apart by name: $named"

"$PYTHON" scripts/homonyms.py --headers --words arena,kernel,place,plan,program >"$tmp/words"
cat >"$tmp/meanings" <<'END'
arena: ot_arena ot_chunk_arena ot_device_arena
kernel: ot_kernel
place: ot_place
plan: ot_mem_plan ot_plan ot_scope_plan
program: dev_program ot_dev_program
END
cmp -s "$tmp/words" "$tmp/meanings" || fail "other types of these words: $(diff "$tmp/meanings" "$tmp/words")"
engine=$(find src/engine -name '*.[ch]' ! -path 'src/engine/gpu/*')
# shellcheck disable=SC2086
words=$(grep -nE '(^|[^_.>])\b([Kk]ernels|([Ff]ast|[Rr]eference|float32) kernel)\b' $engine | grep -v 'pools with huge kernels' || true)
[ -z "$words" ] || fail "implementations, not kernels: $words"
words=$(grep -rn 'program' src/tiling --include='*.[ch]' | grep -v '"program_%u"' || true)
[ -z "$words" ] || fail "lowered kernels, not programs: $words"
finish
