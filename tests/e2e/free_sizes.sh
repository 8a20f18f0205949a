#!/usr/bin/env bash
# Models with free dimensions, and not a word of sizes: every command takes one that the model takes, the same for all of them.
. "$(dirname "$0")/lib.bash"
py models "$tmp" || fail "cannot make the models"
cd "$tmp" || exit 1
engine() { ! "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; }
while read -r m size; do
    expect 0 "$TOOL" "$m.onnx" -o "$m-tiled.onnx" --goal memory
    grep -qF "no size is given: planned for ${size%%:*}" "$tmp/out" || fail "$m: planned for $(cat "$tmp/out")"
    expect 0 "$TOOL" explain "$m.onnx"
    expect 0 "$TOOL" gate "$m.onnx" --max-peak 1G
    expect 0 "$TOOL" "$m.onnx" -o "$m-engine.onnx" --emit engine -q
    engine || continue
    expect 0 "$TOOL" "$m.onnx" -o "$m-verified.onnx" --verify
    grep -q '^verified' "$tmp/out" || fail "$m: $(cat "$tmp/out")"
    for file in "$m" "$m-tiled" "$m-engine"; do
        expect 0 "$TOOL" run "$file.onnx"
        grep -qF "size     ${size##*:}: none is given" "$tmp/out" || fail "$file: $(cat "$tmp/out")"
    done
    expect 0 "$TOOL" bench "$m.onnx" --repeat 1
    expect 0 "$TOOL" bench "$m.onnx" "$m-tiled.onnx" --repeat 1
    grep -qF "size     ${size##*:}: none is given" "$tmp/out" || fail "bench $m: $(cat "$tmp/out")"
done <<'SIZES'
tokens x=1,4096,32:x [1,4096,32]
ids ids=1,1024:ids [1,1024]
line x=1,1,4096:x [1,1,4096]
only64 x=1,3,64,64:x [1,3,64,64]
volume x=1,1,128,128,128:x [1,1,128,128,128]
pair left=1,3,1024,1024:left [1,3,1024,1024], right [1,3,1024,1024]
bytes x=1,1024,1024,3:x [1,1024,1024,3]
SIZES
finish
