#!/usr/bin/env bash
# --emit ort-engine: the model in one operator, which the tool reads as the model inside. That it runs in ONNX Runtime is tested with the
# Python package (tests/python/test_ort.py), which has the library.
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
"$PYTHON" "$root/tests/oracle/while_eval.py" --make . residual || fail "cannot make the models"

expect 0 "$TOOL" residual.onnx -o engine.onnx -q --emit engine --force --target cpu-generic --l2 16K
expect 0 "$TOOL" residual.onnx -o one.onnx -q --emit ort-engine --force --target cpu-generic --l2 16K --verify
py one || fail "not the engine's form in one operator"
# read as what is inside: by run, by inspect, and written again
for k in engine one; do
    expect 0 "$TOOL" run $k.onnx --output-dir $k -q
    expect 0 "$TOOL" inspect $k.onnx --json
    sed "s/$k.onnx//" out >$k.json
done
cmp -s engine/0.npy one/0.npy || fail "run: other numbers"
cmp -s engine.json one.json || fail "inspect: other figures"
expect 0 "$TOOL" one.onnx -o back.onnx -q --emit engine
cmp -s back.onnx engine.onnx || fail "what is inside is not written back as it was"

# weights in a file of their own come inside; what is no tensor of numbers cannot be handed over
py strange || fail "cannot make the models"
expect 0 "$TOOL" outside.onnx -o one.onnx -q --emit ort-engine --target cpu-generic
[ ! -e one.onnx.data ] || fail "weights lie outside of the operator"
expect 0 "$TOOL" run one.onnx --output-dir outside -q
expect 0 "$TOOL" run residual.onnx --output-dir residual -q
cmp -s outside/0.npy residual/0.npy || fail "weights from a file: other numbers"
expect 1 "$TOOL" text.onnx -o one.onnx -q --emit ort-engine
says "'x' is no tensor of a type that the operator takes"
# what the engine does not have is said when it is written
py unknown || fail "cannot make the model"
rm -f bar_one.onnx
expect 1 "$TOOL" bar.onnx -o bar_one.onnx -q --emit ort-engine
says "the_bar"
says "the engine does not have this operator (domain 'foo'); --ort-operators parts leaves"
[ ! -e bar_one.onnx ] || fail "a model that nobody runs is written"

# parts of it: the others stay, and the file is read as one graph
py barred || fail "cannot make the model"
for kind in parts regions; do
    expect 0 "$TOOL" barred.onnx -o $kind.onnx -q --emit ort-engine --ort-operators $kind --force --target cpu-generic --l2 16K
    expect 0 "$TOOL" inspect $kind.onnx --json
    sed "s/$kind.onnx//" out >$kind.json
done
expect 0 "$TOOL" barred.onnx -o form.onnx -q --emit engine --force --target cpu-generic --l2 16K
expect 0 "$TOOL" inspect form.onnx --json
sed "s/form.onnx//" out >form.json
py parts || fail "not the parts that were asked for"
py as_one || fail "parts are not read as one graph"
# nothing is tiled, so there are no regions to hold
expect 0 "$TOOL" barred.onnx -o none.onnx -q --emit ort-engine --ort-operators regions --target cpu-generic --l2 1G
cmp -s none.onnx barred.onnx || fail "regions where there are none: not the model as it was"
# a body of somebody else whose names are used twice is refused
py twice || fail "cannot make the model"
expect 1 "$TOOL" inspect twice.onnx -q
says "its body does not fit into the graph: another value is called as its"
# whether the engine runs a model is found without the memory that running takes
py large || fail "cannot make the model"
limited() { (ulimit -v 4000000 && "$@"); }
expect 0 limited "$TOOL" large.onnx -o held.onnx -q --emit ort-engine
TOOL=$TOOL py copies >"$tmp/out" 2>&1 || fail "weights are held more often than twice: $(tail -n 1 "$tmp/out")"
expect 2 "$TOOL" barred.onnx -o one.onnx --ort-operators parts
says "add --emit ort-engine"
expect 2 "$TOOL" barred.onnx -o one.onnx --emit ort-engine --ort-operators part
says "must be whole, parts or regions"
expect 2 "$TOOL" residual.onnx -o one.onnx --emit ort-engine --runtime openvino
says "contradict each other"
expect 2 "$TOOL" residual.onnx -o one.onnx --emit ort
says "must be onnx, engine, ort-engine or step"
finish
