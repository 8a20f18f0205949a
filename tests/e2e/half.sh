#!/usr/bin/env bash
# Networks in half precision for ONNX Runtime, which computes them in float32: tiled, they are written so (src/transform/widen.c). They give what
# the same network with the same weights gives in float32, and keep the types of inputs and outputs.
. "$(dirname "$0")/lib.bash"

# half IN OUT FLOAT: weights and everything between inputs and outputs in half precision; FLOAT: the same weights in float32

# check GOAL MODEL ARGUMENTS...
check() {
    local goal=$1 model=$2
    shift 2
    make_model "$model" "$@"
    py make_half "$tmp/$model.onnx" "$tmp/half.onnx" "$tmp/wide.onnx"
    expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal "$goal" --target cpu-generic
    expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal "$goal" --target cpu-generic --verify=all
    py same "$tmp/half.onnx" "$tmp/wide.onnx" "$tmp/tiled.onnx" >"$tmp/out" 2>&1 || fail "$model $*: $(cat "$tmp/out")"
}
check memory unet --size 256 --width 8
check memory resnet50 --size 256
check memory decoder --size 128
check memory espcn --size 270

# Dynamic dimensions stay dynamic, and casts that an exporter wrote around what it kept in float32 are gone.
py make_half "$tmp/unet.onnx" "$tmp/half.onnx" "$tmp/wide.onnx"
py free "$tmp/half.onnx" "$tmp/wide.onnx"
expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal memory --target cpu-generic --threads 1 --design x=1,3,512,512 --json
grep -q '"dynamic_dims": *true' "$tmp/out" || fail "free: $(head -c 400 "$tmp/out")"
grep -q '"loop-peeled"\|"stream"' "$tmp/out" || fail "free: nothing is tiled"
for size in 512 96; do
    py same "$tmp/half.onnx" "$tmp/wide.onnx" "$tmp/tiled.onnx" $size >"$tmp/out" 2>&1 || fail "free, $size: $(cat "$tmp/out")"
done
py lacks "$tmp/tiled.onnx" kept/in || fail "free: casts with nothing to do are left"

# What was asked to the bit, or in live bytes, stays as the file has it.
for option in --bit-exact --force "--memory-budget 128M"; do
    # shellcheck disable=SC2086
    expect 0 "$TOOL" "$tmp/half.onnx" -o "$tmp/tiled.onnx" --goal memory --target cpu-generic $option
    py lacks "$tmp/tiled.onnx" tile/wide || fail "$option: weights became float32"
done
finish
