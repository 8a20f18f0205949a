#!/usr/bin/env bash
# Every function of the library is reached: `make dead`. And what is not reached is found.
. "$(dirname "$0")/lib.bash"
cd "$root" || exit 1
make -s dead BUILD="$BUILD" PYTHON="$PYTHON" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/out" "$tmp/err")"
tail -n 1 "$tmp/out"

mkdir "$tmp/src"
cat >"$tmp/src/part.c" <<'C'
int onnx_tile_part(int x);
int reached(int x);
int idle(int x);
int idle_again(int x);
int inlined(int x);
static int (*const table[])(int) = {reached};
int reached(int x) { return x + 1; }
int idle(int x) { return x - 1; }
int idle_again(int x)
{
    return x > 0 ? x * idle_again(x - 1) : 1;
}
int inlined(int x) { return 2 * x; }
int onnx_tile_part(int x) { return table[x & 0](inlined(x)); }
C
echo 'int main(void) { return 0; }' >"$tmp/main.c"
(cd "$tmp" && gcc -O2 -ffunction-sections -fdata-sections -c main.c src/part.c && ar rcs lib.a part.o) || fail "cannot compile"
dead() { "$PYTHON" scripts/dead.py --main "$tmp/main.o" --library "$tmp/lib.a" --sources "$tmp/src" --link gcc >"$tmp/out" 2>&1; }
! dead || fail "a function that nobody reaches is not found"
grep -q "part.c: idle, idle_again$" "$tmp/out" || fail "not found: $(cat "$tmp/out")"
sed -i 's/ idle/ onnx_tile_idle/g' "$tmp/src/part.c"
(cd "$tmp" && gcc -O2 -ffunction-sections -fdata-sections -c src/part.c && ar rcs lib.a part.o) || fail "cannot compile"
dead || fail "functions of the API are taken for dead: $(cat "$tmp/out")"
finish
