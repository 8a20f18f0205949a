#!/usr/bin/env bash
# Out of memory, seen from outside: the N-th allocation of the program fails, alone or with all later ones. Exit 4, one line, no
# output file. (Every allocation of every command in turn: tests/unit/test_oom_commands.c.)
. "$(dirname "$0")/lib.bash"

if ! printf '#include <features.h>\n#ifndef __GLIBC__\n#error\n#endif\n' | cc -E -x c - >"$tmp/cc" 2>&1; then
    echo "skipped: calls of malloc are replaced in glibc's way"
    finish
fi
cc -shared -fPIC -O1 -o "$tmp/fail_alloc.so" "$root/tests/e2e/fail_alloc.c" 2>"$tmp/cc" || { cat "$tmp/cc"; exit 1; }

cat >"$tmp/m.ot" <<'EOF_OT'
model ir 8 opset 17
graph g {
  input %x : float32[1,4,16,16]
  init %w : float32[4,4,3,3] = random 1 * 0.1
  %a = Conv(%x, %w) {pads=[1,1,1,1]}
  %y = Relu(%a)
  output %y
}
EOF_OT
cp "$root/tests/golden/kernel/03_double_buffer_upgrade.tk" "$tmp/k.tk"
printf 'id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n' >"$tmp/t.csv"

# starved [--may-pass] COMMAND...: a few N up to what the command asks for. --may-pass: one that only makes the
# engine faster may be missing.
starved() {
    local may_pass= total n all got steps=0
    [ "$1" = --may-pass ] && { may_pass=yes; shift; }
    rm -rf "$tmp/o"
    mkdir "$tmp/o"
    LD_PRELOAD="$tmp/fail_alloc.so" OOM_COUNT="$tmp/count" "$@" >"$tmp/want" 2>"$tmp/err" </dev/null || fail "$*: $(cat "$tmp/err")"
    total=$(cat "$tmp/count")
    [ "$total" -gt 5 ] || fail "$*: $total allocations"
    for n in 0 1 2 3 5 8 $((total / 3)) $((total / 2)) $((total * 2 / 3)) $((total - 2)) $((total - 1)); do
        for all in '' 1; do
            rm -rf "$tmp/o"
            mkdir "$tmp/o"
            env LD_PRELOAD="$tmp/fail_alloc.so" OOM_AT="$n" ${all:+OOM_ALL=1} "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
            got=$?
            steps=$((steps + 1))
            [ $got = 0 ] && [ -n "$may_pass" ] && [ -f "$tmp/o/d/0.npy" ] && continue
            [ $got = 4 ] || fail "allocation $n of $total fails${all:+ and all later ones}: exit $got, not 4: $* ($(head -n 3 "$tmp/err"))"
            says 'out of memory'
            find "$tmp/o" -name '.*.tmp' | grep -q . && fail "allocation $n: a temporary file is left: $*"
        done
    done
    echo "$steps runs of $total allocations: ${*#"$tmp/"}"
}

starved "$TOOL" inspect "$tmp/m.ot" --target cpu-generic --report "$tmp/o/r.html" --report "$tmp/o/r.xml" --report "$tmp/o/r.csv"
starved "$TOOL" inspect "$tmp/m.ot" --target cpu-generic --json
starved "$TOOL" "$tmp/m.ot" -o "$tmp/o/t.onnx" --target cpu-generic --l2 4K --force
starved "$TOOL" "$tmp/m.ot" -o "$tmp/o/t.ot" --target cpu-generic --l2 4K --force --goal memory
sed 's/\[1,4,16,16\]/[1,4,?,?]/' "$tmp/m.ot" >"$tmp/f.ot"
starved "$TOOL" "$tmp/f.ot" -o "$tmp/o/t.onnx" --design x=1,4,64,64 --target cpu-generic --l2 4K --force --goal memory
for mode in auto search; do
    starved "$TOOL" plan-memory "$tmp/k.tk" -o "$tmp/o/k.tk" --mode $mode
    starved "$TOOL" plan-memory "$tmp/t.csv" -o "$tmp/o/t.csv" --svg "$tmp/o/t.svg" --mode $mode --json
done
if ! "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    starved "$TOOL" "$tmp/m.ot" -o "$tmp/o/e.onnx" --target cpu-generic --l2 4K --force --emit engine
    "$TOOL" "$tmp/m.ot" -o "$tmp/e.onnx" --target cpu-generic --l2 4K --force --emit engine --quiet || fail "no tiled model"
    starved --may-pass "$TOOL" run "$tmp/m.ot" --output-dir "$tmp/o/d"
    starved --may-pass "$TOOL" run "$tmp/e.onnx" --output-dir "$tmp/o/d" --json
fi
finish
