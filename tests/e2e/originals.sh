#!/usr/bin/env bash
# Files that were tiled for ONNX Runtime run in the engine as what they were: random graphs, a real network in each form, what is changed.
. "$(dirname "$0")/lib.bash"
"$TOOL" --help | grep -q 'run MODEL.*needs the native engine' && { echo "all good: no engine"; exit 0; }
start=$((${OT_SEED:-1} * 1000000)) seeds=${ORIGINALS_SEEDS:-24}
"$PYTHON" "$root/tests/property/originals.py" --tool "$TOOL" --start "$start" --seeds "$seeds" >"$tmp/log" 2>&1 || fail "$(tail -n 20 "$tmp/log")"
tail -n 1 "$tmp/log"

# Every form, with weights in a data file and without; bench takes the file likewise.
"$PYTHON" "$root/tests/e2e/doc_models.py" unet "$tmp/model.onnx" || fail "no model"
shape=(--shape input=1,3,64,64)
expect 0 "$TOOL" run "$tmp/model.onnx" "${shape[@]}" --output-dir "$tmp/want"
for form in scan unrolled loop-peeled loop prescan stream; do
    for file in '' --single-file; do
        expect 0 "$TOOL" "$tmp/model.onnx" -o "$tmp/t.onnx" "${shape[@]}" --goal memory --form $form --force --l2 64K -q $file
        grep -q 'tile/r' "$tmp/t.onnx" || continue
        forms="${forms:-} $form"
        expect 0 "$TOOL" run "$tmp/t.onnx" --output-dir "$tmp/got"
        [ -s "$tmp/err" ] && fail "$form: $(cat "$tmp/err")"
        cmp -s "$tmp/want/0.npy" "$tmp/got/0.npy" || fail "$form: another result"
    done
done
[ "$(wc -w <<<"${forms:-}")" -ge 6 ] || fail "too few forms were written:${forms:-}"
expect 0 "$TOOL" bench "$tmp/model.onnx" "$tmp/t.onnx" "${shape[@]}" --repeat 1
[ -s "$tmp/err" ] && fail "bench: $(cat "$tmp/err")"
finish
