#!/usr/bin/env bash
# What graph viewers show of a tiled model: metadata_props of its regions' nodes say what the report says, other nodes keep theirs,
# and checkers and runtimes take the model as before.
. "$(dirname "$0")/lib.bash"
make_model --small resnet50 unet vgg16_head vit

py own "$tmp/resnet50.onnx"
for m in resnet50 unet vgg16_head vit; do
    for emit in onnx engine; do
        expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/tiled.onnx" --target cpu-generic --l2 64K --force --emit $emit -q --report "$tmp/r.json"
        py check "$tmp/$m.onnx" "$tmp/tiled.onnx" "$tmp/r.json" $emit 2>"$tmp/why" || fail "$m, $emit: $(tail -n 1 "$tmp/why")"
    done
done
finish
