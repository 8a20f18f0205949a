#!/usr/bin/env bash
# Shape inference against ONNX Runtime: random single-operator models must get the shape it computes, and extreme numbers
# must never crash the tool (more: shapes.py ... sweep --n 400 --seed 7).
. "$(dirname "$0")/lib.bash"
for what in sweep hostile; do
    "$PYTHON" "$root/tests/oracle/shapes.py" --tool "$BUILD/tests/dump_shapes" $what --n "${SHAPE_CASES:-25}" \
        --seed "${OT_SEED:-1}" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
done
finish
