#!/usr/bin/env bash
# run: the same outputs as ONNX Runtime; arrays in and out; one line for every wrong input.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi

cat >"$tmp/make.py" <<'EOF'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

d = sys.argv[1]


def save(name, nodes, inputs, outputs, inits=(), ir=8):
    g = h.make_graph(nodes, 'g', inputs, outputs, list(inits))
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=ir), f'{d}/{name}.onnx')


def value(name, dims, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, dims)


w = numpy_helper.from_array(np.array([1, -2, .5], 'f4'), 'w')
nodes = [h.make_node('Add', ['x', 'w'], ['a'], 'add'), h.make_node('Relu', ['a'], ['y'], 'relu'), h.make_node('Shape', ['y'], ['z'], 'shape')]
save('chain', nodes, [value('x', ['n', 3])], [value('y', None), value('z', None, T.INT64)], [w])
save('given', nodes, [value('x', ['n', 3]), value('w', ['k'])], [value('y', None), value('z', None, T.INT64)], [w])
kinds = {'h': T.FLOAT16, 'd': T.DOUBLE, 'i': T.INT32, 'b': T.BOOL, 'u': T.UINT8}
save('kinds', [h.make_node('Identity', [k], ['o' + k]) for k in kinds], [value(k, [2, 2], t) for k, t in kinds.items()],
     [value('o' + k, [2, 2], t) for k, t in kinds.items()])
save('strange', [h.make_node('Strange', ['x'], ['y'], 'odd')], [value('x', [1])], [value('y', [1])])
save('words', [h.make_node('Identity', ['x'], ['y'])], [value('x', [1], T.STRING)], [value('y', [1], T.STRING)])
save('rankless', [h.make_node('Relu', ['x'], ['y'])], [h.make_tensor_value_info('x', T.FLOAT, None)], [value('y', None)])
x = np.array([[1, 2, 3], [-4, 5, -6]], 'f4')
np.save(f'{d}/x.npy', x)
np.save(f'{d}/xf.npy', np.asfortranarray(x))
np.save(f'{d}/double.npy', x.astype('f8'))
np.save(f'{d}/flat.npy', x.ravel())
np.save(f'{d}/wide.npy', np.zeros((2, 4), 'f4'))
np.save(f'{d}/w1.npy', np.array([10], 'f4'))
open(f'{d}/x.pb', 'wb').write(numpy_helper.from_array(x, 'x').SerializeToString())
open(f'{d}/bad.npy', 'w').write('no array')
EOF
"$PYTHON" "$tmp/make.py" "$tmp" || fail "cannot make the models"
cd "$tmp" || exit 1

