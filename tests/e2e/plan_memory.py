"""What plan_memory.sh has in Python: tables, and checks of plans that share nothing with the tool."""
import csv
import json
import random
import re

from command_line import commands


def check(before, after, height=None):
    """AFTER has the rows of BEFORE, a legal offset in each, and at most this height."""
    def rows(path):
        with open(path, newline='', encoding='utf-8-sig') as f:
            r = csv.DictReader(f, skipinitialspace=True)
            r.fieldnames = [n.strip().lower() for n in r.fieldnames]
            return [{k: v.strip() for k, v in x.items()} for x in r]
    def pick(row, *names): return next(row[n] for n in names if n in row)
    def read(row, off):
        inc = 1 if 'end' in row else 0
        lo, hi = int(pick(row, 'lower', 'begin', 'start')), int(pick(row, 'upper', 'end')) + inc
        gaps = [tuple(map(int, g.split('-'))) for g in row.get('gaps', '').split() if '@' not in g]
        live = {t for t in range(lo, hi) if not any(a <= t < b + inc for a, b in gaps)}
        return live, int(row['size']), int(off), int(row.get('alignment') or 1)
    a, b = rows(before), rows(after)
    assert len(a) == len(b), 'rows'
    items = []
    for x, y in zip(a, b):
        fixed = x.get('offset', '')
        for k in x:
            if k != 'offset': assert x[k] == y[k], (k, x, y)
        live, size, off, align = read(x, y['offset'])
        assert off >= 0 and off % align == 0, y
        assert fixed in ('', '-1') or int(fixed) == off, ('moved', y)
        for l2, s2, o2 in items: assert not (live & l2 and off < o2 + s2 and o2 < off + size), ('overlap', y)
        items.append((live, size, off))
    top = max((o + s for _, s, o in items), default=0)
    assert height is None or top <= int(height), ('height', top)


def tables(folder):
    """Random tables with alignments and gaps: r0.csv to r5.csv."""
    random.seed(7)
    for k in range(6):
        with open(f'{folder}/r{k}.csv', 'w') as f:
            f.write('id,lower,upper,size,alignment,gaps\n')
            for i in range(40):
                lo = random.randrange(50); hi = lo + random.randrange(1, 30)
                g = f'{lo + 1}-{lo + 3}' if hi - lo > 6 and random.random() < .3 else ''
                f.write(f'b{i},{lo},{hi},{random.randrange(0, 5000)},{random.choice([1, 32, 64, 48])},{g}\n')


def pairs(folder):
    """Pairs for the random tables: q0.csv to q5.csv."""
    random.seed(8)
    for k in range(6):
        with open(f'{folder}/q{k}.csv', 'w') as f:
            f.write('first,second,weight\n')
            for _ in range(80): f.write('b{},b{},{}\n'.format(*random.sample(range(40), 2), random.randrange(5)))


def paid(plan, pairs, facts):
    """The JSON tells the sum of the weights of the pairs that share bytes."""
    with open(plan, newline='') as f: at = {r['id']: (int(r['offset']), int(r['offset']) + int(r['size'])) for r in csv.DictReader(f)}
    total = 0
    with open(pairs, newline='') as f:
        for r in csv.DictReader(f):
            (a, b), (c, d) = at[r['first']], at[r['second']]
            total += int(r['weight']) if a < d and c < b and a < b and c < d else 0
    s = json.load(open(facts))['scopes'][0]
    assert s['reuse_cost'] == total and s['reuse_cost_bound'] <= total, (total, s)
    assert s['reuse_cost_proved'] is (s['reuse_cost_bound'] == total), s


def price_json(path, cost):
    """JSON of the five buffers with a price, proved; or, cost 'none', without one."""
    s = json.load(open(path))['scopes'][0]
    if cost == 'none': assert not any(k.startswith('reuse') for k in s), s
    else: assert s['reuse_cost'] == s['reuse_cost_bound'] == int(cost) and s['reuse_cost_proved'] is True, s


