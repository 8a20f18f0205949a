#!/usr/bin/env bash
# The engine's kernels, reference and fast, against the node tests of the onnx package: some of each operator.
# run: first
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/oracle/node_tests.py" --tool "$TOOL" --quick --fast >"$tmp/out" 2>&1 || fail "$(grep -v ' 0 failed' "$tmp/out" | tail -n 40)"
finish
