#!/usr/bin/env python3
"""Random packing instances through `plan-memory`: how far above the lower bound, in what time.

  pack_bench.py --tool build/onnx-tile [--n 300,2000,20000] [--limit 8] [--seed 1]
Models of instances: uniform (lifetimes up to a twentieth of the time), power (power-law sizes and lifetimes), nn (short lifetimes in order, a few long ones).
Every output is checked here: alignment is 1, no two buffers that live together overlap. Exits 1 when one is wrong.
"""
import argparse, csv, os, random, subprocess, sys, tempfile, time


def instance(model, n, seed):
    r = random.Random(f'{model} {n} {seed}')
    for i in range(n):
        if model == 'uniform':
            lower, length, size = r.randrange(n), r.randrange(1, n // 20 + 2), r.randrange(1, 1001)
        elif model == 'power':
            lower, length, size = r.randrange(n), min(n // 4 + 1, int(r.paretovariate(1.1))), min(1 << 20, int(16 * r.paretovariate(0.8)))
        else:
            lower = i
            length = r.choice([2, 2, 2, 3, 3, 4, 6, 10]) if r.random() < 0.97 else r.randrange(20, n // 4 + 21)
            size = r.choice([1, 2, 3, 4, 6, 8, 12]) * r.choice([1024, 4096, 16384, 50176])
        yield i, lower, lower + length, size


def check(rows, path):
    """(what is wrong or '', height, lower bound): a sweep over time that keeps the live buffers by offset."""
    with open(path, newline='') as f:
        offset = {int(r['id']): int(r['offset']) for r in csv.DictReader(f)}
    events = sorted([(upper, 0, i, size) for i, lower, upper, size in rows] + [(lower, 1, i, size) for i, lower, upper, size in rows])
    live, now, bound, height = {}, 0, 0, 0
    for _, begins, i, size in events:
        if not begins:
            del live[i]; now -= size
            continue
        a = offset[i]
        if a < 0: return f'{i}: offset {a}', 0, 0
        for j, (b, e) in live.items():
            if a < e and b < a + size: return f'{i} and {j} overlap', 0, 0
        live[i] = (a, a + size); now += size
        bound, height = max(bound, now), max(height, a + size)
    return '', height, bound


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--tool', required=True); ap.add_argument('--n', default='300,2000,20000'); ap.add_argument('--limit', type=float, default=8)
    ap.add_argument('--seed', type=int, default=1); a = ap.parse_args()
    bad = 0
    print('| model | buffers | lower bound | height | above, % | seconds |\n|---|---|---|---|---|---|')
    for n in map(int, a.n.split(',')):
        for model in ('uniform', 'power', 'nn'):
            rows = list(instance(model, n, a.seed))
            with tempfile.TemporaryDirectory() as tmp:
                src, dst = os.path.join(tmp, 'i.csv'), os.path.join(tmp, 'o.csv')
                with open(src, 'w') as f:
                    f.write('id,lower,upper,size\n')
                    f.writelines('%d,%d,%d,%d\n' % r for r in rows)
                t = time.perf_counter()
                p = subprocess.run([a.tool, 'plan-memory', src, '-o', dst, '--time-limit', str(a.limit), '-q'], capture_output=True, text=True)
                t = time.perf_counter() - t
                why, height, bound = check(rows, dst) if p.returncode == 0 else (p.stderr.strip(), 0, 0)
            bad += bool(why)
            print(f'| {model} | {n} | {bound} | {height} | {100 * (height / bound - 1) if bound else 0:.2f} | {t:.1f} | {why}', flush=True)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