def table_json(path):
    """JSON of a table with a hostile name."""
    r = json.load(open(path))
    s = r['scopes'][0]
    assert r['file'].endswith('hostile.csv') and r['kernel'] is None and r['target'] is None and r['mode'] == 'auto'
    assert r['buffers'] == 3 and s['height_bytes'] == s['lower_bound_bytes'] == s['capacity_bytes'] == 8192 and s['sum_bytes'] == 12288
    assert s['proved'] is True and s['timed_out'] is False and s['gap_percent'] == 0 and s['mode'] == 'search' and s['scope'] is None
    assert r['warnings'] == [] and r['time_seconds'] >= 0
    a, b, c = r['placed']
    assert a['names'] == ['</title><script>"\ufffd\u0001'] and b['names'] == ['b'] and all(x['scope'] is None for x in (a, b, c))
    assert [x['live'] for x in (a, b, c)] == [[{'lower': 0, 'upper': 9}], [{'lower': 0, 'upper': 3}], [{'lower': 3, 'upper': 9}]]
    assert all(x['size_bytes'] == 4096 and len(x['offsets_bytes']) == 1 for x in (a, b, c))
    assert sorted([a['offsets_bytes'][0], b['offsets_bytes'][0]]) == [0, 4096] and b['offsets_bytes'] == c['offsets_bytes']


def kernel_json(path, kernel):
    """JSON of a kernel: places are those that are printed, what lives together lies apart."""
    r = json.load(open(path))
    assert r['kernel'] and r['target'] == 'ascend-a2' and r['scopes'] and r['buffers'] == sum(s['buffers'] for s in r['scopes'])
    for s in r['scopes']:
        assert s['lower_bound_bytes'] <= s['height_bytes'] <= s['sum_bytes'] or s['doubled'], s
        assert s['capacity_bytes'] is None or s['height_bytes'] <= s['capacity_bytes']
        assert s['mode'] in ('sequential', 'reuse', 'search') and s['level'] in (0, 1, 2, 3, None)
    # every buffer where the printed kernel has it; what lives together lies apart; the heights are those of the summary
    printed = {m[1]: [int(o) for o in m[2].split(',')] for m in re.finditer(r'(?:alloc|workspace|place|place yield) (\S+):.* offset=(\S+)', open(kernel).read())}
    tops, seen = {}, {}
    assert len(r['placed']) == r['buffers']
    for b in r['placed']:
        assert b['names'] and b['live'] == sorted(b['live'], key=lambda x: x['lower']) and all(x['lower'] < x['upper'] for x in b['live'])
        for name in b['names']: assert printed.pop(name, b['offsets_bytes']) == b['offsets_bytes'], name
        if not b['live']: continue
        live = {t for x in b['live'] for t in range(x['lower'], x['upper'])}
        for o in b['offsets_bytes']:
            tops[b['scope']] = max(tops.get(b['scope'], 0), o + b['size_bytes'])
            for l2, o2, s2 in seen.setdefault(b['scope'], []):
                assert not live & l2 or o >= o2 + s2 or o2 >= o + b['size_bytes'], b
            seen[b['scope']].append((live, o, b['size_bytes']))
    assert not printed and tops == {s['scope']: s['height_bytes'] for s in r['scopes']}, (printed, tops)


def accesses(path):
    """JSON of bank conflicts."""
    a = json.load(open(path))['accesses']
    assert [(x['kind'], x['line'], x['value'], x['taken'], x['least']) for x in a] == [('bank-conflict', 14, 'a', 65536, 2048), ('bank-conflict', 16, 'b', 65536, 2048)], a


def footprint(path):
    """JSON of a footprint: as the text has it."""
    f, = json.load(open(path))['footprint']
    assert [(x['line'], x['last_line'], x['live_bytes'], x['next']) for x in f['lines']] == [
        (6, 6, 16384, 'hole'), (7, 7, 24576, 'hole'), (8, 9, 28672, 'goes'), (10, 10, 12288, 'hole'), (11, 11, 4096, 'hole')], f['lines']
    assert f['lines'][2]['goes'] == f['goes'] == [{'name': 'c', 'bytes': 4096, 'slots': 1}] and f['lines'][2]['missing_bytes'] == 4096, f
    assert (f['peak_line'], f['peak_bytes'], len(f['at_peak'])) == (8, 28672, 3), f
    assert f['less'] == {'capacity_bytes': 24576, 'fits': False, 'certain': True} and f['more']['fits'] and f['more']['level'] is None, f


if __name__ == '__main__':
    commands(check, tables, pairs, paid, price_json, table_json, kernel_json, accesses, footprint)
