#!/usr/bin/env bash
# Random graphs against ONNX Runtime and through the engine, and every bug they ever found, by name. The same seeds each time; others:
# OT_SEED=7; more: RANDOM_SEEDS=20000, or `make soak`.
# run: first
. "$(dirname "$0")/lib.bash"
engine=--engine
"$TOOL" --help | grep -q 'run MODEL.*needs the native engine' && engine=
start=$((${OT_SEED:-1} * 1000000)) seeds=${RANDOM_SEEDS:-72}
echo "seeds $start to $((start + seeds - 1))"
"$PYTHON" "$root/tests/property/found.py" --tool "$TOOL" >"$tmp/out" 2>&1 || fail "$(head -n 40 "$tmp/out")"
"$PYTHON" "$root/tests/property/random_graphs.py" --tool "$TOOL" $engine --keep "$BUILD/random" --start "$start" --seeds "$seeds" \
    >"$tmp/out" 2>&1 || fail "$(tail -n 60 "$tmp/out")"
tail -n 1 "$tmp/out"
finish
