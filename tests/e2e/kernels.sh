#!/usr/bin/env bash
# run-kernel: the gallery of tile kernels computes what NumPy computes; figures, traces, every exit status.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/e2e/kernels.py" "$TOOL" "$root" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
tail -n 1 "$tmp/out"

gallery=$root/examples/kernels
"$PYTHON" -c "import numpy as np; np.save('$tmp/x.npy', np.arange(8 * 256, dtype=np.float32).reshape(8, 256))"
expect 0 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --stats --trace "$tmp/t.json"
for part in "output   y: f32 [8,256]" "memory   ub         peak 4096, freed 8192, still allocated 2048 bytes" "pipe     vector     8 operations" \
    "leak     line 6: 'a' (1024 bytes of ub) is never freed"; do
    grep -qF -- "$part" "$tmp/out" || fail "stats lack '$part': $(cat "$tmp/out")"
done
"$PYTHON" "$root/tests/e2e/double_buffer_trace.py" "$tmp/t.json" || fail "the trace"
expect 0 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --json
"$PYTHON" -c "import json; r = json.load(open('$tmp/out')); assert r['memories'][0]['peak_bytes'] == 4096 and r['outputs'][0]['name'] == 'y'" || fail "json"

# every way to fail
expect 2 "$TOOL" run-kernel
says "no file given"
expect 1 "$TOOL" run-kernel "$tmp/absent.tk"
says "cannot read"
expect 1 "$TOOL" run-kernel "$gallery/double_buffer.tk"
says "'x' has no input [input-missing]"
expect 2 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --input q="$tmp/x.npy"
says "the kernel has no param 'q'"
expect 1 "$TOOL" run-kernel "$gallery/softmax.tk" --input x="$tmp/x.npy"
says "'x' has another shape or element type than its input [input-type]"
expect 3 "$TOOL" run-kernel "$gallery/double_buffer.tk" --input x="$tmp/x.npy" --capacity 2K
says "ub overflow"
sed 's/ *wait fetch keep=1//' "$gallery/double_buffer.tk" >"$tmp/race.tk"
expect 1 "$TOOL" run-kernel "$tmp/race.tk" --input x="$tmp/x.npy" --output-dir "$tmp/none"
says "race.tk:14:5: race: the kernel reads 'a' here, and nothing orders that after line 8, where fetch writes 'a' in the same bytes [race]"
[ ! -e "$tmp/none" ] || fail "an output of a kernel that failed"
# with -v, or on a terminal: the line, a caret under its column, and the other line that the message names
expect 1 "$TOOL" run-kernel "$tmp/race.tk" --input x="$tmp/x.npy" -v
awk 'shown; /error:/ { shown = 1 }' "$tmp/err" >"$tmp/place"
{
    printf '%6s | %s\n' 14 "$(sed -n 14p "$tmp/race.tk")" '' "    ^"
    printf 'note: line 8\n%6s | %s\n' 8 "$(sed -n 8p "$tmp/race.tk")"
} >"$tmp/want"
cmp -s "$tmp/place" "$tmp/want" || fail "the place of an error: $(cat "$tmp/place")"
expect 1 "$TOOL" plan-memory "$root/tests/golden/mlir/09_refused.mlir" -v
[ "$(awk 'shown; /error:/ { shown = 1 }' "$tmp/err" | wc -l)" = 2 ] || fail "the place of an error in MLIR: $(cat "$tmp/err")"
printf 'kernel k {\n  alloc a: 8 f32 @ub\t\033[31m\n}\n' >"$tmp/escape.tk"
expect 1 "$TOOL" plan-memory "$tmp/escape.tk" -v
! grep -q "$(printf '\033')" "$tmp/err" || fail "an escape of the text is printed"
finish
