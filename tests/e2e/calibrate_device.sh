#!/usr/bin/env bash
# calibrate --device: what is refused; figures of a device in a target file of the usual form, which plans a model that the device runs.
# run: first
. "$(dirname "$0")/lib.bash"
# A machine's memory may grow while the test runs, and what pocl says of it with it: a limit holds it still.
export POCL_CACHE_DIR=$tmp/pocl XDG_CACHE_HOME=$tmp/cache POCL_MEMORY_LIMIT=2
if "$TOOL" run 2>&1 | grep -q "native engine"; then
    echo "skipped: this build has no engine"
    exit 0
fi
cd "$tmp" || exit 1

refuses() { # a word of the line, arguments
    local word=$1
    shift
    expect 2 "$TOOL" calibrate "$@"
    says "$word"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "more than a line: $(cat "$tmp/err")"
    [ ! -e t.xml ] || fail "a file of nothing"
}
refuses "must be host, cpu, opencl" --device gpu -o t.xml
refuses "no OpenCL device" --device opencl:99 -o t.xml
refuses "add -o T.xml" --device opencl
refuses "leave them out" --device opencl --threads 2 -o t.xml
OCL_ICD_VENDORS=$tmp/none refuses "OpenCL" --device opencl -o t.xml

if ! "$TOOL" devices | grep -q "^opencl:0"; then
    echo "skipped: no device of opencl: what is measured of one"
    finish
    exit
fi
expect 0 timeout 600 "$TOOL" calibrate --device opencl -o t.xml
grep -q '^overheads  *launch .*, tile .*, region ' "$tmp/out" || fail "no figures: $(cat "$tmp/out")"
grep -qF -e "$tmp" -e "$(hostname)" t.xml && fail "the file names a path or the host"
if command -v xmllint >/dev/null; then
    xmllint --noout --schema "$root/reports/target.xsd" t.xml 2>/dev/null || fail "the schema refuses the file"
fi
"$TOOL" devices --json >devices.json
py figures t.xml devices.json || fail "the file: $(cat t.xml)"

# the planner plans with it, and the device runs what it planned
cat >net.ot <<'OT'
model ir 8 opset 17
graph main {
  input %x : float32[1,3,256,256]
  init %w : float32[16,3,3,3] = random 1 * 0.3
  init %v : float32[16,16,3,3] = random 2 * 0.1
  %a = Conv(%x, %w) {pads=[1, 1, 1, 1]}
  %b = Relu(%a)
  %c = Conv(%b, %v) {pads=[1, 1, 1, 1]}
  %m = MaxPool(%c) {kernel_shape=[2, 2], strides=[2, 2]}
  output %m
}
OT
grep -v '<transfers' t.xml >silent.xml # the same without what transfers take
expect 0 "$TOOL" inspect net.ot --target silent.xml --runtime engine-device --json
cp "$tmp/out" silent.json
expect 0 "$TOOL" inspect net.ot --target t.xml --runtime engine-device --json
py transfers silent.json "$tmp/out" t.xml || fail "transfers are not in the plan"
expect 0 "$TOOL" inspect net.ot --target t.xml --json
grep -q '"name": "opencl-calibrated"' "$tmp/out" || fail "the file is not used as a target"
expect 0 "$TOOL" net.ot -o tiled.onnx --target t.xml --emit engine --goal memory -q
expect 0 "$TOOL" bench net.ot tiled.onnx --device opencl --repeat 1
grep -q "output m .*same" "$tmp/out" || fail "bench: $(cat "$tmp/out")"
finish
