#!/usr/bin/env bash
# explain: the table, JSON and reports say the same, the command that it names does what it says, strange models are told of.
. "$(dirname "$0")/lib.bash"
make_model unet dncnn seed_case resnet50 --small
"$PYTHON" "$root/models/make_models.py" "$tmp" vgg16_features --size 512 --width 16 || fail "no model"
cd "$tmp" || exit 1
for m in *.onnx; do
    expect 0 "$TOOL" explain "$m" --json --report "$tmp/r.xml" --report "$tmp/r.html"
    cp "$tmp/out" "$tmp/r.json"
    expect 0 "$TOOL" explain "$m"
    py agree "$tmp" >"$tmp/said" 2>&1 || fail "$m: $(cat "$tmp/said")"
done
grep -q "Most live at step" "$tmp/out" || fail "no peak: $(cat "$tmp/out")"

# the command
expect 0 "$TOOL" explain vgg16_features.onnx --target cpu-generic --threads 1 --max-slowdown 20 --json
command=$("$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"] or "")' "$tmp/out")
case $command in "onnx-tile vgg16_features.onnx -o vgg16_features-tiled.onnx "*" --max-slowdown 20") ;; *) fail "the command is '$command'" ;; esac
bash -c "${command/onnx-tile/$TOOL}" >"$tmp/out" 2>&1 || fail "$command: $(cat "$tmp/out")"
[ -s vgg16_features-tiled.onnx ] || fail "$command wrote nothing"
cp vgg16_features.onnx "a 'name' \$HOME.onnx"
expect 0 "$TOOL" explain "a 'name' \$HOME.onnx" --target cpu-generic --threads 1 --max-slowdown 20 --json
command=$("$PYTHON" -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' "$tmp/out")
bash -c "${command/onnx-tile/$TOOL}" >"$tmp/out" 2>&1 || fail "$command: $(cat "$tmp/out")"
[ -s "a 'name' \$HOME-tiled.onnx" ] || fail "$command wrote nothing of that name"

py reasons "$TOOL" "$tmp" || fail "a reason is not true"
"$PYTHON" -c "
from builder import conv_chain, save
save(conv_chain([16] * 6, extents=('n', 'h', 'w'), act='Relu'), 'free.onnx')"
py again "$TOOL" "$tmp" || fail "a tiled file is not told to be one"
py cured "$TOOL" "$tmp" || fail "a cure is not one"

# strange models
printf 'model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,?,8]\n  %%y = Relu(%%x)\n  output %%y\n}\n' >free.ot
expect 0 "$TOOL" explain free.ot
grep -qF -- 'No size is given: this is for x=1,4096,8.' "$tmp/out" || fail "the size is not told: $(cat "$tmp/out")"
printf 'model ir 8 opset 17\ngraph g {\n  init %%b : float32[7] = fill 1\n  input %%x : float32[1,?]\n  %%y = Add(%%x, %%b)\n  output %%y\n}\n' >odd.ot # no guessed size fits
expect 0 "$TOOL" explain odd.ot
grep -qF -- '--shape x=1,?' "$tmp/out" || fail "the free input is not told: $(cat "$tmp/out")"
printf 'model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,8]\n  output %%x\n}\n' >none.ot
expect 0 "$TOOL" explain none.ot
grep -q 'nothing to tell' "$tmp/out" || fail "an empty graph: $(cat "$tmp/out")"
printf 'model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,8,64,64]\n  %%"a\\x1b[31m\\n" = Relu(%%x)\n  %%y = Softmax(%%"a\\x1b[31m\\n") {axis=1}\n  output %%y\n}\n' >odd.ot
"$TOOL" explain odd.ot >"$tmp/out" 2>"$tmp/err"
[ $? -le 1 ] || fail "odd names: $(cat "$tmp/err")"
grep -q $'\x1b' "$tmp/out" && fail "an escape gets through"
expect 2 "$TOOL" explain dncnn.onnx -o x.onnx
says "'explain' writes no model"
expect 2 "$TOOL" explain
says 'no model given'
expect 1 "$TOOL" explain nowhere.onnx
finish
