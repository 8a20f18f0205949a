#!/usr/bin/env bash
# Files that were tiled for ONNX Runtime run in the engine as what they were, with tiles of its own: random graphs, a real network in each form.
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
        expect 0 "$TOOL" run "$tmp/t.onnx" --no-plan --output-dir "$tmp/got"
        [ -s "$tmp/err" ] && fail "$form: $(cat "$tmp/err")"
        cmp -s "$tmp/want/0.npy" "$tmp/got/0.npy" || fail "$form: another result"
    done
done
[ "$(wc -w <<<"${forms:-}")" -ge 6 ] || fail "too few forms were written:${forms:-}"

# Planned for the sizes that come, a file of goal memory takes less than its original does, and nearly gives the same; so does the original by --goal.
figure() { "$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }
expect 0 "$TOOL" "$tmp/model.onnx" -o "$tmp/t.onnx" --shape input=1,3,256,256 --goal memory --max-slowdown 25 -q
shape=(--shape input=1,3,256,256 --json)
expect 0 "$TOOL" run "$tmp/t.onnx" "${shape[@]}" --no-plan --output-dir "$tmp/want" && cp "$tmp/out" "$tmp/plain.json"
for words in "$tmp/t.onnx" "$tmp/model.onnx --goal memory"; do
    expect 0 "$TOOL" run $words "${shape[@]}" --output-dir "$tmp/got"
    [ -s "$tmp/err" ] && fail "run $words: $(cat "$tmp/err")"
    less=$(figure "$tmp/out" peak_bytes) more=$(figure "$tmp/plain.json" peak_bytes)
    [ "$less" -lt "$more" ] || fail "run $words: $less bytes, not planned $more"
    "$PYTHON" -c 'import sys, numpy as n; a, b = map(n.load, sys.argv[1:]); sys.exit(not n.allclose(a, b, 1e-3, 1e-4))' "$tmp/want/0.npy" "$tmp/got/0.npy" ||
        fail "run $words: another result"
done
expect 2 "$TOOL" run "$tmp/model.onnx" --goal speed
for words in "" --no-plan --as-is; do
    expect 0 "$TOOL" bench "$tmp/model.onnx" "$tmp/t.onnx" "${shape[@]}" --repeat 1 $words
    [ -s "$tmp/err" ] && fail "bench $words: $(cat "$tmp/err")"
    cp "$tmp/out" "$tmp/bench$words.json"
done
"$PYTHON" - "$tmp" <<'EOF' || fail "bench: other figures than those of run"
import json
import sys

plain, planned, untiled = (json.load(open(f'{sys.argv[1]}/{name}.json')) for name in ('plain', 'bench', 'bench--no-plan'))
most = plain['planned_peak_bytes']
sys.exit(not (planned['original']['planned_peak_bytes'] == untiled['tiled']['planned_peak_bytes'] == most and planned['same'] and
              untiled['same'] and planned['tiled']['planned_peak_bytes'] < most))
EOF
finish
