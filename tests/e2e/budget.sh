#!/usr/bin/env bash
# --memory-budget: live tensors keep to it or the exit status is 3; the process of ONNX Runtime keeps to it as well where a plan for
# that is found, as measured, and where none is the result says so. Normalisations are decomposed where nothing else keeps to it.
. "$(dirname "$0")/lib.bash"

py models "$tmp" || fail "cannot make the models"
for name in chain norms; do py takes "$tmp/$name.onnx" "$tmp/$name.npy" >"$tmp/$name.untiled" || fail "$name untiled"; done

# keeps NAME MIB: a plan is found that keeps the measured process within MIB.
keeps() {
    local name=$1 bytes=$(($2 << 20))
    [ "$(cat "$tmp/$name.untiled")" -gt "$bytes" ] || fail "$name takes less than $2 MiB untiled: nothing is tested"
    expect 0 "$TOOL" "$tmp/$name.onnx" -o "$tmp/tiled.onnx" --target cpu-generic --threads 1 --memory-budget "$2M" --json
    cp "$tmp/out" "$tmp/told.json"
    py takes "$tmp/tiled.onnx" "$tmp/tiled.npy" >"$tmp/taken" || fail "$name does not run"
    py keeps "$tmp/told.json" "$bytes" "$(cat "$tmp/taken")" "$tmp/$name.npy" "$tmp/tiled.npy" 2>"$tmp/why" ||
        fail "$name within $2 MiB: $(tail -n 1 "$tmp/why")"
}
keeps chain 90
keeps chain 70
keeps norms 190
# what one goal keeps the other keeps, slower than it allows where nobody says how slow
for goal in time memory; do
    expect 0 "$TOOL" "$tmp/norms.onnx" -o "$tmp/tiled.onnx" -q --target cpu-generic --threads 1 --memory-budget 100M --goal $goal
done

# What cannot be kept, by the process or by live tensors: exit 3 and no file, unless the least that is found does, which is said.
expect 3 "$TOOL" "$tmp/chain.onnx" -o "$tmp/none.onnx" --target cpu-generic --threads 1 --memory-budget 30M
says 'the process is predicted to take'; says '--best-effort writes the least'
for budget in 30M 2M; do
    expect 0 "$TOOL" "$tmp/chain.onnx" -o "$tmp/least.onnx" --target cpu-generic --threads 1 --memory-budget $budget --best-effort
    grep -q '^  memory budget cannot be met: required' "$tmp/out" || fail "nothing is said of the budget: $(head -n 8 "$tmp/out")"
    py takes "$tmp/least.onnx" "$tmp/least.npy" >"$tmp/taken" || fail "the least does not run"
    [ "$(cat "$tmp/taken")" -lt $((70 << 20)) ] || fail "the least takes $(cat "$tmp/taken")"
done
expect 0 "$TOOL" inspect "$tmp/chain.onnx" --target cpu-generic --threads 1 --memory-budget 70M --best-effort --json
! grep -q '"missed"' "$tmp/out" || fail "a budget that is met is missed"
for name in chain norms; do
    expect 3 "$TOOL" "$tmp/$name.onnx" -o "$tmp/none.onnx" --target cpu-generic --memory-budget 2M
    says "memory budget cannot be met: required "
    [ ! -e "$tmp/none.onnx" ] || fail "a file of a model that passes the budget"
done

# What a refusal requires is the least that is found: that much is enough.
for name in chain norms; do
    for goal in time memory; do
        for budget in 2M 20M 40M; do
            "$TOOL" inspect "$tmp/$name.onnx" --target cpu-generic --threads 1 --goal $goal --memory-budget $budget \
                >"$tmp/out" 2>"$tmp/err" && continue
            required=$(sed -n 's/.*required [^(]*(\([0-9]*\) bytes).*/\1/p' "$tmp/err")
            expect 0 "$TOOL" inspect "$tmp/$name.onnx" --target cpu-generic --threads 1 --goal $goal --memory-budget "$required"
        done
    done
done

# The same bytes from run to run, and with the engine, of whose process nothing is predicted.
for k in 1 2; do expect 0 "$TOOL" "$tmp/norms.onnx" -o "$tmp/run$k.onnx" -q --target cpu-generic --memory-budget 190M; done
cmp -s "$tmp/run1.onnx" "$tmp/run2.onnx" || fail "the result differs from run to run"
expect 0 "$TOOL" "$tmp/norms.onnx" -o "$tmp/engine.onnx" -q --target cpu-generic --emit engine --memory-budget 190M
finish
