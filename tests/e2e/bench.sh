#!/usr/bin/env bash
# bench: a model and its tiled form side by side; figures that fit together, a difference that is found, a trace that browsers read.
# run: alone
. "$(dirname "$0")/lib.bash"

if "$TOOL" --help | grep -q 'bench MODEL.*needs the native engine'; then
    echo "skipped: this build has no engine"
    exit 0
fi

py models "$tmp" || fail "cannot make the models"
cd "$tmp" || exit 1

# python CODE: j is what the last command printed as JSON; the code asserts
python() { "$PYTHON" -c "import json
j = json.load(open('$tmp/out'))
$1" || fail "$1"; }

# ---- a tiled file ----
expect 0 "$TOOL" net.onnx -o tiled.onnx --force --form unrolled --target mcu-512k --l2 64K -q
expect 0 "$TOOL" bench net.onnx tiled.onnx --as-is --repeat 3 --threads 2 --target cpu-generic --l2 64K --json --trace t.json
py of_a_file "$tmp/out" || fail "figures of a file: $(cat "$tmp/out")"
py traced t.json || fail "the trace"

# ---- tiled here ----
for emit in onnx engine; do
    expect 0 "$TOOL" bench net.onnx --repeat 2 --force --target host --l2 64K --emit $emit --json
    [ ! -s "$tmp/err" ] || fail "something on stderr: $(cat "$tmp/err")"
    python "assert j['tiled_model'] is None and not j['other_machine'] and j['same'] and j['regions'] and all(s['predicted_seconds'] > 0 for s in (j['original'], j['tiled'])), '$emit'
assert all(r['measured_seconds'] > 0 and r['tiled_seconds'] > 0 and r['measured_untiled_seconds'] > 0 for r in j['regions']) and j['region_error'] >= 0"
done
expect 0 "$TOOL" bench net.onnx --repeat 1 --force --l2 64K
for line in 'time least' 'time predicted' 'peak planned' 'operands fast' 'median error' 'output y'; do
    grep -q "^$line" "$tmp/out" || fail "no line '$line': $(cat "$tmp/out")"
done
expect 0 "$TOOL" bench merged.onnx --repeat 1 -q
expect 0 "$TOOL" bench two.onnx --repeat 1 --json
python "assert j['regions'] == [] and 'region_error' not in j and j['time_ratio'] > 0"
expect 0 "$TOOL" bench two.onnx --repeat 1 -q
[ ! -s "$tmp/out" ] || fail "-q says something"

# ---- another machine's predictions are not compared with what this one measures ----
expect 0 "$TOOL" bench net.onnx --repeat 1 --force --target mcu-512k --l2 64K --json --report other.xml --report other.html
[ "$(cat "$tmp/err")" = "onnx-tile: note: target 'mcu-512k' is not this machine: predictions and levels of memory are the target's, times were measured here" ] ||
    fail "no word of the other machine: $(cat "$tmp/err")"
python "assert j['other_machine'] and 'region_error' not in j and all(r['tiled_seconds'] > 0 and r['measured_seconds'] > 0 for r in j['regions'])"
grep -q 'other-machine="true"' other.xml || fail "the report does not tell of the other machine"
grep -q 'is not the machine that measured' other.html || fail "the page does not tell of the other machine"
grep -qE ' (region-)?error=' other.xml && fail "the report compares two machines"
expect 0 "$TOOL" bench net.onnx --repeat 1 --force --target mcu-512k --l2 64K
grep -qE 'median error|[+-][0-9]+ %' "$tmp/out" && fail "the table compares two machines"
expect 0 "$TOOL" bench two.onnx --repeat 1 --target tlf-16m -q
[ ! -s "$tmp/err" ] || fail "-q says something"

# ---- the command of a report does what bench did ----
for shape in '' '--shape x=1,8,512,512'; do
    # shellcheck disable=SC2086
    expect 0 "$TOOL" bench net.onnx --goal memory --force --l2 256K --repeat 1 $shape -q --report command.json
    command=$(py command command.json) || fail "no command in the report of bench $shape"
    # shellcheck disable=SC2086
    expect 0 "${TOOL%/*}"/$command
    [ -s net-tiled.onnx ] || fail "'$command' writes nothing"
    rm -f net-tiled.onnx
done

# ---- what is wrong ----
"$TOOL" bench net.onnx other.onnx --repeat 1 --json >"$tmp/out" 2>"$tmp/err" && fail "other outputs pass"
says "output 'y' of the tiled model is not the original's: the contents differ"
python "assert not j['same']"
expect 1 "$TOOL" bench two.onnx renamed.onnx; says "input 'x' of the tiled model is float32 [3,2], but the original's array float32 [2,3]"
expect 2 "$TOOL" bench - ; says 'standard input'
expect 2 "$TOOL" bench; says 'no model given'
expect 2 "$TOOL" bench a.onnx b.onnx c.onnx; says "is one more"
expect 4 "$TOOL" bench two.onnx --repeat 1 --trace none/t.json; says 'none/t.json'
finish
