#!/usr/bin/env bash
# Every operator with a slice relation, tiled once: ONNX Runtime loads it and computes the same. scripts/sweep.py tries all types and ways.
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
"$PYTHON" "$root/scripts/sweep.py" --tool "$TOOL" --once >"$tmp/out" 2>&1 || fail "$(grep -v '^Warning: Model contains' "$tmp/out")"
# an operator that nobody tries is found
sed "s/'QLinearAdd': of_bytes('QLinearAdd', 2), //" "$root/scripts/sweep_others.py" >"$tmp/sweep_others.py"
cp "$root/scripts/sweep.py" "$tmp"
sed "s|^ROOT = .*|ROOT = '$root'|; s|^    .Det.: .*||" "$root/scripts/sweep_cases.py" >"$tmp/sweep_cases.py"
"$PYTHON" "$tmp/sweep.py" --tool "$TOOL" --missing >"$tmp/out" 2>&1 && fail "an operator without a case is not found"
printf '%s\n' Det com.microsoft.QLinearAdd | cmp -s - <(sed 's/:.*//' "$tmp/out") || fail "without two cases: $(cat "$tmp/out")"
finish
