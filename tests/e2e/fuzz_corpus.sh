#!/usr/bin/env bash
# What `make fuzz` starts from is made: models, ranges, arrays, models with regions of the engine; few of each.
. "$(dirname "${BASH_SOURCE[0]}")/lib.bash"
made() { # at least N files by these options
    local least=$1 folder=$tmp/$2
    shift
    "$PYTHON" "$root/tests/fuzz/make_corpus.py" "$folder" 4 "$@" >"$tmp/out" 2>&1 || fail "make_corpus $*: $(tail -n 3 "$tmp/out")"
    [ "$(find "$folder" -type f -size +0 | wc -l)" -ge "$least" ] || fail "make_corpus $*: $(ls "$folder")"
}
made 5 --no-text
made 4 --range
made 100 --arrays
"$TOOL" --help | grep -q 'run MODEL.*needs the native engine' || made 4 --engine-form "$TOOL"
ls "$tmp/--no-text" | grep -q saved_ || fail "no model as ONNX Runtime saves it: $(ls "$tmp/--no-text")"
finish
