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
says "the engine does not have this operator"
[ ! -e bar_one.onnx ] || fail "a model that nobody runs is written"
expect 2 "$TOOL" residual.onnx -o one.onnx --emit ort-engine --runtime openvino
says "contradict each other"
expect 2 "$TOOL" residual.onnx -o one.onnx --emit ort
says "must be onnx, engine or ort-engine"
finish
