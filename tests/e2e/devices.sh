#!/usr/bin/env bash
# devices: the table and JSON name the same devices, each API has one or a reason, and without drivers the reason is one line.
. "$(dirname "$0")/lib.bash"
expect 0 "$TOOL" devices
cp "$tmp/out" "$tmp/table"
expect 0 "$TOOL" devices --json
"$PYTHON" - "$tmp" <<'P' >"$tmp/said" 2>&1 || fail "$(cat "$tmp/said")"
import json, sys
j = json.load(open(sys.argv[1] + '/out'))
table = [l.split()[0] for l in open(sys.argv[1] + '/table') if l.split()[0] != 'device']
names = [d['device'] for d in j['devices']]
assert table == names + [m['api'] for m in j['missing']], (table, j)
for api in ('opencl', 'vulkan', 'cuda'):
    assert any(n.startswith(api + ':') for n in names) != any(m['api'] == api and m['reason'] for m in j['missing']), (api, j)
assert all(d['memory_bytes'] > 0 and 0 < d['block_bytes'] and d['alignment_bytes'] > 0 and d['work_items'] > 0 for d in j['devices']), j
P
OCL_ICD_VENDORS=$tmp/none expect 0 "$TOOL" devices
grep -Eq '^opencl +(no OpenCL device here \(Debian: pocl-opencl-icd makes the CPU one\)|.*libOpenCL.so.1|.*headers)' "$tmp/out" || fail "$(cat "$tmp/out")"
expect 2 "$TOOL" devices model.onnx
says "devices takes no file"
expect 2 "$TOOL" devices --goal memory
expect 0 "$TOOL" devices -q
[ -s "$tmp/out" ] && fail "-q printed $(cat "$tmp/out")"
finish
