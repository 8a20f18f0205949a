#!/usr/bin/env bash
# The figures of docs/seed-case.md for a block of 1 MiB a sample: 16 loops of 2 samples, 6.8 MiB, 176 calls of kernels or 16.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/models/make_models.py" "$tmp" seed_case --size 32 >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
"$TOOL" "$tmp/seed_case.onnx" -o "$tmp/tiled.onnx" --target tlf-16m --l2 12M --json >"$tmp/plan.json" || fail "cannot tile it"
py "$tmp" "$root/docs/seed-case.md" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
