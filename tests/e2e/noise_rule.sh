#!/usr/bin/env bash
# The rule of own noise: the library's (src/measure/measure_noise.c) and Python's (python/onnx_tile/_compare.py) say the same of the same arrays.
. "$(dirname "$0")/lib.bash"
[ -x "$BUILD/tests/noise_rule" ] || { echo "skipped: no engine"; exit 0; }
mkdir "$tmp/n"
py "$BUILD/tests/noise_rule" "$root/python/onnx_tile/_compare.py" "$tmp/n" >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"
finish
