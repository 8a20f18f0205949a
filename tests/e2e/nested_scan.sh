#!/usr/bin/env bash
# Results of the graph that tiles of several axes write where they belong, by Scans in Scans: equal in ONNX Runtime and in the engine, and
# nothing as large as the result is held beside it.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(head -n 20 "$tmp/out")"
finish
