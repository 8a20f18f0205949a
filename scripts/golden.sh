#!/usr/bin/env bash
# Golden tests: a model as text in, everything the tool says and writes out, compared line by line.
#
#   tests/golden/<stage>/<case>.ot       the model (or a kernel, case.tk, case.mlir); its comment lines "# run: ARGS" are the commands ("// run: ARGS")
#   tests/golden/<stage>/<case>.expect   what they give
#
# Each command runs as `onnx-tile ARGS` in an empty folder that holds the model as case.ot (case.tk, case.mlir); times are cut out. For every command the
# expectation has the line, the exit code, stdout, stderr and the files it wrote (text or empty parts are left out):
#
#   == onnx-tile case.ot -o out.ot -q
#   exit 0
#   -- out.ot
#   model ir 8 opset 17 ...
#
# scripts/golden.sh [--update] [part of a case's path]...   --update rewrites the .expect files: read the diff first.
set -u
cd "$(dirname "$0")/.." || exit 1
tool=$(realpath "${TOOL:-build/onnx-tile}")
update=no
if [ "${1:-}" = --update ]; then update=yes; shift; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
limit=${GOLDEN_LIMIT:-60}
export ONNX_TILE_CACHE=off # what somebody calibrated here changes no expectation

# Print a part of the expectation unless the file is empty.
part() {
    [ -s "$2" ] || return 0
    echo "-- $1"
    cat "$2"
}

# All commands of one case; the result on stdout.
run_case() {
    local args f input=case.${1##*.}
    while IFS= read -r args; do
        rm -rf "$tmp/run"
        mkdir "$tmp/run"
        cp "$1" "$tmp/run/$input"
        echo "== onnx-tile $args"
        # shellcheck disable=SC2086
        (cd "$tmp/run" && timeout "$limit" "$tool" $args >"$tmp/stdout" 2>"$tmp/stderr" </dev/null)
        echo "exit $?"
        sed -i 's/, planned in .*/, planned in TIME/' "$tmp/stdout"
        part stdout "$tmp/stdout"
        part stderr "$tmp/stderr"
        (cd "$tmp/run" && find . -type f ! -name "$input" | LC_ALL=C sort) >"$tmp/files"
        while IFS= read -r f; do part "${f#./}" "$tmp/run/$f"; done <"$tmp/files"
    done < <(sed -n 's/^\(#\|\/\/\) run: //p' "$1")
}

wanted() { # path, parts...
    local path=$1 p
    shift
    [ $# = 0 ] && return 0
    for p in "$@"; do case $path in *"$p"*) return 0 ;; esac; done
    return 1
}

n=0
bad=0
changed=0
for case in tests/golden/*/*.ot tests/golden/*/*.tk tests/golden/*/*.mlir; do
    [ -f "$case" ] || continue
    wanted "$case" "$@" || continue
    n=$((n + 1))
    expect=${case%.*}.expect
    run_case "$case" >"$tmp/got"
    if [ ! -s "$tmp/got" ]; then
        echo "FAIL $case: no line '# run: ...'"; bad=$((bad + 1))
    elif [ $update = yes ]; then
        cmp -s "$expect" "$tmp/got" || { cp "$tmp/got" "$expect"; echo "wrote $expect"; changed=$((changed + 1)); }
    elif [ ! -f "$expect" ]; then
        echo "FAIL $case: no ${expect##*/} (scripts/golden.sh --update writes it)"; bad=$((bad + 1))
    elif ! diff -u "$expect" "$tmp/got" >"$tmp/diff"; then
        echo "FAIL $case"; head -n 60 "$tmp/diff"; bad=$((bad + 1))
    fi
done
[ $n -gt 0 ] || { echo "golden: no cases"; exit 1; }
if [ $update = yes ]; then echo "golden: $n cases, $changed expectations written"
else echo "golden: $n cases, $bad differ"; fi
[ $bad = 0 ]
