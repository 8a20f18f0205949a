#!/usr/bin/env bash
# The matrix of runtimes in short: every output form and setting, in the runtimes of the tests' own environment.
. "$(dirname "$0")/lib.bash"

networks=()
for n in chain residual depthwise unet attention batch mlp shuffle softmax; do networks+=(--only "$n"); done
"$PYTHON" "$root/scripts/matrix.py" --tool "$TOOL" --forms "${networks[@]}" --runtime onnxruntime --runtime reference >"$tmp/out" 2>&1 ||
    fail "$(tail -n 20 "$tmp/out")"
grep -q '^onnxruntime  [1-9][0-9]* equal$' "$tmp/out" || fail "not all equal in ONNX Runtime: $(cat "$tmp/out")"

# What it calls wrong, what not, and what it makes of words.
"$PYTHON" "$root/tests/e2e/matrix_verdicts.py" || fail "verdicts"
cd "$root" || exit 1

# Every reproducer says in its first line what it shows.
for f in tests/runtimes/*.py; do
    head -n 1 "$f" | grep -q '^\("""\|#!\)' || fail "$f has no first line that says what it shows"
done
finish
