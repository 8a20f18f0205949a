#!/usr/bin/env bash
# The figures of docs/seed-case.md for a block of 1 MiB a sample: 16 loops of 2 samples, 6.8 MiB, 176 calls of kernels or 16.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/models/make_models.py" "$tmp" seed_case --size 32 >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
"$TOOL" "$tmp/seed_case.onnx" -o "$tmp/tiled.onnx" --target tlf-16m --l2 12M --json >"$tmp/plan.json" || fail "cannot tile it"
"$PYTHON" - "$tmp" "$root/docs/seed-case.md" >"$tmp/out" 2>&1 <<'PY' || fail "$(cat "$tmp/out")"
import json, sys, onnx
tmp, doc = sys.argv[1], open(sys.argv[2], encoding='utf-8').read()
plan = json.load(open(f'{tmp}/plan.json'))
(r,) = plan['regions']
assert (r['axes'], r['tiles'], r['form'], r['mac_ratio']) == (['N'], [16], 'scan', 1), r
assert r['working_set_bytes'] == 7104512 and '7,104,512' in doc, r['working_set_bytes']
assert (plan['untiled']['peak_bytes'], plan['tiled']['peak_bytes']) == (41943040, 6850560), plan
scans = [n for n in onnx.load(f'{tmp}/tiled.onnx').graph.node if n.op_type == 'Scan']
(body,) = [a.g for n in scans for a in n.attribute if a.name == 'body']
assert len(body.node) == len(r['nodes']) == 11, [n.name for n in body.node]
calls = 16 * len(body.node), 16 * len(scans)
assert calls == (176, 16) and '176' in doc and '33.4 MiB' in doc
PY
finish
