#!/usr/bin/env bash
# Run a ThreadSanitizer build of the tool: small models as they are and tiled, on two threads and on three, one over arrays that stay in files. A race
# makes it exit with 66.
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
PYTHONPATH=tests/models "$py" - "$tmp" <<'P' || exit 1
import sys

import numpy as np
from builder import conv_chain, save

save(conv_chain([4, 4], 2, (1, 512, 320), k=5, pads=2, act='Sin'), sys.argv[1] + '/rows.onnx')
np.save(sys.argv[1] + '/x.npy', np.random.default_rng(0).standard_normal((1, 2, 512, 320)).astype('f4'))
P
run "$tool" "$tmp/rows.onnx" -o "$tmp/tiled" -q --emit engine --force --target cpu-generic --l2 64K
for threads in 2 3; do
    run "$tool" run "$tmp/tiled" --threads $threads --repeat 2 --input "x=$tmp/x.npy" --output "y=$tmp/$threads.npy"
done
cmp -s "$tmp/2.npy" "$tmp/3.npy" || { echo "FAIL: two threads and three differ"; bad=$((bad + 1)); }
[ $bad = 0 ] && echo "no races"
[ $bad = 0 ]
