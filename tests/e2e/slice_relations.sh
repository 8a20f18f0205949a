#!/usr/bin/env bash
# Every operator's slice relation against ONNX Runtime, a few random instances each (more: access_ops.py -n 200 --seed 7).
# run: first
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/oracle/access_ops.py" --tool "$BUILD/tests/tile_one" -n "${ACCESS_CASES:-25}" \
    --seed "${OT_SEED:-1}" >"$tmp/out" 2>&1 || fail "$(grep -v '^ok' "$tmp/out" | head -n 40)"
finish
