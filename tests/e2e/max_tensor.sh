#!/usr/bin/env bash
# --max-tensor: what is written keeps it, by another's shape inference, and computes the same; what cannot be cut is named.
. "$(dirname "$0")/lib.bash"
make_model dncnn fsrcnn vgg16_head --small
mkdir "$tmp/large" && "$PYTHON" "$root/models/make_models.py" "$tmp/large" unet --size 192 --width 4 --depth 2 || fail "no model"
"$PYTHON" "$root/models/make_models.py" "$tmp/large" espcn --size 96 --width 32 || fail "no model"
for args in "" "--goal memory" "--force" "--runtime portable" "--runtime openvino"; do
    "$PYTHON" "$root/tests/oracle/max_tensor.py" --tool "$TOOL" "--args=$args" --limits 0.6,0.25 "$tmp"/*.onnx "$tmp"/large/*.onnx >"$tmp/out" 2>&1 ||
        fail "$args: $(grep FAIL "$tmp/out")"
    [ "$(grep -c held: "$tmp/out")" -ge 5 ] || fail "$args: hardly any limit was kept: $(cat "$tmp/out")"
done
tail -n 1 "$tmp/out"

m=$tmp/dncnn.onnx
expect 0 "$TOOL" "$m" -o "$tmp/a.onnx" --max-tensor 100K --report "$tmp/a.xml" --json
grep -q '"largest_tensor_bytes"' "$tmp/out" || fail "no largest_tensor_bytes"
grep -q 'id="largest-tensor"' "$tmp/a.xml" || fail "no card"
expect 0 "$TOOL" "$m" -o "$tmp/a.onnx" --max-tensor 100K
grep -q 'largest tensor' "$tmp/out" || fail "the table does not tell the largest tensor"
expect 3 "$TOOL" "$m" -o "$tmp/no.onnx" --max-tensor 1
says "max tensor cannot be kept: "
[ ! -e "$tmp/no.onnx" ] || fail "a model was written"
expect 2 "$TOOL" "$m" -o "$tmp/no.onnx" --max-tensor 0
says '--max-tensor'
py models "$tmp" || fail "no models"
expect 3 "$TOOL" "$tmp/softmax.onnx" -o "$tmp/no.onnx" --max-tensor 200K
says 'needs_all'
# a normalisation is decomposed, and what it reads is made again, where no tiles of the model as it is keep the limit
for args in "" "--goal memory" "--goal memory --max-slowdown 0"; do
    "$PYTHON" "$root/tests/oracle/max_tensor.py" --tool "$TOOL" "--args=$args" --limits 0.4 "$tmp/norm.onnx" >"$tmp/out" 2>&1 || fail "$args: $(cat "$tmp/out")"
    grep -q held: "$tmp/out" || fail "$args: no tiles of a normalisation: $(cat "$tmp/out")"
done
# a map that is pooled and multiplied by what becomes of that: it is made again, or the pool is in the way, not what follows it
"$PYTHON" "$root/tests/oracle/max_tensor.py" --tool "$TOOL" --limits 0.25 "$tmp/pooled.onnx" >"$tmp/out" 2>&1 || fail "pooled: $(cat "$tmp/out")"
grep -q held: "$tmp/out" || fail "no tiles of what is pooled: $(cat "$tmp/out")"
expect 3 "$TOOL" "$tmp/gated.onnx" -o "$tmp/no.onnx" --max-tensor 4M
says "node 'pool' (GlobalAveragePool): global pooling reads the whole map"
expect 3 "$TOOL" "$tmp/relu.onnx" -o "$tmp/no.onnx" --max-tensor 200K
says "input 'x' is not known"
expect 0 "$TOOL" "$tmp/relu.onnx" -o "$tmp/yes.onnx" --max-tensor 200K --shape x=1,4,64,64
expect 0 "$TOOL" inspect "$tmp/relu.onnx" --max-tensor 200K --shape x=1,4,64,64
expect 3 "$TOOL" inspect "$tmp/relu.onnx" --max-tensor 200K --memory-budget 1K --shape x=1,4,64,64
if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then finish; fi
expect 0 "$TOOL" "$tmp/dncnn.onnx" -o "$tmp/e.onnx" --max-tensor 100K --emit engine --verify
finish
