# Shared by the end-to-end tests: a scratch folder, small models, checks that name what failed.
# TOOL, PYTHON and BUILD come from the Makefile; from the command line the defaults are those of `make`.
set -u
export ONNX_TILE_CACHE=off
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TOOL=${TOOL:-$root/build/onnx-tile}
PYTHON=${PYTHON:-$root/.venv/bin/python}
BUILD=${BUILD:-$root/build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# expect STATUS COMMAND...: the command's exit status; stdout and stderr are left in $tmp/out and $tmp/err.
expect() {
    local want=$1 got
    shift
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ $got = "$want" ] || fail "exit $got, not $want: $* ($(head -n 3 "$tmp/err"))"
}

# A failed run says exactly one line, on stderr, that contains the text.
says() {
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line on stderr: $(head -n 4 "$tmp/err")"
    grep -q '^onnx-tile: error: ' "$tmp/err" || fail "no 'onnx-tile: error:': $(cat "$tmp/err")"
    grep -qF -- "$1" "$tmp/err" || fail "stderr does not say '$1': $(cat "$tmp/err")"
}

# py COMMAND ARGUMENTS...: what the test has in Python, X.py beside X.sh; it may use the modules of tests/models.
export PYTHONPATH=$root/tests/models${PYTHONPATH:+:$PYTHONPATH}
py() { "$PYTHON" "$root/tests/e2e/$(basename "$0" .sh).py" "$@"; }

make_model() { "$PYTHON" "$root/models/make_models.py" "$tmp" "$@" || { echo "FAIL: cannot make $*"; exit 1; }; }

finish() {
    [ $failures = 0 ] && echo "all good"
    [ $failures = 0 ]
    exit
}
