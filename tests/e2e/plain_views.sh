#!/usr/bin/env bash
# Views of blocked values that regions read: a U-Net's skip connections become Reshapes, outputs stay equal, and what the process takes does
# not depend on the session.
. "$(dirname "$0")/lib.bash"

"$PYTHON" "$root/models/make_models.py" "$tmp" unet --size 512 >/dev/null || fail "make_models.py"
py "$TOOL" "$tmp/unet.onnx" "$tmp/tiled.onnx" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
