#!/usr/bin/env bash
# Weights that are packed when they are used (--runtime openvino, --goal memory): what is written computes the same in ONNX Runtime, in the
# reference evaluator of onnx, and in OpenVINO where it is installed, also where inputs are not numbers.
. "$(dirname "$0")/lib.bash"

for opset in 9 17; do
    py models "$tmp/m.onnx" $opset || fail "cannot make the model"
    expect 0 "$TOOL" "$tmp/m.onnx" -o "$tmp/t.onnx" --runtime openvino --goal memory --target cpu-generic --threads 1
    grep -q 'are packed when they are used' "$tmp/out" || fail "opset $opset: the results do not say so"
    py compare "$tmp/m.onnx" "$tmp/t.onnx" $opset >"$tmp/log" 2>&1 || fail "opset $opset: $(tail -n 2 "$tmp/log")"
    cp "$tmp/t.onnx" "$tmp/first.onnx"
    expect 0 "$TOOL" "$tmp/m.onnx" -o "$tmp/t.onnx" --runtime openvino --goal memory --target cpu-generic --threads 1 -q
    cmp -s "$tmp/t.onnx" "$tmp/first.onnx" || fail "opset $opset: another file the second time"
done
expect 0 "$TOOL" "$tmp/m.onnx" -o "$tmp/t.onnx" --runtime onnxruntime --goal memory --target cpu-generic
grep -q 'are packed when they are used' "$tmp/out" && fail "ONNX Runtime packs on loading"
finish
