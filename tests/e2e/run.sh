#!/usr/bin/env bash
# run: the same outputs as ONNX Runtime; arrays in and out; one line for every wrong input.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi

py models "$tmp" || fail "cannot make the models"
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
py random_arrays || fail "random arrays"
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
py figures "$tmp/out" || fail "figures: $(cat "$tmp/out")"
expect 0 "$TOOL" run chain.onnx --input x=x.npy
grep -q '^output 0 y: float32 \[2,3\]$' "$tmp/out" || fail "the table lacks an output: $(cat "$tmp/out")"

# ---- what ran when ----
expect 0 "$TOOL" run chain.onnx --input x=x.npy --threads 2 --output-dir traced --trace t.json --json
py traced "$tmp/out" t.json || fail "the trace"
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
expect 1 "$TOOL" run sparse.onnx; says "node 'thin' (Relu): initializer 'few' is sparse, which the engine does not take"
expect 1 "$TOOL" run words.onnx; says "input 'x' is string"
expect 1 "$TOOL" run rankless.onnx; says "input 'x' has no known rank"
expect 1 "$TOOL" run none.onnx; says "cannot open 'none.onnx'"
expect 0 "$TOOL" run rankless.onnx --shape x=2 -q

# ---- shapes that the file states and nobody infers: of old opsets, of other domains. What runs goes by the operands ----
py claims || fail "cannot make the models"
for case in old:f4 bytes:u1; do
    rm -rf claimed
    expect 0 "$TOOL" run "${case%:*}.onnx" --input "x=claim_${case#*:}.npy" --output-dir claimed -q
    python "assert load('claimed/0.npy').shape == (3, 32, 16), load('claimed/0.npy').shape" || fail "the shape that ${case%:*}.onnx states was believed"
done

# ---- all files or none ----
rm -rf whole && mkdir -p whole/1.npy
expect 4 "$TOOL" run chain.onnx --output-dir whole; says '1.npy'
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
for form in scan unrolled loop-peeled loop prescan; do
    for net in mobilenet_v2 unet; do
        expect 0 "$TOOL" "nets/$net.onnx" -o tiled.onnx --force --form $form --target mcu-512k -q
        expect 0 "$TOOL" run "nets/$net.onnx" --output-dir plain -q
        expect 0 "$TOOL" run tiled.onnx --as-is --output-dir tiled -q
        python "a, b = load('plain/0.npy'), load('tiled/0.npy')
assert a.shape == b.shape and np.abs(a - b).max() <= 1e-5 * np.abs(a).max(), '$net $form'"
    done
done
# the text form has no contents of large tensors: that is said, and not something else of the operator
"$PYTHON" -c "
from builder import conv_chain, save
save(conv_chain([64, 64]), '$tmp/large.onnx')"
expect 0 "$TOOL" "$tmp/large.onnx" -o "$tmp/large.ot" -q
expect 1 "$TOOL" run "$tmp/large.ot"
says "are not held: the text form of a model has those of small tensors only"
finish
