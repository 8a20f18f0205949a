#!/usr/bin/env bash
# --range: what inspect says of a range of sizes, budgets that hold over it or exit 3 with a size, and ranges that are none.
. "$(dirname "$0")/lib.bash"
py models "$tmp"
free=$tmp/free.onnx out=$tmp/tiled.onnx common='--target cpu-generic --threads 1 --l2 64K --goal memory --max-slowdown 100'

# ranges that are none: one line, exit 2
for r in x y= =1 'x=' 'x=1,3,64:' 'x=1,3,:64,64' 'x=1,3,64:32,64' 'x=1,3,0:64,64' 'x=1,3,-1:64,64' 'x=1,3,64:99999999999,64' 'x=1,3,1:2:0,64' 'x=1,3,1:2:3:4,64' \
         'x=1,,64,64' 'x=1,3,a:b,64' 'x=1,3,184467440737095516160:184467440737095516161,64' 'x=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1'; do
    expect 2 "$TOOL" inspect "$free" --range "$r"
    says "--range '$r'"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "--range $r: more than one line"
done
expect 2 "$TOOL" inspect "$free" --range x=1,3,64:128,64 --range x=1,3,64:128,64
says "gives an input twice"
expect 2 "$TOOL" inspect "$free" --range y=1,3,64:128,64
says "the model has no input of that name"
expect 2 "$TOOL" inspect "$free" --range x=1,3:4,64:128,64
says "dim 1 is fixed at 3"
expect 2 "$TOOL" inspect "$free" --range x=3,64:128,64
says "3 dims given, the input has 4"
expect 2 "$TOOL" inspect "$free" --range x=1,3,64:128,64 --shape x=1,3,64,64
says "--range does not go with --shape"
expect 0 "$TOOL" "$free" -o "$out" --design x=1,3,64,64 --memory-budget 1G -q # without a range, at that size
rm "$out"

# what it says
expect 0 "$TOOL" inspect "$free" $common --range x=1,3,64:512,64:512
grep -q 'range: untiled at most .* live at 1x3x512x512 (proved); resident growth up to' "$tmp/out" || fail "untiled: $(grep range: "$tmp/out")"
grep -q 'range: tiled   at most .* live at 1x3x[0-9]*x512 (proved); resident growth up to' "$tmp/out" || fail "tiled: $(grep range: "$tmp/out")"
expect 0 "$TOOL" inspect "$free" $common --range x=1,3,64:512:7,64:512:32 --design x=1,3,200,200 --json
py proved "$tmp/out" || fail "the JSON of a range: $(head -c 900 "$tmp/out")"
expect 0 "$TOOL" inspect "$tmp/data.onnx" --range x=1,3,64:128,64
grep -q "range: untiled unknown: .*NonZero 'where'" "$tmp/out" || fail "computed of data: $(grep range: "$tmp/out")"
expect 0 "$TOOL" inspect "$tmp/falls.onnx" --range x=1,3,64:128,64
grep -q "range: untiled unknown: .*ConstantOfShape 'filled' makes may be smaller" "$tmp/out" || fail "a value that falls: $(grep range: "$tmp/out")"

# budgets
expect 0 "$TOOL" "$free" -o "$out" $common --range x=1,3,64:512,64:512 --memory-budget 58M --json
[ -s "$out" ] || fail "no model within the budget"
py within "$tmp/out" || fail "over the budget: $(head -c 900 "$tmp/out")"
"$PYTHON" "$root/scripts/bounds_truth.py" --tool "$TOOL" --model "$free" --range x=1,3,64:512,64:512 --sizes 4 --args "$common" >"$tmp/truth" 2>&1 ||
    fail "measured against the bound: $(cat "$tmp/truth")"
cat "$tmp/truth"
rm "$out"
for command in "$free -o $out" "inspect $free"; do
    expect 3 "$TOOL" $command $common --range x=1,3,64:512,64:512 --memory-budget 2M
    grep -q "memory budget cannot be kept over the range: at 1x3x[0-9]*x[0-9]* .* take [0-9.]* MiB ([0-9]* bytes), 2.0 MiB are allowed" "$tmp/err" || fail "$(cat "$tmp/err")"
done
expect 3 "$TOOL" "$tmp/data.onnx" -o "$out" --range x=1,3,64:128,64 --memory-budget 1G
says "memory budget cannot be proved over the range"
[ ! -e "$out" ] || fail "a refused run wrote a model"
for kind in xml html json; do
    expect 0 "$TOOL" inspect "$free" $common --range x=1,3,64:512,64:512 --report "$tmp/r.$kind"
    grep -q '1x3x512x512' "$tmp/r.$kind" || fail "the $kind report says nothing of the range"
done
finish
