#!/usr/bin/env bash
# Shape inference against ONNX Runtime and onnx: random attributes of every operator, and operands that make no sense.
. "$(dirname "$0")/lib.bash"
for what in sweep hostile; do
    "$PYTHON" "$root/tests/oracle/shapes.py" --tool "$BUILD/tests/dump_shapes" $what --n "${SHAPE_CASES:-60}" \
        --seed "${OT_SEED:-1}" >"$tmp/out" 2>&1 || fail "$what: $(tail -n 40 "$tmp/out")"
done
make_model --small all
"$PYTHON" "$root/tests/oracle/shapes.py" --tool "$BUILD/tests/dump_shapes" files "$tmp"/*.onnx >"$tmp/out" 2>&1 || fail "$(tail -n 40 "$tmp/out")"
finish
