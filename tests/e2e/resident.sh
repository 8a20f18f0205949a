#!/usr/bin/env bash
# run: the process never holds more than the model file, the planned arena, its inputs and outputs, and 50 MB. A model with 65 MB of
# weights in convolutions and products, which kernels keep packed, must not be there twice.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi

py models "$tmp" || { echo "FAIL: cannot make the models"; exit 1; }
expect 0 "$PYTHON" "$root/tests/e2e/resident_peak.py" "$TOOL" "$tmp/whole.onnx" ""
expect 0 "$PYTHON" "$root/tests/e2e/resident_peak.py" "$TOOL" "$tmp/outside.onnx" "$tmp/outside.bin"
expect 0 "$TOOL" "$tmp/whole.onnx" -o "$tmp/tiled.onnx" -q --emit engine --goal memory --force
expect 0 "$PYTHON" "$root/tests/e2e/resident_peak.py" "$TOOL" "$tmp/tiled.onnx" ""

# what was given back is not missed: the same outputs as the reference, in every run
for m in whole outside tiled; do
    expect 0 "$TOOL" run "$tmp/$m.onnx" -q --threads 2 --repeat 2 --output-dir "$tmp/$m"
done
expect 0 "$TOOL" run "$tmp/whole.onnx" -q --threads 2 --reference --output-dir "$tmp/reference"
expect 0 py compare "$tmp/reference" "$tmp/whole" "$tmp/outside" "$tmp/tiled"
finish
