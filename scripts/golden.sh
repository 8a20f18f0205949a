#!/usr/bin/env bash
# Golden tests: text in, text out, compared line by line.
#
#   tests/golden/<name>/in.ot     the model
#   tests/golden/<name>/args      options of the tool, one line
#   tests/golden/<name>/out.ot    what `onnx-tile in.ot -o x.ot <args>` writes
#
# `scripts/golden.sh --update` rewrites out.ot; read the diff before you keep it.
set -u
cd "$(dirname "$0")/.."
tool=${TOOL:-build/onnx-tile}
update=${1:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
bad=0
for in in tests/golden/*/in.ot; do
    [ -f "$in" ] || { echo "no golden tests"; exit 1; }
    dir=$(dirname "$in")
    n=$((n + 1))
    # shellcheck disable=SC2046
    if ! "$tool" "$in" -o "$tmp/out.ot" -q $(cat "$dir/args") >"$tmp/log" 2>&1; then
        echo "FAIL $dir: the tool failed"; cat "$tmp/log"; bad=$((bad + 1)); continue
    fi
    if [ "$update" = --update ]; then
        cp "$tmp/out.ot" "$dir/out.ot"
    elif ! diff -u "$dir/out.ot" "$tmp/out.ot" >"$tmp/diff"; then
        echo "FAIL $dir"; head -n 40 "$tmp/diff"; bad=$((bad + 1))
    fi
done
echo "golden: $n cases, $bad differ"
[ $bad = 0 ]
