#!/usr/bin/env bash
# The engine against ONNX Runtime on our own models: as they are, and tiled by force in the engine's form; one thread and two.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "built without the engine: nothing to test"
    exit 0
fi
names=(resnet50 mobilenet_v2 mobilenet_v2_int8 mobilenet_v2_qdq vgg16_head vgg16 vit sr unet dncnn elementwise depthwise seed_case)
make_model --small "${names[@]}"

# suite PASSES OPTIONS...: nothing fails, and at least so many models pass (others are skipped: ONNX Runtime has no such operator,
# or there is nothing to tile)
suite() {
    local least=$1 passed
    shift
    "$PYTHON" "$root/tests/oracle/run_suite.py" --tool "$TOOL" "$@" "$tmp"/*.onnx >"$tmp/out" 2>"$tmp/err" || fail "$*: $(grep -v ' pass ' "$tmp/out" "$tmp/err")"
    passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p' "$tmp/out")
    [ "${passed:-0}" -ge "$least" ] || fail "$*: only ${passed:-0} models were compared: $(grep -v ' pass ' "$tmp/out")"
}

for threads in 1 2; do
    suite ${#names[@]} --threads $threads
    suite 9 --threads $threads --emit-engine 64K
    suite 9 --threads $threads --emit-engine 16K
done
# without the quantised ones: sums in another order round to other codes now and then
suite 5 --reference --emit-engine 64K --only 'resnet50.*' --only 'unet.*' --only 'sr.*' --only 'vit.*' --only 'mobilenet_v2.*' --only 'depth*'

# float16: what ONNX Runtime computes with Casts around float32 operators, the engine computes piece by piece
halves=(resnet50 mobilenet_v2 vit sr unet dncnn depthwise)
for name in "${halves[@]}"; do
    "$PYTHON" "$root/tests/oracle/to_half.py" "$tmp/$name.onnx" "$tmp/half_$name.onnx" 2>"$tmp/err" || fail "to_half $name: $(tail -2 "$tmp/err")"
done
for threads in 1 2; do
    suite ${#halves[@]} --threads $threads --only 'half_*'
done
suite 4 --threads 2 --emit-engine 16K --only 'half_*'
finish
