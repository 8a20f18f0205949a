#!/usr/bin/env bash
# Decoders of latent diffusion models in small, --goal memory: normalisations taken apart, what the process is predicted to grow by, and that
# the tiled ones give what the untiled ones do. (Values that stay in pieces: unjoined_tiles.sh.)
. "$(dirname "$0")/lib.bash"

cat >"$tmp/decoder.py" <<'EOF_PY'
import json
import sys

import numpy as np
import onnx
import onnxruntime as ort

path, tiled, results, most = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3])), float(sys.argv[4])


def run(p, x):
    so = ort.SessionOptions()
    so.intra_op_num_threads, so.log_severity_level = 1, 3
    return ort.InferenceSession(p, so).run(None, {'z': x})[0]


before, after = (results[k]['growth_bytes'] for k in ('untiled', 'tiled'))
print(f"{before} -> {after}: x{after / before:.3f}")
if not 0 < after <= most * before: sys.exit(f'the process grows by more than x{most}')
x = np.random.default_rng(1).standard_normal([d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]).astype('f4')
want, got = run(path, x), run(tiled, x)
if got.shape != want.shape or np.abs(got - want).max() > 1e-5 * np.ptp(want): sys.exit(f'off by {np.abs(got - want).max()} of {np.ptp(want)}')
EOF_PY

# check MOST ARGUMENTS...: the decoder made with the arguments
check() {
    local most=$1
    shift
    make_model decoder "$@"
    expect 0 "$TOOL" "$tmp/decoder.onnx" -o "$tmp/tiled.onnx" --goal memory --threads 1 --target cpu-generic --json
    cp "$tmp/out" "$tmp/results.json"
    "$PYTHON" "$tmp/decoder.py" "$tmp/decoder.onnx" "$tmp/tiled.onnx" "$tmp/results.json" "$most" >"$tmp/out" 2>&1 || fail "decoder $*: $(cat "$tmp/out")"
}
check 0.39 --size 160
check 0.31 --size 256 --width 64
finish