# python CODE: numpy is np, load(path) reads an array; the code asserts
python() { "$PYTHON" -c "import json, numpy as np
load = np.load
$1" || fail "$1"; }

# ---- arrays in and out ----
for file in x.npy x.pb xf.npy; do
    rm -rf got
    expect 0 "$TOOL" run chain.onnx --input "x=$file" --output-dir got -q
    [ ! -s "$tmp/out" ] || fail "-q says something"
    python "assert np.array_equal(load('got/0.npy'), np.array([[2, 0, 3.5], [0, 3, 0]], 'f4')), load('got/0.npy')
assert load('got/1.npy').tolist() == [2, 3] and load('got/1.npy').dtype == np.int64"
done
expect 0 "$TOOL" run given.onnx --input x=x.npy --input w=w1.npy --output-dir got -q
python "assert np.array_equal(load('got/0.npy'), np.array([[11, 12, 13], [6, 15, 4]], 'f4'))"
expect 0 "$TOOL" run given.onnx --input x=x.npy --output-dir got -q
python "assert np.array_equal(load('got/0.npy'), np.array([[2, 0, 3.5], [0, 3, 0]], 'f4'))"
"$TOOL" run - --input x=x.npy --output-dir piped -q <chain.onnx || fail "a model from a pipe is not run"
cmp -s piped/0.npy got/0.npy || fail "a model from a pipe gives something else"
expect 0 "$TOOL" chain.onnx -o chain.ot -q
expect 0 "$TOOL" run chain.ot --input x=x.npy --output-dir text -q
cmp -s text/0.npy got/0.npy || fail "the text form gives something else"

# ---- random arrays ----
expect 0 "$TOOL" run kinds.onnx --output-dir a -q
expect 0 "$TOOL" run kinds.onnx --output-dir b -q --seed 0
expect 0 "$TOOL" run kinds.onnx --output-dir c -q --seed 1
cmp -s a/1.npy b/1.npy || fail "one seed, two results"
cmp -s a/1.npy c/1.npy && fail "two seeds, one result"
python "h, d, i, b, u = (load(f'a/{k}.npy') for k in range(5))
assert [v.dtype.str for v in (h, d, i, b, u)] == ['<f2', '<f8', '<i4', '|b1', '|u1']
assert all(0 <= v < 1 for v in [*h.ravel(), *d.ravel()]) and len(set(d.ravel())) == 4
assert b.all() and set(i.ravel()) | set(u.ravel()) <= {0, 1}"
expect 0 "$TOOL" run chain.onnx --output-dir one -q
python "assert load('one/0.npy').shape == (1, 3)"
expect 0 "$TOOL" run chain.onnx --shape x=4,3 --output-dir four -q
python "assert load('four/0.npy').shape == (4, 3)"

# ---- what it says ----
# element-wise nodes are one step, and nothing lies between
expect 0 "$TOOL" run chain.onnx --input x=x.npy --json
python "j = json.load(open('$tmp/out'))
assert [n['op'] for n in j['nodes']] == ['Relu', 'Shape'] and j['planned_peak_bytes'] == 0, j"
expect 0 "$TOOL" run chain.onnx --input x=x.npy --json --repeat 3 --threads 2 --reference
python "j = json.load(open('$tmp/out'))
times = {'ms_min': 'least_seconds', 'ms_p50': 'median_seconds', 'ms_p90': 'p90_seconds', 'ms_p99': 'p99_seconds'}
assert set(j) == {*times, *times.values(), 'runs', 'peak_bytes', 'planned_peak_bytes', 'weight_bytes', 'resident_bytes', 'threads', 'nodes', 'outputs'}, j
assert j['runs'] == 3 and j['threads'] == 2 and 0 < j['ms_min'] <= j['ms_p50'] <= j['ms_p90'] <= j['ms_p99'] and j['weight_bytes'] == 12
assert j['resident_bytes'] > 100000
assert all(abs(j[old] - 1e3 * j[now]) <= 1e-9 * j[old] for old, now in times.items())
assert [n['op'] for n in j['nodes']] == ['Add', 'Relu', 'Shape'] and j['nodes'][0]['name'] == 'add' and j['nodes'][0]['ms'] >= 0
assert j['outputs'][0] == {'name': 'y', 'dtype': 'float32', 'shape': [2, 3]} and j['peak_bytes'] >= j['planned_peak_bytes'] == 24"
expect 0 "$TOOL" run chain.onnx --input x=x.npy
grep -q '^output 0 y: float32 \[2,3\]$' "$tmp/out" || fail "the table lacks an output: $(cat "$tmp/out")"

# ---- what ran when ----
expect 0 "$TOOL" run chain.onnx --input x=x.npy --threads 2 --output-dir traced --trace t.json --json
python "j = json.load(open('$tmp/out'))
e = json.load(open('t.json'))['traceEvents']
assert j['runs'] == 1 and {x['args']['name'] for x in e if x['name'] == 'process_name'} == {'chain.onnx'}, e
x = [v for v in e if v['ph'] == 'X']
assert [v['args']['op'] for v in x] == ['Relu', 'Shape'] and all(v['ts'] >= 0 and v['dur'] >= 0 for v in x), x
assert np.array_equal(load('traced/0.npy'), load('got/0.npy'))"
expect 0 "$TOOL" run chain.onnx --trace - -q
python "assert json.load(open('$tmp/out'))['traceEvents']"
expect 4 "$TOOL" run chain.onnx --trace none/t.json; says 'none/t.json'
expect 2 "$TOOL" run chain.onnx --trace -; says '--trace - and the results both want stdout'
expect 2 "$TOOL" run chain.onnx --trace - -q --json; says '--json and --trace - both want stdout'

# ---- what is wrong ----
expect 2 "$TOOL" run chain.onnx --input q=x.npy; says "--input q: the model has no input of that name; it has 'x'"
expect 2 "$TOOL" run chain.onnx --input w=x.npy; says "--input w: the model has no input of that name"
expect 1 "$TOOL" run chain.onnx --input x=none.npy; says "cannot read 'none.npy'"
expect 1 "$TOOL" run chain.onnx --input x=bad.npy; says "'bad.npy': no .npy file"
expect 1 "$TOOL" run chain.onnx --input x=double.npy; says "input 'x' is float32, but 'double.npy' holds float64"
expect 1 "$TOOL" run chain.onnx --input x=flat.npy; says "input 'x' has shape [?,3], but 'flat.npy' has [6]"
expect 1 "$TOOL" run chain.onnx --input x=wide.npy; says "input 'x' has shape [?,3], but 'wide.npy' has [2,4]"
expect 2 "$TOOL" run chain.onnx --shape q=1,3; says '--shape q'
expect 2 "$TOOL" run chain.onnx --input x=x.npy --shape x=4,3; says '--shape x'
expect 1 "$TOOL" run strange.onnx; says "node 'odd' (Strange): the engine does not have this operator"
expect 1 "$TOOL" run words.onnx; says "input 'x' is string"
expect 1 "$TOOL" run rankless.onnx; says "input 'x' has no known rank"
expect 1 "$TOOL" run none.onnx; says "cannot open 'none.onnx'"
expect 0 "$TOOL" run rankless.onnx --shape x=2 -q

# ---- shapes that the file states and nobody infers: of old opsets, of other domains. What runs goes by the operands ----
python "
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
N = h.make_node
def claim(name, nodes, x, y, inits, opset):
    g = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', *x)], [h.make_tensor_value_info('y', *y)], inits)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', opset), h.make_opsetid('com.microsoft', 1)], ir_version=8), name + '.onnx')
