#!/usr/bin/env bash
# geometry: the figures of networks that are known, what is named as standing in the way, bioimage.io's fields, sizes, failures; and
# random networks, run unchanged on crops of what it says: the same bits. Other seeds: OT_SEED=7; more: GEOMETRY_SEEDS=1000.
. "$(dirname "$0")/lib.bash"
py models "$tmp"

for model in unet valid upscale strided two; do
    expect 0 "$TOOL" geometry "$tmp/$model.onnx" --json
    py figures "$model" "$tmp/out" || fail "$model: $(cat "$tmp/out")"
done
while read -r model kind op; do
    expect 0 "$TOOL" geometry "$tmp/$model.onnx" --json
    py barrier "$kind" "$op" "$tmp/out" || fail "$model: not $op as $kind: $(cat "$tmp/out")"
    expect 0 "$TOOL" geometry "$tmp/$model.onnx"
    grep -q "in the way of axis [0-9]: node .* ($op), $kind: " "$tmp/out" || fail "$model, as text: $(cat "$tmp/out")"
done <<END
instance reduce InstanceNormalization
groups reduce InstanceNormalization
pooled reduce GlobalAveragePool
softmax reduce Softmax
attention attention MatMul
corners fixed-size Resize
thirds fixed-size Resize
flat fixed-size Reshape
joined fixed-size Concat
positions fixed-size Add
extent data-dependent Mul
where data-dependent NonZero
END

expect 0 "$TOOL" geometry "$tmp/baked.onnx" --shape x=1,3,64,96
grep -q 'fixed-size: its attribute output_shape is 130 x 194, whatever the extent' "$tmp/out" || fail "output_shape: $(cat "$tmp/out")"

# an extent that is asked for stands in place of one that the file fixes, and says of which others it holds
expect 0 "$TOOL" geometry "$tmp/unet.onnx" --shape x=1,3,301,252
grep -q 'axis 2 .* of extents that are 1 modulo 4' "$tmp/out" || fail "no residue: $(cat "$tmp/out")"
expect 0 "$TOOL" geometry "$tmp/free.onnx" --json
py open "$tmp/out" || fail "free dimensions: $(cat "$tmp/out")"
expect 0 "$TOOL" geometry "$tmp/unet.onnx" --bioimage
py bioimage "$tmp/out" || fail "bioimage: $(cat "$tmp/out")"
expect 0 "$TOOL" geometry "$tmp/unet.onnx" -q
[ ! -s "$tmp/out" ] || fail "-q prints"
"$TOOL" geometry - <"$tmp/unet.onnx" >"$tmp/out" 2>&1 && grep -q 'align 4' "$tmp/out" || fail "standard input: $(cat "$tmp/out")"

expect 2 "$TOOL" geometry
says "no model given"
expect 2 "$TOOL" geometry "$tmp/unet.onnx" "$tmp/valid.onnx"
says "one model at a time"
expect 2 "$TOOL" geometry "$tmp/unet.onnx" --json --bioimage
says "both want stdout"
expect 2 "$TOOL" geometry "$tmp/unet.onnx" -o "$tmp/none"
says "is not for 'geometry'"
expect 2 "$TOOL" inspect "$tmp/unet.onnx" --bioimage
says "is for 'onnx-tile geometry' only"
expect 2 "$TOOL" geometry "$tmp/unet.onnx" --shape y=1,3,64,64
says "no input of that name"
expect 2 "$TOOL" geometry "$tmp/flat.onnx" --shape x=1,3,64,64
says "node"
head -c 100 "$tmp/unet.onnx" >"$tmp/broken.onnx"
expect 1 "$TOOL" geometry "$tmp/broken.onnx"
expect 1 "$TOOL" geometry "$tmp/missing.onnx"
expect 4 bash -c '"$0" geometry "$1" --json >/dev/full' "$TOOL" "$tmp/unet.onnx"
[ ! -e "$tmp/none" ] || fail "a file was written"

start=$((${OT_SEED:-1} * 1000000)) seeds=${GEOMETRY_SEEDS:-150}
"$PYTHON" "$root/tests/property/geometry.py" --tool "$TOOL" --start "$start" --seeds "$seeds" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
tail -n 1 "$tmp/out"
"$PYTHON" "$root/tests/property/impulses.py" --tool "$TOOL" --start "$start" --seeds "$((seeds / 5))" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
tail -n 1 "$tmp/out"
finish
