"""What results.sh has in Python."""
import json

import onnx

from command_line import commands


def check(path, hard=None):
    """Keys and types of the JSON; prints the numbers of regions and of barriers. hard: tiles fit the fast memory."""
    def no_constants(name): raise SystemExit(f'{name} in JSON')
    d = json.load(open(path), parse_constant=no_constants)
    def need(o, **kinds):
        for k, t in kinds.items():
            if not isinstance(o.get(k), t): raise SystemExit(f'{k}: {o.get(k)!r}')
    num = (int, float)
    need(d, model=str, target=dict, untiled=dict, tiled=dict, benefit_seconds=num, speedup=num,
         regions=list, barriers=list, refusals=list, arena=dict)
    a = d['arena']
    need(a, naive_bytes=int, lower_bound_bytes=int, planned_bytes=int, greedy_by_size_bytes=int, in_place_bytes=int, buffers=int,
         unsized=int, proved=bool)
    assert 0 < a['in_place_bytes'] <= a['planned_bytes'] <= a['greedy_by_size_bytes'] <= a['naive_bytes'], a
    assert a['lower_bound_bytes'] <= a['planned_bytes'], a
    need(d['target'], name=str, fast_bytes=int)
    for side in ('untiled', 'tiled'):
        need(d[side], time_seconds=num, peak_bytes=int, traffic_bytes=num)
    seen = set()
    for r in d['regions']:
        need(r, id=int, nodes=list, dims=list, form=str, working_set_bytes=int, working_set_bound_bytes=int,
             weight_bytes=int, weights_stay=bool, untiled_seconds=num, tiled_seconds=num, benefit_seconds=num, mac_ratio=num, traffic_bytes=num)
        assert 0 < r['working_set_bound_bytes'] <= r['working_set_bytes']
        assert not hard or r['working_set_bytes'] <= d['target']['fast_bytes'], 'a scratchpad that does not hold its tiles'
        assert r['form'] in ('scan', 'unrolled', 'loop-peeled', 'loop', 'prescan'), r['form']
        assert len(r['dims']) in (1, 2, 3) and all(d['tiles'] >= 2 for d in r['dims'])
        assert not seen & set(r['nodes']), 'a node in two regions'
        seen |= set(r['nodes'])
        assert abs(r['benefit_seconds'] - (r['untiled_seconds'] - r['tiled_seconds'])) <= 1e-6 * max(r['untiled_seconds'], 1e-9)
    for b in d['barriers']: need(b, node=str, op=str, reason=str)
    for r in d['refusals']: need(r, nodes=list, reason=str)
    assert d['tiled']['traffic_bytes'] >= d.get('compulsory_bytes', 0), 'below the lower bound'
    print(len(d['regions']), len(d['barriers']))


def heights(path):
    """Print each region and the bytes of its arena."""
    for r in json.load(open(path))['regions']:
        print(r['id'], r.get('arena', {'height_bytes': r['working_set_bytes']})['height_bytes'])


def dialect(plan_file, report_file):
    """Members that the plan and the report share have the same values."""
    plan, report = (json.load(open(p)) for p in (plan_file, report_file))
    names = [n['name'] for n in report['nodes']]
    def same(a, b, what):
        for k in a.keys() & b.keys() - {'node', 'id'}:
            if isinstance(a[k], float) or isinstance(b[k], float):
                if abs(a[k] - b[k]) > 1e-8 * abs(b[k]) + 1e-12: raise SystemExit(f'{what}: {k} is {a[k]} and {b[k]}')
            elif a[k] != b[k]: raise SystemExit(f'{what}: {k} is {a[k]} and {b[k]}')
        return a.keys() & b.keys()
    for x, least in (('regions', 14), ('barriers', 3), ('refusals', 2)):
        if len(plan[x]) != len(report[x]): raise SystemExit(f'{x}: {len(plan[x])} and {len(report[x])}')
        for a, b in zip(plan[x], report[x]):
            if len(same(a, b, x)) < least: raise SystemExit(f'{x} share only {sorted(a.keys() & b.keys())}')
            if 'nodes' in a and a['nodes'] != [names[k] for k in b['members']]: raise SystemExit(f'{x}: other nodes')
            if 'op' in a and a['node'] != names[b['node']]: raise SystemExit(f'{x}: another node')
    if not plan['regions']: raise SystemExit('nothing to compare')


def hostile(folder):
    """Names of nodes that break JSON and terminals."""
    m = onnx.load(folder + '/vgg16_head.onnx')
    for k, n in enumerate(m.graph.node):
        n.name = f'a"b\\c\n\x1b[31m\u00e9{k}'
    onnx.save(m, folder + '/hostile.onnx')


if __name__ == '__main__':
    commands(check, heights, dialect, hostile)
