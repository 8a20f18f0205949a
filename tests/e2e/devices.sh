#!/usr/bin/env bash
# devices: the table and JSON name the same devices, each API has one or a reason, and without drivers the reason is one line.
. "$(dirname "$0")/lib.bash"
expect 0 "$TOOL" devices
cp "$tmp/out" "$tmp/table"
expect 0 "$TOOL" devices --json
py table "$tmp" >"$tmp/said" 2>&1 || fail "$(cat "$tmp/said")"
OCL_ICD_VENDORS=$tmp/none expect 0 "$TOOL" devices
grep -Eq '^opencl +(no OpenCL device here \(Debian: pocl-opencl-icd makes the CPU one\)|.*libOpenCL.so.1|.*headers)' "$tmp/out" || fail "$(cat "$tmp/out")"
expect 2 "$TOOL" devices model.onnx
says "devices takes no file"
expect 2 "$TOOL" devices --goal memory
expect 0 "$TOOL" devices -q
[ -s "$tmp/out" ] && fail "-q printed $(cat "$tmp/out")"
finish
