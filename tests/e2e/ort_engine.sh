#!/usr/bin/env bash
# --emit ort-engine: the model in one operator, which the tool reads as the model inside. That it runs in ONNX Runtime is tested with the
# Python package (tests/python/test_ort.py), which has the library.
. "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
"$PYTHON" "$root/tests/oracle/while_eval.py" --make . residual || fail "cannot make the models"

expect 0 "$TOOL" residual.onnx -o engine.onnx -q --emit engine --force --target cpu-generic --l2 16K
expect 0 "$TOOL" residual.onnx -o one.onnx -q --emit ort-engine --force --target cpu-generic --l2 16K --verify
"$PYTHON" - <<'EOF' || fail "not the engine's form in one operator"
import onnx
one, whole = onnx.load('one.onnx'), onnx.load('residual.onnx')
onnx.checker.check_model(one)
n, = one.graph.node
assert (n.domain, n.op_type) == ('onnx_tile', 'Engine')
assert n.attribute[0].s == open('engine.onnx', 'rb').read()
assert list(n.input) == [v.name for v in whole.graph.input] and list(n.output) == [v.name for v in whole.graph.output]
assert not one.graph.initializer
EOF
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
"$PYTHON" - <<'EOF' || fail "cannot make the models"
import onnx
from onnx import TensorProto, helper
onnx.save(onnx.load('residual.onnx'), 'outside.onnx', save_as_external_data=True, size_threshold=0, location='outside.bin')
text = helper.make_tensor_value_info('x', TensorProto.STRING, [2])
y = helper.make_tensor_value_info('y', TensorProto.STRING, [2])
onnx.save(helper.make_model(helper.make_graph([helper.make_node('Identity', ['x'], ['y'])], 'g', [text], [y]),
                            opset_imports=[helper.make_opsetid('', 17)], ir_version=8), 'text.onnx')
EOF
expect 0 "$TOOL" outside.onnx -o one.onnx -q --emit ort-engine --target cpu-generic
[ ! -e one.onnx.data ] || fail "weights lie outside of the operator"
expect 0 "$TOOL" run one.onnx --output-dir outside -q
expect 0 "$TOOL" run residual.onnx --output-dir residual -q
cmp -s outside/0.npy residual/0.npy || fail "weights from a file: other numbers"
expect 1 "$TOOL" text.onnx -o one.onnx -q --emit ort-engine
says "'x' is no tensor of a type that the operator takes"
# what the engine does not have is said when it is written
"$PYTHON" - <<'EOF' || fail "cannot make the model"
import onnx
from onnx import TensorProto, helper
v = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in 'xy']
onnx.save(helper.make_model(helper.make_graph([helper.make_node('Bar', ['x'], ['y'], 'the_bar', domain='foo')], 'g', v[:1], v[1:]),
                            opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('foo', 1)], ir_version=8), 'bar.onnx')
EOF
rm -f bar_one.onnx
expect 1 "$TOOL" bar.onnx -o bar_one.onnx -q --emit ort-engine
says "the_bar"
says "the engine does not have this operator (domain 'foo'); --ort-operators parts leaves"
[ ! -e bar_one.onnx ] || fail "a model that nobody runs is written"

# parts of it: the others stay, and the file is read as one graph
"$PYTHON" - <<'EOF' || fail "cannot make the model"
import onnx
from onnx import helper
m = onnx.load('residual.onnx')
for k, old in enumerate(list(m.graph.output)):
    m.graph.value_info.append(old)
    m.graph.node.append(helper.make_node('Bar', [old.name], [f'bar{k}'], f'the_bar{k}', domain='foo'))
    new = onnx.ValueInfoProto()
    new.CopyFrom(old)
    new.name = f'bar{k}'
    old.CopyFrom(new)
m.opset_import.append(helper.make_opsetid('foo', 1))
onnx.save(m, 'barred.onnx')
EOF
for kind in parts regions; do
    expect 0 "$TOOL" barred.onnx -o $kind.onnx -q --emit ort-engine --ort-operators $kind --force --target cpu-generic --l2 16K
    expect 0 "$TOOL" inspect $kind.onnx --json
    sed "s/$kind.onnx//" out >$kind.json
done
expect 0 "$TOOL" barred.onnx -o form.onnx -q --emit engine --force --target cpu-generic --l2 16K
expect 0 "$TOOL" inspect form.onnx --json
sed "s/form.onnx//" out >form.json
"$PYTHON" - <<'EOF' || fail "not the parts that were asked for"
import onnx
barred = onnx.load('barred.onnx')
n_bars = sum(n.op_type == 'Bar' for n in barred.graph.node)
for kind in 'parts', 'regions':
    m = onnx.load(kind + '.onnx')
    onnx.checker.check_model(m)
    kinds = [n.op_type for n in m.graph.node]
    assert kinds.count('Bar') == n_bars and kinds.count('Engine') >= 1, kinds
    if kind == 'parts':
        assert set(kinds) == {'Bar', 'Engine'}, kinds
    assert all(v.type.tensor_type.elem_type for v in m.graph.value_info)
    assert [v.name for v in m.graph.output] == [v.name for v in barred.graph.output]
EOF
"$PYTHON" - <<'EOF' || fail "parts are not read as one graph"
import json
form = json.load(open('form.json'))
for kind in 'parts', 'regions':
    assert json.load(open(kind + '.json')) == form, kind
EOF
# nothing is tiled, so there are no regions to hold
expect 0 "$TOOL" barred.onnx -o none.onnx -q --emit ort-engine --ort-operators regions --target cpu-generic --l2 1G
cmp -s none.onnx barred.onnx || fail "regions where there are none: not the model as it was"
# a body of somebody else whose names are used twice is refused
"$PYTHON" - <<'EOF' || fail "cannot make the model"
import onnx
m = onnx.load('regions.onnx')
engine = next(n for n in m.graph.node if n.op_type == 'Engine')
inside = onnx.load_from_string(engine.attribute[0].s)
m.graph.node.append(onnx.helper.make_node('Identity', [m.graph.input[0].name], [inside.graph.node[0].output[0]]))  # within the body, too
onnx.save(m, 'twice.onnx')
EOF
expect 1 "$TOOL" inspect twice.onnx -q
says "its body does not fit into the graph: another value is called as its"
expect 2 "$TOOL" barred.onnx -o one.onnx --ort-operators parts
says "add --emit ort-engine"
expect 2 "$TOOL" barred.onnx -o one.onnx --emit ort-engine --ort-operators part
says "must be whole, parts or regions"
expect 2 "$TOOL" residual.onnx -o one.onnx --emit ort-engine --runtime openvino
says "contradict each other"
expect 2 "$TOOL" residual.onnx -o one.onnx --emit ort
says "must be onnx, engine or ort-engine"
finish
