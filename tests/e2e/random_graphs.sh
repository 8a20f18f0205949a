#!/usr/bin/env bash
# Random graphs against ONNX Runtime (more: RANDOM_SEEDS=20000, other ones: OT_SEED=7), and every bug they ever found, by name.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/property/found.py" --tool "$TOOL" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
"$PYTHON" "$root/tests/property/random_graphs.py" --tool "$TOOL" --keep "$BUILD/random" --start "$((${OT_SEED:-1} * 1000000))" \
    --seeds "${RANDOM_SEEDS:-2500}" >"$tmp/out" 2>&1 || fail "$(tail -n 60 "$tmp/out")"
tail -n 1 "$tmp/out"
finish
