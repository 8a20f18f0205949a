#!/usr/bin/env bash
# Every operator, of every type, in bodies that lie about types and shapes: as the reference implementations, or one line, and nothing written outside.
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
lies() { "$PYTHON" "$root/tests/property/lying_operators.py" "$@" >"$tmp/out" 2>&1; }
lies --guarded "$BUILD/tests/guarded" --count "${LIES:-1200}" --first "${OT_SEED:-0}" || fail "$(tail -n 20 "$tmp/out")"
lies --guarded "$(command -v false)" --count 2 && fail "a program that ends early is not noticed"
grep -q '^lie0.onnx .*: exit 1' "$tmp/out" || fail "of that program: $(cat "$tmp/out")"
finish