def one(name, value, dtype='f4'): return nh.from_array(np.array(value, dtype), name)
claim('old', [N('Relu', ['x'], ['y']), N('Sin', ['x'], ['not_of_opset_6'])], (T.FLOAT, [3, 32, 16]), (T.FLOAT, [9, 32, 16]), [], 6)
claim('bytes', [N('QLinearAdd', ['x', 's', 'z', 'x', 's', 'z', 's', 'z'], ['y'], domain='com.microsoft')], (T.UINT8, [3, 32, 16]),
      (T.UINT8, [9, 32, 16]), [one('s', .5), one('z', 3, 'u1')], 17)
np.save('claim_f4.npy', np.ones((3, 32, 16), 'f4'))
np.save('claim_u1.npy', np.ones((3, 32, 16), 'u1'))"
for case in old:f4 bytes:u1; do
    rm -rf claimed
    expect 0 "$TOOL" run "${case%:*}.onnx" --input "x=claim_${case#*:}.npy" --output-dir claimed -q
    python "assert load('claimed/0.npy').shape == (3, 32, 16), load('claimed/0.npy').shape" || fail "the shape that ${case%:*}.onnx states was believed"
done

# ---- all files or none ----
rm -rf whole && mkdir -p whole/1.npy
expect 1 "$TOOL" run chain.onnx --output-dir whole; says '1.npy'
[ "$(ls -A whole)" = 1.npy ] || fail "something is left behind: $(ls -A whole)"
expect 4 "$TOOL" run chain.onnx --output-dir x.npy/deep; says 'x.npy/deep'

# ---- against ONNX Runtime ----
# (not of QDQ pairs: ONNX Runtime makes integer operators of them, which round otherwise)
mkdir nets
"$PYTHON" "$root/models/make_models.py" nets all --small >"$tmp/out" 2>&1 || fail "cannot make the networks: $(tail -n 1 "$tmp/out")"
rm -f nets/mobilenet_v2_qdq.onnx
timeout 600 "$PYTHON" "$root/tests/oracle/run_suite.py" --tool "$TOOL" --limit 120 nets/*.onnx >suite.txt || fail "$(grep -v ' pass ' suite.txt)"
grep -q '^[1-9][0-9]* passed, 0 failed, 0 skipped$' suite.txt || fail "$(grep -v ' pass ' suite.txt)"

# ---- tiled: loops and sequences of the rewriter ----
for form in scan unrolled loop-peeled loop-window loop prescan; do
    for net in mobilenet_v2 unet; do
        expect 0 "$TOOL" "nets/$net.onnx" -o tiled.onnx --force --form $form --target mcu-512k -q
        expect 0 "$TOOL" run "nets/$net.onnx" --output-dir plain -q
        expect 0 "$TOOL" run tiled.onnx --output-dir tiled -q
        python "a, b = load('plain/0.npy'), load('tiled/0.npy')
assert a.shape == b.shape and np.abs(a - b).max() <= 1e-5 * np.abs(a).max(), '$net $form'"
    done
done
finish
