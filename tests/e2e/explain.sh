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
    "$PYTHON" - "$tmp" <<'P' >"$tmp/said" 2>&1 || fail "$m: $(cat "$tmp/said")"
import json, re, sys
import xml.etree.ElementTree as E
folder = sys.argv[1]
j, text, page = json.load(open(folder + '/r.json')), open(folder + '/out').read(), open(folder + '/r.html').read()
x = E.parse(folder + '/r.xml').getroot()
peak = {e['id']: e.get('number', e.get('text')) for e in j['peak']}
twin = {e.get('id'): float(e.get('number')) if e.get('number') else e.get('text', '') for e in x.find('peak')}
near = lambda a, b: a == b if isinstance(a, str) else abs(a - b) <= 1e-6 * abs(a)
assert list(peak) == list(twin) and all(near(peak[k], twin[k]) for k in peak), (peak, twin)
assert [a['value'] for a in j['alive']] == [a.get('value') for a in x.find('alive')]
assert [o['reason'] for o in j['obstacles']] == [o.get('reason') for o in x.find('obstacles')]
assert abs(sum(a['bytes'] for a in j['alive']) - peak['peak-bytes']) <= 1 + 1e-6 * peak['peak-bytes'], 'the parts are not the whole'
assert abs(sum(a['share'] for a in j['alive']) - 1) < 1e-6
assert j['command'] == x.get('command')
assert (j['command'] or 'would not help') in text, text
assert 'id="explain"' in page and all(o['reason'].split()[0] in page for o in j['obstacles'])
assert max(len(l) for l in text.splitlines() if 'onnx-tile ' not in l) <= 118 and len(text.splitlines()) <= 40, text
P
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

# strange models
printf 'model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,?,8]\n  %%y = Relu(%%x)\n  output %%y\n}\n' >free.ot
expect 0 "$TOOL" explain free.ot
grep -qF -- 'No size is given: this is for x=1,4096,8.' "$tmp/out" || fail "the size is not told: $(cat "$tmp/out")"
expect 0 "$TOOL" explain free.ot --runtime openvino
grep -qF -- '--shape x=1,?,8' "$tmp/out" || fail "the free input is not told: $(cat "$tmp/out")"
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
