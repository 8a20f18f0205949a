#!/usr/bin/env bash
# bench: a model and its tiled form side by side; figures that fit together, a difference that is found, a trace that browsers read.
# run: alone
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'bench MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi

cat >"$tmp/make.py" <<'EOF_PY'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

d = sys.argv[1]


def save(name, nodes, dims, out, inits=()):
    g = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, dims)], [h.make_tensor_value_info('y', T.FLOAT, out)], list(inits))
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=8), f'{d}/{name}.onnx')


rng = np.random.default_rng(0)
w = [numpy_helper.from_array(rng.normal(0, .2, (8, 8, 3, 3)).astype('f4'), f'w{k}') for k in range(3)]
nodes = []
for k in range(3):
    nodes += [h.make_node('Conv', ['x' if k == 0 else f'r{k - 1}', f'w{k}'], [f'c{k}'], f'conv{k}', pads=[1, 1, 1, 1]), h.make_node('Relu', [f'c{k}'], [f'r{k}'], f'relu{k}')]
nodes[-1].output[0] = 'y'
save('net', nodes, [1, 8, 96, 96], [1, 8, 96, 96], w)
nodes[-1].op_type = 'Sigmoid'
save('other', nodes, [1, 8, 96, 96], [1, 8, 96, 96], w)
save('two', [h.make_node('Identity', ['x'], ['y'], 'odd name "here"')], [2, 3], [2, 3])
save('renamed', [h.make_node('Identity', ['x'], ['y'])], [3, 2], [3, 2])
EOF_PY
"$PYTHON" "$tmp/make.py" "$tmp" || fail "cannot make the models"
cd "$tmp" || exit 1

# python CODE: j is what the last command printed as JSON; the code asserts
python() { "$PYTHON" -c "import json
j = json.load(open('$tmp/out'))
$1" || fail "$1"; }

# ---- a tiled file ----
expect 0 "$TOOL" net.onnx -o tiled.onnx --force --form unrolled --target mcu-512k --l2 64K -q
expect 0 "$TOOL" bench net.onnx tiled.onnx --repeat 3 --threads 2 --target cpu-generic --l2 64K --json --trace t.json
python "assert j['threads'] == 2 and j['runs'] == 3 and j['model'] == 'net.onnx' and j['tiled_model'] == 'tiled.onnx' and j['target'] == 'cpu-generic'
assert j['same'] and [o['name'] for o in j['outputs']] == ['y'] and j['outputs'][0]['nmse'] <= 1e-8
o, t = j['original'], j['tiled']
for s in (o, t):
    assert 0 < s['ms_min'] <= s['ms_p50'] <= s['ms_p90'] <= s['ms_p99'] and s['ms_predicted'] is None
    assert s['cache'] is None or s['cache']['references'] >= s['cache']['misses'] >= 0
    assert s['weight_bytes'] >= 3 * 8 * 8 * 9 * 4
# six nodes read and write 288 KiB each, of which no more than 64 KiB fit
assert o['operand_bytes']['mid'] + o['operand_bytes']['slow'] == 6 * 2 * 8 * 96 * 96 * 4 and o['operand_bytes']['fast'] == 3 * 8 * 8 * 9 * 4
assert t['operand_bytes']['mid'] + t['operand_bytes']['slow'] < (o['operand_bytes']['mid'] + o['operand_bytes']['slow']) * 0.8
assert abs(j['time_ratio'] - t['ms_min'] / o['ms_min']) < 1e-6"
"$PYTHON" -c "import json
e = json.load(open('t.json'))['traceEvents']
groups = {x['pid']: x['args']['name'] for x in e if x['name'] == 'process_name'}
assert groups == {0: 'original', 1: 'tiled'}, groups
x = [v for v in e if v['ph'] == 'X']
assert all(v['ts'] >= 0 and v['dur'] >= 0 and v['args']['op'] for v in x)
assert {'conv0', 'conv1'} <= {v['name'] for v in x if v['pid'] == 0} and any(v['name'].startswith('tile/') for v in x if v['pid'] == 1), x" || fail "the trace"

# ---- tiled here ----
for emit in onnx engine; do
    expect 0 "$TOOL" bench net.onnx --repeat 2 --force --target host --l2 64K --emit $emit --json
    [ ! -s "$tmp/err" ] || fail "something on stderr: $(cat "$tmp/err")"
    python "assert j['tiled_model'] is None and not j['other_machine'] and j['same'] and j['regions'] and all(s['ms_predicted'] > 0 for s in (j['original'], j['tiled'])), '$emit'
assert all(r['ms_tiled'] > 0 and r['ms_tiled_predicted'] > 0 and r['ms_untiled'] > 0 for r in j['regions']) and j['region_error'] >= 0"
done
expect 0 "$TOOL" bench net.onnx --repeat 1 --force --l2 64K
for line in 'time least' 'time predicted' 'peak planned' 'operands fast' 'median error' 'output y'; do
    grep -q "^$line" "$tmp/out" || fail "no line '$line': $(cat "$tmp/out")"
done
expect 0 "$TOOL" bench two.onnx --repeat 1 --json
python "assert j['regions'] == [] and j['region_error'] is None and j['time_ratio'] > 0"
expect 0 "$TOOL" bench two.onnx --repeat 1 -q
[ ! -s "$tmp/out" ] || fail "-q says something"

# ---- another machine's predictions are not compared with what this one measures ----
expect 0 "$TOOL" bench net.onnx --repeat 1 --force --target mcu-512k --l2 64K --json --report other.xml --report other.html
[ "$(cat "$tmp/err")" = "onnx-tile: note: target 'mcu-512k' is not this machine: predictions and levels of memory are the target's, times were measured here" ] ||
    fail "no word of the other machine: $(cat "$tmp/err")"
python "assert j['other_machine'] and j['region_error'] is None and all(r['ms_tiled_predicted'] > 0 and r['ms_tiled'] > 0 for r in j['regions'])"
grep -q 'other-machine="true"' other.xml || fail "the report does not tell of the other machine"
grep -q 'is not the machine that measured' other.html || fail "the page does not tell of the other machine"
grep -qE ' (region-)?error=' other.xml && fail "the report compares two machines"
expect 0 "$TOOL" bench net.onnx --repeat 1 --force --target mcu-512k --l2 64K
grep -qE 'median error|[+-][0-9]+ %' "$tmp/out" && fail "the table compares two machines"
expect 0 "$TOOL" bench two.onnx --repeat 1 --target tlf-16m -q
[ ! -s "$tmp/err" ] || fail "-q says something"

# ---- what is wrong ----
"$TOOL" bench net.onnx other.onnx --repeat 1 --json >"$tmp/out" 2>"$tmp/err" && fail "other outputs pass"
says "output 'y' of the tiled model is not the original's: the contents differ"
python "assert not j['same']"
expect 1 "$TOOL" bench two.onnx renamed.onnx; says "input 'x' of the tiled model is float32 [3,2], but the original's array float32 [2,3]"
expect 2 "$TOOL" bench - ; says 'standard input'
expect 2 "$TOOL" bench; says 'no model given'
expect 2 "$TOOL" bench a.onnx b.onnx c.onnx; says "is one more"
expect 4 "$TOOL" bench two.onnx --repeat 1 --trace none/t.json; says 'none/t.json'
finish
