#!/usr/bin/env bash
# --verify: the tiled model is run against the original before it is written; where that cannot be done, no file appears.
# (That differences are found: tests/unit/test_engine_measure.c.)
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    expect 2 "$TOOL" m.onnx -o x.onnx --verify; says "'--verify' needs the native engine"
    finish
fi

py models "$tmp" || fail "cannot make the models"
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
    # large tensors go to a file, which a pipe has no place for
    expect 0 "$TOOL" large.onnx -o far.onnx $how --verify -q
    TMPDIR=$tmp expect 1 "$TOOL" large.onnx -o - $how --verify -q; says "needs a file for its external data"
    expect 0 "$TOOL" free.onnx -o free2.onnx $how --shape x=2,4,48,64 --verify
    "$TOOL" - -o piped.onnx $how --verify -q <net.onnx || fail "a model from a pipe is not verified"
    cmp -s piped.onnx json.onnx || fail "a model from a pipe gives something else"
    expect 0 "$TOOL" net.onnx -o - $how --verify
    cmp -s "$tmp/out" json.onnx || fail "verified on the way to a pipe it is something else"
}
ls -A | grep -q 'onnx-tile-' && fail "a temporary file is left: $(ls -A)"

# what half precision makes 0 is no difference where a tile computes it in single
expect 0 "$TOOL" faint.onnx -o out.onnx --goal memory --target cpu-generic --threads 1 --verify

# nothing is written without the proof
# shellcheck disable=SC2086
expect 1 "$TOOL" strange.onnx -o none.onnx $how --verify; says "node 'odd' (Strange)"
[ -e none.onnx ] && fail "an output that was not compared is written"
expect 2 "$TOOL" net.onnx -o x.onnx --verify=some; says "must be all"
expect 2 "$TOOL" inspect net.onnx --verify; says "--verify"
finish
