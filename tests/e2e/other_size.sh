#!/usr/bin/env bash
# --shape in place of fixed extents: small graphs and networks against ONNX Runtime, every command that takes it, the library's JSON.
. "$(dirname "$0")/lib.bash"
for what in cases nets; do
    "$PYTHON" "$root/tests/oracle/other_size.py" --tool "$TOOL" $what >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"
    tail -n 1 "$tmp/out"
done

make_model espcn --small
x=$(py larger "$tmp/espcn.onnx")
expect 0 "$TOOL" "$tmp/espcn.onnx" -o "$tmp/a.onnx" --shape "$x" --force
expect 0 "$TOOL" inspect "$tmp/espcn.onnx" --shape "$x" --json
expect 0 "$TOOL" "$tmp/espcn.onnx" -o "$tmp/untouched.onnx" --shape "$x" --memory-budget 100G --l2 100G
py extents "$tmp" "$x" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
expect 2 "$TOOL" inspect "$tmp/espcn.onnx" --shape "${x%,*}"
says 'dims given, the input has shape'
expect 2 "$TOOL" inspect "$tmp/espcn.onnx" --shape "nobody=1"
says 'no input of that name'
if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then finish; fi
expect 0 "$TOOL" "$tmp/espcn.onnx" -o "$tmp/b.onnx" --shape "$x" --force --verify
expect 0 "$TOOL" run "$tmp/espcn.onnx" --shape "$x" --output-dir "$tmp/one"
expect 0 "$TOOL" run "$tmp/a.onnx" --output-dir "$tmp/two"
py same "$tmp" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
expect 0 "$TOOL" bench "$tmp/espcn.onnx" --shape "$x" --repeat 2
expect 0 "$TOOL" bench "$tmp/espcn.onnx" "$tmp/a.onnx" --shape "$x" --repeat 2
# an array of another size is no leave to replace
"$PYTHON" -c "import numpy as np, sys; np.save(sys.argv[1], np.zeros([int(d) for d in sys.argv[2].split('=')[1].split(',')], np.float32))" "$tmp/x.npy" "$x"
expect 1 "$TOOL" run "$tmp/espcn.onnx" --input "${x%%=*}=$tmp/x.npy"
says 'has shape'
expect 0 "$TOOL" run "$tmp/espcn.onnx" --input "${x%%=*}=$tmp/x.npy" --shape "$x"
finish
