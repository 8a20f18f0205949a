#!/usr/bin/env bash
# Random graphs with streaming forced and with free dimensions forced: N seeds of each set, one row a set, with what failed before it.
#
#   scripts/forced_seeds.sh [N [FIRST]]        TOOL=build/onnx-tile PYTHON=.venv/bin/python; N 1000, FIRST 1000001
#
# streams: image networks, as plain ONNX (--force each), planned for chips, in the engine's form. free: one file for every size, tiles forced, steps
# forced, networks that normalise and reduce in parts, networks that cut rows off, graphs of any operators (each seed in a process of its own: the runtime crashes on some originals). Exit 1 when a graph differs, or a set hardly had a region.
cd "$(dirname "$0")/.." || exit 4
n=${1:-1000} first=${2:-1000001} failed=0
PYTHON=${PYTHON:-.venv/bin/python} TOOL=${TOOL:-build/onnx-tile}
out=$(mktemp) || exit 4
trap 'rm -f "$out"' EXIT

set_of() { # label, script, options
    local label=$1
    shift
    "$PYTHON" "tests/property/$1" --tool "$TOOL" --start "$first" --seeds "$n" "${@:2}" >"$out" 2>&1 || failed=1
    grep '^seed' "$out"
    printf '%-24s %s\n' "$label" "$(tail -n 1 "$out")"
}

set_of 'streams' streams.py --force
set_of 'streams, chips' streams.py --mode chip
set_of 'streams, engine' streams.py --mode engine
set_of 'free' dynamic_sizes.py --force
set_of 'free, steps' dynamic_sizes.py --form stream
set_of 'free, steps forced' dynamic_sizes.py --form stream --force
set_of 'free, parts' dynamic_sizes.py --norms --force
set_of 'free, crops' dynamic_sizes.py --crops --force
set_of 'free, crops, steps' dynamic_sizes.py --crops --form stream --force
set_of 'free, any' dynamic_sizes.py --any --force
set_of 'free, any, steps forced' dynamic_sizes.py --any --form stream --force
exit $failed
