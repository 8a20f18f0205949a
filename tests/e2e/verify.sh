#!/usr/bin/env bash
# --verify: the tiled model is run against the original before it is written; where that cannot be done, no file appears.
# (That differences are found: tests/unit/test_engine_measure.c.)
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    expect 2 "$TOOL" m.onnx -o x.onnx --verify; says "'--verify' needs the native engine"
    finish
fi

cat >"$tmp/make.py" <<'EOF_PY'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

d = sys.argv[1]


def save(name, nodes, inits=(), dims=(1, 4, 64, 64), external=False, opsets=()):
    g = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', T.FLOAT, dims)], [h.make_tensor_value_info('y', T.FLOAT, None)], list(inits))
    m = h.make_model(g, opset_imports=[h.make_opsetid('', 17), *opsets], ir_version=8)
    onnx.save(m, f'{d}/{name}.onnx', save_as_external_data=external, location=name + '.bin', size_threshold=0) if external else onnx.save(m, f'{d}/{name}.onnx')


rng = np.random.default_rng(0)
w = [numpy_helper.from_array(rng.normal(0, .2, (4, 4, 3, 3)).astype('f4'), f'w{k}') for k in range(3)]
conv = [h.make_node('Conv', ['x' if k == 0 else f'c{k - 1}', f'w{k}'], [f'c{k}'], f'conv{k}', pads=[1, 1, 1, 1]) for k in range(3)]
pool = [h.make_node('Relu', ['c2'], ['inner'], 'relu'), h.make_node('GlobalAveragePool', ['inner'], ['p'], 'pool'), h.make_node('Tanh', ['p'], ['y'], 'tanh')]
save('net', conv + pool, w)
save('external', conv + pool, w, external=True)
save('free', conv + pool, w, dims=['n', 4, 'h', 64])
save('strange', conv + [h.make_node('Relu', ['c2'], ['r']), h.make_node('Strange', ['r'], ['y'], 'odd', domain='here')], w, opsets=[h.make_opsetid('here', 1)])
EOF_PY
"$PYTHON" "$tmp/make.py" "$tmp" || fail "cannot make the models"
cd "$tmp" || exit 1
how="--force --target mcu-512k --l2 24K"

# the number of values of 'verified  N values the same'
values() { sed -n 's/^verified  *\([0-9]*\) value.* the same .*/\1/p' "$tmp/out"; }

for emit in onnx engine; do
    # shellcheck disable=SC2086
    expect 0 "$TOOL" net.onnx -o out.onnx $how --emit $emit --verify
    [ "$(values)" = 1 ] || fail "$emit: $(cat "$tmp/out")"
    [ -s out.onnx ] || fail "$emit: no output"
    # shellcheck disable=SC2086
    expect 0 "$TOOL" net.onnx -o out.onnx $how --emit $emit --verify=all
    [ "$(values)" -gt 1 ] || fail "$emit, all: $(cat "$tmp/out")"
done
# shellcheck disable=SC2086
{
    expect 0 "$TOOL" net.onnx -o quiet.onnx $how --verify -q
    [ -s "$tmp/out" ] && fail "-q says something"
    expect 0 "$TOOL" net.onnx -o json.onnx $how --verify --json
    "$PYTHON" -m json.tool "$tmp/out" >/dev/null || fail "--json with --verify is none"
    expect 0 "$TOOL" external.onnx -o far.onnx $how --verify=all
    [ "$(values)" -gt 1 ] || fail "external data: $(cat "$tmp/out")"
    expect 0 "$TOOL" free.onnx -o free2.onnx $how --shape x=2,4,48,64 --verify
    "$TOOL" - -o piped.onnx $how --verify -q <net.onnx || fail "a model from a pipe is not verified"
    cmp -s piped.onnx json.onnx || fail "a model from a pipe gives something else"
    expect 0 "$TOOL" net.onnx -o - $how --verify
    cmp -s "$tmp/out" json.onnx || fail "verified on the way to a pipe it is something else"
}
ls -A | grep -q 'onnx-tile-' && fail "a temporary file is left: $(ls -A)"

# nothing is written without the proof
# shellcheck disable=SC2086
expect 1 "$TOOL" strange.onnx -o none.onnx $how --verify; says "node 'odd' (Strange)"
[ -e none.onnx ] && fail "an output that was not compared is written"
expect 2 "$TOOL" net.onnx -o x.onnx --verify=some; says "must be all"
expect 2 "$TOOL" inspect net.onnx --verify; says "--verify"
finish
