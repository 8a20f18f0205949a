#!/usr/bin/env bash
# Weights that are packed when they are used (--runtime openvino, --goal memory): what is written computes the same in ONNX Runtime, in the
# reference evaluator of onnx, and in OpenVINO where it is installed, also where inputs are not numbers.
. "$(dirname "$0")/lib.bash"

cat >"$tmp/make.py" <<'EOF_PY'
import sys

import numpy as np
import onnx
from onnx import TensorProto as TP, helper as H, numpy_helper as NH

rng, nodes, init, x = np.random.default_rng(3), [], [], 'x'
for k, (c_in, c_out) in enumerate(((16, 192), *[(192, 192)] * 6, (192, 8))):
    init.append(NH.from_array((rng.standard_normal((c_out, c_in, 3, 3)) / np.sqrt(9 * c_in)).astype('f4'), f'w{k}'))
    nodes.append(H.make_node('Conv', [x, f'w{k}'], [f'c{k}'], pads=[1] * 4))
    for name, low in (('scale', 0.5), ('shift', -1), ('mean', -1), ('var', 0.5)):
        init.append(NH.from_array((low + rng.random(c_out)).astype('f4'), f'{name}{k}'))
    nodes.append(H.make_node('BatchNormalization', [f'c{k}', *(f'{n}{k}' for n in ('scale', 'shift', 'mean', 'var'))], [f'n{k}']))
    nodes.append(H.make_node('Relu', [f'n{k}'], [f'r{k}']))
    x = f'r{k}'
opset = int(sys.argv[2])
if opset == 9:  # not for the reference evaluator: it is slow at that, and takes old normalisations for trained ones
    nodes.append(H.make_node('ConvTranspose', [x, 'wt'], ['t'], strides=[2, 2]))
    init.append(NH.from_array(rng.standard_normal((8, 32, 16, 16)).astype('f4'), 'wt'))
    x = 't'
shape = [1, 16, 24, 24]
g = H.make_graph(nodes, 'g', [H.make_tensor_value_info('x', TP.FLOAT, shape)], [H.make_tensor_value_info(x, TP.FLOAT, None)], init)
onnx.save(onnx.shape_inference.infer_shapes(H.make_model(g, opset_imports=[H.make_opsetid('', opset)], ir_version=8)), sys.argv[1])
EOF_PY

cat >"$tmp/compare.py" <<'EOF_PY'
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

src, dst, opset = sys.argv[1:4]
m = onnx.load(dst)
onnx.checker.check_model(m, full_check=True)
made = {o: n for n in m.graph.node for o in n.output}
convs = [n for n in m.graph.node if n.op_type in ('Conv', 'ConvTranspose')]
late = [n for n in convs if n.input[1] in made and made[n.input[1]].op_type == 'Gather']
if len(late) < 4: sys.exit(f'{len(late)} late weights')
if any(n.op_type == 'BatchNormalization' for n in m.graph.node): sys.exit('a normalisation is left')
names = {t.name for t in m.graph.initializer}
if unread := names - {i for n in m.graph.node for i in n.input}: sys.exit(f'nobody reads {unread}')
order = {n.output[0]: k for k, n in enumerate(m.graph.node)}
for n in late:  # each stands right before what reads it
    first = min(order[k.output[0]] for k in late if k.input[1] == n.input[1])
    if order[n.input[1]] != first - 1: sys.exit(f'{n.output[0]}: its weights are made too early')


def ort_run(path, x):
    o = ort.SessionOptions()
    o.log_severity_level = 3
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider']).run(None, {'x': x})[0]


def openvino_run(path, x):
    import openvino as ov
    return ov.Core().compile_model(path, 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})([x])[0]


def same(name, run, x):
    a, b = run(src, x), run(dst, x)
    if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True): sys.exit(f'{name}: outputs differ')


runs = {'onnxruntime': ort_run}
try:
    import openvino  # noqa: F401
    runs['openvino'] = openvino_run
except ImportError:
    pass
x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype('f4')
not_a_number = x.copy()
not_a_number.flat[0] = np.nan  # the number that the zero is computed from
for name, run in runs.items():
    same(name, run, x)
    same(name, run, not_a_number)
if opset != '9':
    same('reference', lambda path, x: ReferenceEvaluator(path).run(None, {'x': x})[0], x)
EOF_PY

for opset in 9 17; do
    "$PYTHON" "$tmp/make.py" "$tmp/m.onnx" $opset || fail "make.py"
    expect 0 "$TOOL" "$tmp/m.onnx" -o "$tmp/t.onnx" --runtime openvino --goal memory --target cpu-generic --threads 1
    grep -q 'are packed when they are used' "$tmp/out" || fail "opset $opset: the results do not say so"
    "$PYTHON" "$tmp/compare.py" "$tmp/m.onnx" "$tmp/t.onnx" $opset >"$tmp/log" 2>&1 || fail "opset $opset: $(tail -n 2 "$tmp/log")"
    cp "$tmp/t.onnx" "$tmp/first.onnx"
    expect 0 "$TOOL" "$tmp/m.onnx" -o "$tmp/t.onnx" --runtime openvino --goal memory --target cpu-generic --threads 1 -q
    cmp -s "$tmp/t.onnx" "$tmp/first.onnx" || fail "opset $opset: another file the second time"
done
expect 0 "$TOOL" "$tmp/m.onnx" -o "$tmp/t.onnx" --runtime onnxruntime --goal memory --target cpu-generic
grep -q 'are packed when they are used' "$tmp/out" && fail "ONNX Runtime packs on loading"
finish
