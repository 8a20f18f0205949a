#!/usr/bin/env bash
# More slowdown, a larger budget or a larger fast memory never gives a worse plan.
. "$(dirname "$0")/lib.bash"
make_model unet dncnn mobilenet_v2 --small
"$PYTHON" "$root/scripts/monotone.py" --tool "$TOOL" "$tmp" >"$tmp/said" || fail "a step back: $(grep 'step back,' "$tmp/said")"
grep -q '^123 runs 0 steps back, ' "$tmp/said" || fail "not all runs: $(tail -n 1 "$tmp/said")"

# exact figures of tiles that the search took to fit a cache may not fit it: 8.5 MiB of 8
mkdir "$tmp/masked"
"$PYTHON" - "$tmp/masked/m.onnx" <<'EOF'
import sys
from builder import Net, save
net = Net()
x, mask = net.input('x', [1, 4096, 32]), net.input('mask', [1, 1, 4096])
scores = net.op('MatMul', net.op('MatMul', x, net.uniform([32, 32])), net.op('Transpose', x, perm=[0, 2, 1]))
masked = net.op('Mul', net.op('Softmax', scores, axis=-1), net.op('Expand', mask, net.const([1, 4096, 4096], 'i8')))
net.output(net.op('Identity', net.op('MatMul', masked, x)), [1, 4096, 32])
save(net.model(), sys.argv[1])
EOF
"$PYTHON" "$root/scripts/monotone.py" --tool "$TOOL" --limits fast "$tmp/masked" >"$tmp/said" || fail "masked: a step back: $(grep 'step back,' "$tmp/said")"
grep -q '^16 runs 0 steps back, ' "$tmp/said" || fail "masked: not all runs: $(tail -n 1 "$tmp/said")"
finish
