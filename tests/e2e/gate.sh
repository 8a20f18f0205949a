#!/usr/bin/env bash
# gate: exit status and lines against figures that are read from the XML reports; compare --markdown; the example workflow's steps.
. "$(dirname "$0")/lib.bash"
make_model vgg16_head
cd "$tmp" || exit 1
m=vgg16_head.onnx plan="--target cpu-generic"
expect 0 "$TOOL" inspect $m $plan --report time.xml -q
expect 0 "$TOOL" inspect $m $plan --goal memory --report memory.xml -q
figure() { # REPORT CARD: the tiled model's
    py figure "$1" "$2"
}
peak=$(figure memory.xml peak-memory) growth=$(figure memory.xml process-growth) process=$(figure memory.xml process)

# absolute limits: at the figure, and a byte below it
expect 0 "$TOOL" gate $m $plan --goal memory --max-peak "$peak" --max-growth "$growth" --report again.xml
[ "$(grep -c '^  passed' "$tmp/out")" = 2 ] || fail "$(cat "$tmp/out")"
expect 3 "$TOOL" gate $m $plan --goal memory --max-peak $((peak - 1)) --max-growth "$growth"
says 'vgg16_head.onnx does not pass: peak-memory'
grep -q '^  FAILED  Peak memory' "$tmp/out" || fail "$(cat "$tmp/out")"
grep -q '^  passed  Peak resident growth' "$tmp/out" || fail "$(cat "$tmp/out")"
expect 3 "$TOOL" gate memory.xml --max-peak $((peak - 1)) --max-growth $((growth - 1)) -q
says 'process-growth'; says 'peak-memory'
[ -s "$tmp/out" ] && fail "-q printed $(cat "$tmp/out")"

expect 0 "$TOOL" gate $m $plan --goal memory --max-process "$process"
expect 3 "$TOOL" gate memory.xml --max-process $((process - 1)); says 'process '
grep -q '^  FAILED  Whole process' "$tmp/out" || fail "$(cat "$tmp/out")"

# against a baseline, above it and below
more=$("$PYTHON" -c 'import sys; a, b = map(float, sys.argv[1:]); print(int((a / b - 1) * 100))' "$(figure memory.xml time)" "$(figure time.xml time)")
[ "$more" -ge 1 ] || fail "goal memory is not slower here: the test says nothing"
expect 3 "$TOOL" gate memory.xml --max-time-regression "$more" --baseline time.xml
says "vgg16_head.onnx does not pass: time"; says 'in time.xml (+'
expect 0 "$TOOL" gate memory.xml --max-time-regression $((more + 1)) --max-peak-regression 0 --baseline time.xml
expect 0 "$TOOL" gate memory.xml --max-time-regression 0 --max-peak-regression 0 --baseline memory.xml
grep -q '(+0.0 %, at most +0 %)' "$tmp/out" || fail "$(cat "$tmp/out")"
grep -q 'another model' "$tmp/out" && fail "the same model is told to be another one"
sed 's/model="vgg16_head.onnx"/model="other.onnx"/' time.xml >of_other.xml
expect 0 "$TOOL" gate memory.xml --max-time-regression $((more + 1)) --baseline of_other.xml
grep -qx '  note: of_other.xml is of another model, other.onnx' "$tmp/out" || fail "no note: $(cat "$tmp/out")"
expect 0 "$TOOL" gate memory.xml --max-time-regression $((more + 1)) --baseline of_other.xml --json
grep -q '"baseline_model": "other.onnx"' "$tmp/out" || fail "no baseline_model: $(cat "$tmp/out")"
expect 3 "$TOOL" gate time.xml --max-peak-regression 10 --baseline memory.xml
expect 3 "$TOOL" gate memory.xml --max-time-regression "$more" --max-peak 1G --baseline time.xml --json
py judged "$tmp" "$(figure memory.xml time)" "$(figure time.xml time)" || fail "JSON: $(cat "$tmp/out")"

# what cannot be judged
expect 2 "$TOOL" gate $m; says 'gate needs a limit'
expect 2 "$TOOL" gate $m --max-time-regression 5; says 'needs a baseline'
expect 2 "$TOOL" gate $m --max-peak 1G --baseline time.xml; says 'add one of them'
expect 2 "$TOOL" gate time.xml --max-peak 1G --report x.html; says 'is a report already'
expect 2 "$TOOL" gate $m -o x.onnx --max-peak 1G; says 'writes no model'
expect 1 "$TOOL" gate $m --target tlf-16m --max-time-regression 5 --baseline time.xml; says "target 'cpu-generic' in the baseline and 'tlf-16m' here"
expect 3 "$TOOL" gate $m --target tlf-16m --max-process 1G; says 'process not known, at most 1 GiB: there is no prediction of it'
expect 3 "$TOOL" gate $m --target tlf-16m --max-growth 1G; says 'process-growth not known, at most 1 GiB: there is no prediction of it'
expect 4 "$TOOL" gate $m --max-time-regression 5 --baseline absent.xml; says 'absent.xml'
echo '<report/>' >bad.xml
expect 1 "$TOOL" gate bad.xml --max-peak 1G; says 'bad.xml'
if ! "$TOOL" --help | grep -q 'bench MODEL.*needs the native engine'; then
    expect 0 "$TOOL" bench $m $plan --repeat 1 --report bench.xml -q
    expect 0 "$TOOL" inspect $m $plan --emit engine --report engine.xml -q
    expect 1 "$TOOL" gate memory.xml --max-time-regression 5 --baseline bench.xml; says "runtime 'engine' in the baseline"
    expect 1 "$TOOL" gate engine.xml --max-time-regression 5 --baseline bench.xml; says 'measured in the baseline and predicted here'
    expect 0 "$TOOL" gate bench.xml --max-time-regression 5 --baseline bench.xml
    grep -q 'vgg16_head.onnx (measured)' "$tmp/out" || fail "$(cat "$tmp/out")"
fi

# the summary: figures of the reports, tables whose lines have the same number of cells, names that cannot be markup
expect 0 "$TOOL" compare time.xml memory.xml --markdown
cp "$tmp/out" summary.md
grep -q '^| Peak memory | .*MiB | .*MiB | x0' summary.md || fail "$(cat summary.md)"
expect 0 "$TOOL" compare time.xml memory.xml --markdown -o file.md
cmp -s summary.md file.md || fail "-o and stdout differ"
sed 's/name="conv_3"/name="a|b`@c\&lt;i\&gt;\&#10;d"/' memory.xml >hostile.xml
expect 0 "$TOOL" compare time.xml hostile.xml --markdown
grep -qE "^\| \`a\\\\\|b'@c<i>[? ]d\` and [0-9]+ more \|" "$tmp/out" || fail "$(cat "$tmp/out")"
py even summary.md "$tmp/out" || fail "tables are not even"
expect 0 "$TOOL" compare memory.xml memory.xml --markdown
grep -q '^The same tiling.$' "$tmp/out" || fail "$(cat "$tmp/out")"

# the steps of the example workflow, as it has them
cp $m model.onnx
py steps "$root/examples/gate.yml" >steps.sh || fail "no steps"
[ "$(grep -c '^onnx-tile' steps.sh)" = 4 ] || fail "steps: $(cat steps.sh)"
ln -s "$TOOL" onnx-tile
cp $m before.onnx
GITHUB_STEP_SUMMARY=$tmp/summary PATH=$tmp:$PATH bash -e steps.sh >"$tmp/log" 2>&1 || fail "$(cat "$tmp/log")"
grep -q '^### onnx-tile' "$tmp/summary" || fail "no summary"
finish
