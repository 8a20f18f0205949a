#!/usr/bin/env bash
# What the engine merges is what the planner believes: on our own models, on the graphs of the golden tests, and on the third-party models
# where they are there.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "built without the engine: nothing to test"
    exit 0
fi
names=(resnet50 mobilenet_v2 mobilenet_v2_int8 mobilenet_v2_qdq vgg16 vit sr unet dncnn elementwise depthwise seed_case)
make_model --small "${names[@]}"
shopt -s nullglob
shared=("$root"/../shared/{models,real}/*.onnx)
"$BUILD/tests/compare_fusion" "$tmp"/*.onnx "$root"/tests/golden/{ir,shapes,rewrite}/*.ot "${shared[@]}" >"$tmp/groups" 2>&1 || fail "groups differ: $(grep -v ' 0 differ' "$tmp/groups" | head -20)"
alike=$(grep -c ' 0 differ' "$tmp/groups")
[ "$alike" -ge ${#names[@]} ] || fail "only $alike models were compared: $(grep skipped "$tmp/groups" | head -5)"
finish
