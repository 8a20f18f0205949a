#!/usr/bin/env bash
# calibrate --device: what is refused; figures of a device in a target file of the usual form, which plans a model that the device runs.
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
"$PYTHON" - t.xml devices.json <<'EOF_PY' || fail "the file: $(cat t.xml)"
import json
import sys
import xml.etree.ElementTree as E
t = E.parse(sys.argv[1]).getroot()
device = json.load(open(sys.argv[2]))['devices'][0]
assert t.get('name') == 'opencl-calibrated' and t.get('cpu') is None and int(t.get('cores')) == device['units']
assert t.get('description') == 'opencl on ' + device['name'][:80], t.get('description')
want = {'fast': 'bytes bandwidth granule cache double-buffer', 'slow': 'bytes bandwidth',
        'rates': 'conv conv-depthwise conv-pointwise gemm elementwise transcendental reduction pooling', 'overheads': 'node loop region',
        'transfers': 'upload upload-seconds download download-seconds'}
assert [e.tag for e in t if e.tag != 'memory'] == list(want)
number = lambda e, a: float(t.find(e).get(a))
for e, names in want.items():
    assert list(t.find(e).attrib) == names.split(), e
assert number('slow', 'bytes') == device['memory_bytes']
assert 256 * 1024 <= number('fast', 'bytes') <= 128 << 20
assert 1e7 < number('slow', 'bandwidth') <= number('fast', 'bandwidth') < 1e15
assert all(1e5 < number('rates', k) < 1e16 for k in t.find('rates').attrib)
assert all(1e7 < number('transfers', k) < 1e15 and 0 < number('transfers', k + '-seconds') < 0.1 for k in ('upload', 'download'))
assert all(0 < number('overheads', k) <= 5e-3 for k in ('node', 'loop', 'region'))
scopes = {m.get('scope'): m for m in t.findall('memory')}
assert int(scopes['shared'].get('bytes')) == device['shared_bytes']
EOF_PY

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
"$PYTHON" - silent.json "$tmp/out" t.xml <<'EOF_PY' || fail "transfers are not in the plan"
import json
import sys
import xml.etree.ElementTree as E
silent, said = (json.load(open(f))['untiled']['time_seconds'] for f in sys.argv[1:3])
x = E.parse(sys.argv[3]).find('transfers')
up, down = (float(x.get(k + '-seconds')) + n * 4 / float(x.get(k)) for k, n in (('upload', 3 << 16), ('download', 16 << 14)))
assert abs(said - silent - up - down) < 1e-6 * said, (said, silent, up, down)
EOF_PY
expect 0 "$TOOL" inspect net.ot --target t.xml --json
grep -q '"name": "opencl-calibrated"' "$tmp/out" || fail "the file is not used as a target"
expect 0 "$TOOL" net.ot -o tiled.onnx --target t.xml --emit engine --goal memory -q
expect 0 "$TOOL" bench net.ot tiled.onnx --device opencl --repeat 1
grep -q "output m .*same" "$tmp/out" || fail "bench: $(cat "$tmp/out")"
finish
