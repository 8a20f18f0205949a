#!/usr/bin/env bash
# A Pad that ONNX Runtime merges into the pool behind it, with ceil_mode: tiles give as many rows as ONNX Runtime does.
. "$(dirname "$0")/lib.bash"

py "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
expect 0 "$TOOL" geometry "$tmp/lost.onnx" --json
grep -q 'Pool", "kind": "data-dependent", "why": "ONNX Runtime merges the Pad' "$tmp/out" || fail "crops lose the row, too: $(cat "$tmp/out")"
finish
