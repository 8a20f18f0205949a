#!/usr/bin/env bash
# run --reference: the node tests of the ONNX standard, up to six of each operator.
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi
"$PYTHON" "$root/tests/oracle/node_tests.py" --tool "$TOOL" --quick >"$tmp/out" 2>&1 || fail "$(grep -E '^fail|Error' "$tmp/out" | head -n 20)"
tail -n 1 "$tmp/out"
finish
