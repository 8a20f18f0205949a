#!/usr/bin/env python3
"""plan-memory --pairs on placement problems with a price on reuse, as dsa-solver writes them.

    scripts/priced_bench.py TOOL FOLDER [--time-limit S] [--only WORD] [--runs N]

FOLDER holds JSON files: pools with a capacity, buffers with lifetimes, pairs with a weight, pairs that must never share bytes. Each pool is a
memory of its own, so a run of its own; a reserved range is a buffer at a fixed offset; "never" is a weight that no sum of others reaches. What
comes back is checked here, by code of its own. One line a problem that costs something or is not proved, then the sums."""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

NEVER = 1_000_000


def read_pools(path):
    """[(capacity, rows, pairs)] of a problem: rows (name, lower, upper, size, alignment, offset or ''), pairs (row, row, weight)."""
    problem = json.loads(path.read_text())["problem"]
    soft = [(p["first"], p["second"], p["cost"]) for p in problem["cost_model"]["reuse_penalties"]]
    hard = [(p["first"], p["second"], NEVER) for p in problem["constraints"]["separations"]]
    for pool in problem["pools"]:
        buffers = [b for b in problem["buffers"] if b["allowed_pools"] == [pool["id"]]]
        if not buffers:
            continue
        at = {b["id"]: k for k, b in enumerate(buffers)}
        spans = [b["live_intervals"][0] for b in buffers]
        rows = [(f"b{b['id']}", s["lower"], s["upper"], b["size"], b["alignment"], "") for b, s in zip(buffers, spans)]
        first, last = min(s["lower"] for s in spans), max(s["upper"] for s in spans)
        rows += [(f"reserved{k}", first, last, r["end"] - r["begin"], 1, r["begin"]) for k, r in enumerate(pool["reserved_ranges"])]
        yield pool["capacity"], rows, [(at[a], at[b], w) for a, b, w in soft + hard if a in at and b in at]


def price(rows, pairs, offsets, capacity):
    """Checks the plan; (sum of the weights that are paid, of those that never may be)."""
    def meet(a, b, from_a, to_a, from_b, to_b):
        return from_a[a] < to_b[b] and from_b[b] < to_a[a]
    lower, upper = [r[1] for r in rows], [r[2] for r in rows]
    end = [o + r[3] for o, r in zip(offsets, rows)]
    for k, row in enumerate(rows):
        if offsets[k] % row[4] or offsets[k] < 0 or end[k] > capacity or (row[5] != "" and offsets[k] != row[5]):
            sys.exit(f"buffer {row[0]} at {offsets[k]}: not allowed")
        for j in range(k):
            if meet(k, j, lower, upper, lower, upper) and meet(k, j, offsets, end, offsets, end):
                sys.exit(f"buffers {row[0]} and {rows[j][0]} overlap")
    paid = [w for a, b, w in pairs if meet(a, b, offsets, end, offsets, end)]
    return sum(w for w in paid if w < NEVER), sum(w for w in paid if w >= NEVER)


def run(tool, folder, pool, options, runs):
    """(fits, paid, bound, proved, seconds of planning: the least of the runs) of a memory."""
    capacity, rows, pairs = pool
    with open(folder / "t.csv", "w", newline="") as f:
        csv.writer(f).writerows([("id", "lower", "upper", "size", "alignment", "offset"), *rows])
    with open(folder / "p.csv", "w", newline="") as f:
        csv.writer(f).writerows([("first", "second", "weight"), *((rows[a][0], rows[b][0], w) for a, b, w in pairs)])
    seconds = []
    for _ in range(runs):
        done = subprocess.run([tool, "plan-memory", "t.csv", "--pairs", "p.csv", "--json", "--capacity", str(capacity), *options],
                              cwd=folder, capture_output=True, text=True)
        seconds.append(json.loads(done.stdout)["time_seconds"] if done.returncode == 0 else 0.0)
    if done.returncode == 3:
        return False, 0, 0, "proved infeasible" in done.stderr, 0.0
    if done.returncode:
        sys.exit(done.stderr)
    out = json.loads(done.stdout)
    offsets = [b["offsets_bytes"][0] for b in out["placed"]]
    paid, never = price(rows, pairs, offsets, capacity)
    scope = out["scopes"][0]
    if pairs and scope["reuse_cost"] != paid + never:
        sys.exit(f"it says {scope['reuse_cost']}, {paid + never} is paid")
    bound, proved = (scope["reuse_cost_bound"], scope["reuse_cost_proved"]) if pairs else (0, True)
    return never == 0, paid, bound % NEVER if never == 0 else bound, proved, min(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=1, help="of each, for the time, which is that of planning alone")
    a = parser.parse_args()
    options = [f"--time-limit={a.time_limit}"] if a.time_limit else []
    tool = str(pathlib.Path(a.tool).resolve())
    files = sorted(p for p in a.folder.glob("*.json") if a.only in p.name)
    total = fit = proofs = none = 0
    times = []
    print(f"{'paid':>6} {'bound':>6} {'buffers':>7} {'seconds':>8}  problem")
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            pools = list(read_pools(path))
            results = [run(tool, pathlib.Path(folder), p, options, a.runs) for p in pools]
            fits = all(r[0] for r in results)
            proved = all(r[3] for r in results) if fits else any(not r[0] and r[3] for r in results)
            paid, bound, seconds = (sum(r[k] for r in results) for k in (1, 2, 4))
            times.append(seconds)
            proofs += proved
            fit += fits
            none += fits and paid == 0
            total += paid if fits else 0
            if paid or not proved or not fits:
                word = ("proved" if proved else "best known") if fits else ("proved infeasible" if proved else "no fit found")
                print(f"{paid if fits else '-':>6} {bound if fits else '-':>6} {sum(len(p[1]) for p in pools):>7} {seconds:>8.4f}  {path.stem}: {word}")
    print(f"{len(files)} problems: {fit} fit, {proofs} proofs, {none} without a price, sum {total}; the slowest took {max(times):.4f} s, "
          f"all {sum(times):.3f} s")


if __name__ == "__main__":
    main()
