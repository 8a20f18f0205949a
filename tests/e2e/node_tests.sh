#!/usr/bin/env bash
# The onnx package: its node tests, some of each operator, by the kernels, reference and fast; its schemas against ops.def.
# run: first
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/oracle/node_tests.py" --tool "$TOOL" --quick --fast >"$tmp/out" 2>&1 || fail "$(grep -v ' 0 failed' "$tmp/out" | tail -n 40)"
"$PYTHON" "$root/tests/oracle/ops_table.py" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
finish
