#!/usr/bin/env bash
# --shape in place of fixed extents: small graphs and networks against ONNX Runtime, every command that takes it, the library's JSON.
. "$(dirname "$0")/lib.bash"
for what in cases nets; do
    "$PYTHON" "$root/tests/oracle/other_size.py" --tool "$TOOL" $what >"$tmp/out" 2>&1 || fail "$(tail -n 20 "$tmp/out")"
    tail -n 1 "$tmp/out"
done

make_model espcn --small
x=$("$PYTHON" - "$tmp/espcn.onnx" <<'P'
import onnx, sys
i = onnx.load(sys.argv[1]).graph.input[0]
d = [x.dim_value for x in i.type.tensor_type.shape.dim]
print('%s=%d,%d,%d,%d' % (i.name, d[0], d[1], d[2] * 2, d[3] + 8))
P
)
expect 0 "$TOOL" "$tmp/espcn.onnx" -o "$tmp/a.onnx" --shape "$x" --force
expect 0 "$TOOL" inspect "$tmp/espcn.onnx" --shape "$x" --json
expect 0 "$TOOL" "$tmp/espcn.onnx" -o "$tmp/untouched.onnx" --shape "$x" --memory-budget 100G --l2 100G
"$PYTHON" - "$tmp" "$x" <<'P' >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
import onnx, sys
want = [int(d) for d in sys.argv[2].split('=')[1].split(',')]
for name in ('a', 'untouched'):  # also when nothing is tiled
    m = onnx.load('%s/%s.onnx' % (sys.argv[1], name))
    onnx.shape_inference.infer_shapes(m, strict_mode=True, check_type=True)
    assert [d.dim_value for d in m.graph.input[0].type.tensor_type.shape.dim] == want, (name, m.graph.input[0])
P
expect 2 "$TOOL" inspect "$tmp/espcn.onnx" --shape "${x%,*}"
says 'dims given, the input has shape'
expect 2 "$TOOL" inspect "$tmp/espcn.onnx" --shape "nobody=1"
says 'no input of that name'
if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then finish; fi
expect 0 "$TOOL" "$tmp/espcn.onnx" -o "$tmp/b.onnx" --shape "$x" --force --verify
expect 0 "$TOOL" run "$tmp/espcn.onnx" --shape "$x" --output-dir "$tmp/one"
expect 0 "$TOOL" run "$tmp/a.onnx" --output-dir "$tmp/two"
"$PYTHON" - "$tmp" <<'P' >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
import numpy as np, sys
a, b = (np.load('%s/%s/0.npy' % (sys.argv[1], k)) for k in ('one', 'two'))
assert a.shape == b.shape and np.abs(a - b).max() <= 1e-4 * np.abs(a).max(), (a.shape, b.shape)
P
expect 0 "$TOOL" bench "$tmp/espcn.onnx" --shape "$x" --repeat 2
expect 0 "$TOOL" bench "$tmp/espcn.onnx" "$tmp/a.onnx" --shape "$x" --repeat 2
# an array of another size is no leave to replace
"$PYTHON" -c "import numpy as np, sys; np.save(sys.argv[1], np.zeros([int(d) for d in sys.argv[2].split('=')[1].split(',')], np.float32))" "$tmp/x.npy" "$x"
expect 1 "$TOOL" run "$tmp/espcn.onnx" --input "${x%%=*}=$tmp/x.npy"
says 'has shape'
expect 0 "$TOOL" run "$tmp/espcn.onnx" --input "${x%%=*}=$tmp/x.npy" --shape "$x"
finish
