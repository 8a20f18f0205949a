#!/usr/bin/env bash
# scripts/calibrate_runtime.py: figures of ONNX Runtime in a valid target file, which the tool plans with.
# run: alone
. "$(dirname "$0")/lib.bash"
make_model --small depthwise

expect 0 timeout 300 "$PYTHON" "$root/scripts/calibrate_runtime.py" --runtime onnxruntime --threads 1 --seconds 1 -o "$tmp/t.xml"
grep -q '^written to' "$tmp/out" || fail "no end: $(tail -n 3 "$tmp/out" "$tmp/err")"
grep -qF -e "$tmp" -e "$(hostname)" "$tmp/t.xml" && fail "the file names a path or the host"
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" "$tmp/t.xml" 2>/dev/null || fail "the schema refuses the file: $(cat "$tmp/t.xml")"
fi
expect 0 "$TOOL" inspect "$tmp/depthwise.onnx" --target "$tmp/t.xml" --json
grep -q '"name": "here-onnxruntime"' "$tmp/out" || fail "the file is not used as a target: $(head -n 5 "$tmp/out")"
expect 0 "$TOOL" "$tmp/depthwise.onnx" -o "$tmp/o.onnx" --target "$tmp/t.xml" --force --l2 64K
finish
