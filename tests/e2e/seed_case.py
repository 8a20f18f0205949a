"""The figures of docs/seed-case.md. seed_case.py FOLDER DOCUMENT"""
import json
import sys

import onnx

tmp, doc = sys.argv[1], open(sys.argv[2], encoding='utf-8').read()
plan = json.load(open(f'{tmp}/plan.json'))
(r,) = plan['regions']
assert ([(d['axis'], d['tiles']) for d in r['dims']], r['form'], r['mac_ratio']) == ([('N', 16)], 'scan', 1), r
assert r['working_set_bytes'] == 7104512 and '7,104,512' in doc, r['working_set_bytes']
assert (plan['untiled']['peak_bytes'], plan['tiled']['peak_bytes']) == (41943040, 6850560), plan
scans = [n for n in onnx.load(f'{tmp}/tiled.onnx').graph.node if n.op_type == 'Scan']
(body,) = [a.g for n in scans for a in n.attribute if a.name == 'body']
assert len(body.node) == len(r['nodes']) == 11, [n.name for n in body.node]
calls = 16 * len(body.node), 16 * len(scans)
assert calls == (176, 16) and '176' in doc and '33.4 MiB' in doc
