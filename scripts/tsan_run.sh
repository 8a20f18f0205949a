#!/usr/bin/env bash
# Run a ThreadSanitizer build of the tool: small models as they are and tiled, on two threads and on three. A race makes it exit with 66.
set -u
cd "$(dirname "$0")/.."
tool=${TOOL:?}
py=${PYTHON:?}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
run() {
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null && ! grep -q 'ThreadSanitizer' "$tmp/err" && return
    echo "FAIL: $*"
    head -n 40 "$tmp/err"
    bad=$((bad + 1))
}
"$py" models/make_models.py "$tmp" --small resnet50 mobilenet_v2 mobilenet_v2_qdq vit sr unet dncnn depthwise || exit 1
for m in "$tmp"/*.onnx; do
    run "$tool" "$m" -o "$tmp/tiled" -q --emit engine --force --target cpu-generic --l2 64K
    for threads in 2 3; do
        run "$tool" run "$m" --threads $threads --repeat 2
        run "$tool" run "$tmp/tiled" --threads $threads --repeat 2
    done
done
[ $bad = 0 ] && echo "no races"
[ $bad = 0 ]
