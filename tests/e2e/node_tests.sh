#!/usr/bin/env bash
# The engine's kernels against the node tests of the onnx package: some of each operator, both kinds of kernels.
. "$(dirname "$0")/lib.bash"
for kind in "" --fast; do
    "$PYTHON" "$root/tests/oracle/node_tests.py" --tool "$TOOL" --quick $kind >"$tmp/out" 2>&1 || fail "${kind:-reference}: $(grep -v ' 0 failed' "$tmp/out" | tail -n 40)"
done
finish
