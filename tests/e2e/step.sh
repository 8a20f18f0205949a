#!/usr/bin/env bash
# --emit step: networks of sound, frames and lines, and every kind of border and state, give step by step the rows of the whole
# model, the first and last ones too; what needs all rows is refused by name; options; random networks. Other seeds: OT_SEED=7; more:
# STEP_SEEDS=1000.
. "$(dirname "$0")/lib.bash"
py models "$tmp" >"$tmp/list" || fail "no models"

while read -r model axis; do
    for rows in 1 4; do
        expect 0 "$TOOL" "$tmp/$model.onnx" -o "$tmp/s.onnx" --emit step --axis "$axis" --json
        align=$("$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["align"])' "$tmp/out")
        expect 0 "$TOOL" "$tmp/$model.onnx" -o "$tmp/$model.$rows.onnx" --emit step --axis "$axis=$((rows * align))" -q
        [ ! -s "$tmp/out" ] || fail "$model: -q prints"
        echo "$tmp/$model.onnx $tmp/$model.$rows.onnx 96" >>"$tmp/pairs"
    done
done <"$tmp/list"
py same_all "$tmp/pairs" >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"
[ "$(cat "$tmp/out")" = "$(wc -l <"$tmp/pairs") compared" ] || fail "compared: $(cat "$tmp/out")"
[ "$(wc -l <"$tmp/list")" -ge 30 ] || fail "few networks"

# two inputs of other rates, one without rows
expect 0 "$TOOL" "$tmp/guided.onnx" -o "$tmp/s.onnx" --emit step --axis guide:2 --shape x=1,2,32 --shape guide=1,2,16 --json
py same "$tmp/guided.onnx" "$tmp/s.onnx" 32 >"$tmp/out" 2>&1 || fail "guided: $(tail -n 1 "$tmp/out")"

# padding of odd extents: no whole number of steps is one
expect 0 "$TOOL" "$tmp/uneven.onnx" -o "$tmp/s.onnx" --emit step --axis x:2=4 --shape x=1,4,97
grep -q '^extent .* modulo 2, 1$' "$tmp/out" || fail "uneven: $(cat "$tmp/out")"
for rows in 45 47 97; do
    py same "$tmp/uneven.onnx" "$tmp/s.onnx" "$rows" >"$tmp/out" 2>&1 || fail "uneven, $rows rows: $(tail -n 1 "$tmp/out")"
done

# a causal network is not late, and counts nothing; one that looks ahead is late by what it reads
expect 0 "$TOOL" "$tmp/tcn_causal.onnx" -o "$tmp/s.onnx" --emit step --axis x:2
grep -q '^output y: 1 row of axis 2$' "$tmp/out" || fail "late: $(cat "$tmp/out")"
py figures "$tmp/s.onnx" delay=0 flush=0 count=None n_states=4 || fail "causal"
expect 0 "$TOOL" "$tmp/tcn_centred.onnx" -o "$tmp/s.onnx" --emit step --axis x:2=8
py figures "$tmp/s.onnx" delay=15 flush=2 count=rows rows=8 || fail "centred"
py short "$tmp/tcn_centred.onnx" "$tmp/s.onnx" >"$tmp/out" 2>&1 || fail "few rows: $(tail -n 1 "$tmp/out")"
py length "$tmp/s.onnx" >"$tmp/out" 2>&1 || fail "memory: $(tail -n 1 "$tmp/out")"

while read -r model op; do
    expect 1 "$TOOL" "$tmp/lost_$model.onnx" -o "$tmp/none.onnx" --emit step --axis x:2
    says "($op): "
    grep -q "node '" "$tmp/err" || fail "$model: no node: $(cat "$tmp/err")"
done <<END
mean ReduceMean
norm InstanceNormalization
backwards GRU
wrapped Pad
length Div
last RNN
backsum CumSum
attention MatMul
END

model=$tmp/tcn_causal.onnx
expect 2 "$TOOL" "$model" -o "$tmp/none.onnx" --emit step
says "--axis INPUT:AXIS"
expect 2 "$TOOL" "$model" -o "$tmp/none.onnx" --axis x:2
says "add --emit step"
expect 2 "$TOOL" inspect "$model" --emit step
says "--emit step writes a model"
expect 2 "$TOOL" "$model" -o "$tmp/none.onnx" --emit step --axis x:2 --runtime openvino
says "--emit step tiles nothing"
for bad in x 2 :2 x:z x:16 x:2=0 x:2=a x:2=; do
    expect 2 "$TOOL" "$model" -o "$tmp/none.onnx" --emit step --axis "$bad"
    says "--axis"
done
expect 2 "$TOOL" "$model" -o "$tmp/none.onnx" --emit step --axis y:2
says "no input 'y'"
expect 2 "$TOOL" "$model" -o "$tmp/none.onnx" --emit step --axis x:3
says "there is no axis 3"
expect 2 "$TOOL" "$tmp/speech_denoiser.onnx" -o "$tmp/none.onnx" --emit step --axis x:2=12
says "a multiple of 8"
head -c 100 "$model" >"$tmp/broken.onnx"
expect 1 "$TOOL" "$tmp/broken.onnx" -o "$tmp/none.onnx" --emit step --axis x:2
expect 4 bash -c '"$0" "$1" -o "$2" --emit step --axis x:2 --json >/dev/full' "$TOOL" "$model" "$tmp/none.onnx"
[ ! -e "$tmp/none.onnx" ] || fail "a file was written"

start=$((${OT_SEED:-1} * 1000000)) seeds=${STEP_SEEDS:-40}
"$PYTHON" "$root/tests/property/steps.py" --tool "$TOOL" --start "$start" --seeds "$seeds" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
tail -n 1 "$tmp/out"
finish
