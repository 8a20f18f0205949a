#!/usr/bin/env python3
"""ONNX Runtime alone against ONNX Runtime with the engine as its provider: outputs, memory, time.

  provider_table.py MODELS.json [--goal memory|time] [--rounds N] [--only NAME]... [--write docs/provider.md]

MODELS.json: a list of {"name", "file" (beside it), "shapes": {input: dims}}. Each model is run by processes of their own, one thread, by turns: the
most that a process held (VmHWM), from its beginning to its last run, and its fastest run. Needs onnxruntime (1.23 or newer), numpy and the package;
ONNX_TILE_LIBRARY names another library. Outputs agree where nothing differs by more than 1e-3 (half precision: 2e-2) of the largest value, or of 1e-3
where all are smaller. Exit 1 when some do not. --write replaces what stands between the two marks of that file.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import marked_table

TYPES = {"tensor(float)": "f4", "tensor(float16)": "f2", "tensor(double)": "f8", "tensor(uint8)": "u1", "tensor(int64)": "i8", "tensor(int32)": "i4"}


def child(path, shapes, goal, out):
    """Load and run; what it took."""
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if goal:
        import onnx_tile
        session = onnxruntime.InferenceSession(path, onnx_tile.add_ep(options, goal=goal), enable_fallback=0)
    else:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng, feeds, fastest = np.random.default_rng(0), {}, math.inf
    for v in session.get_inputs():
        dims = shapes.get(v.name) or [d if isinstance(d, int) else 1 for d in v.shape]
        kind = np.dtype(TYPES[v.type])
        feeds[v.name] = rng.integers(0, 256, dims).astype(kind) if kind.kind in "iu" else rng.random(dims, np.float32).astype(kind)
    for _ in range(3):
        begin = time.perf_counter()
        results = session.run(None, feeds)
        fastest = min(fastest, time.perf_counter() - begin)
    with open("/proc/self/status", encoding="ascii") as f:
        most = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    np.savez(out, *results)
    print(json.dumps({"seconds": fastest, "mib": most / 1024}))


def run(path, shapes, goal, out):
    p = subprocess.run([sys.executable, __file__, "--child", path, json.dumps(shapes), goal, out], capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"{path}: {p.stderr.strip()[-1000:]}")
    return json.loads(p.stdout.splitlines()[-1])


def error(a, b):
    """Largest difference of an output against its largest value; infinite: they are not alike."""
    import numpy as np
    worst = 0.0
    for k in a.files:
        x, y = a[k], b[k]
        if x.shape != y.shape or x.dtype != y.dtype:
            return math.inf
        part = 20 if x.dtype == np.float16 else 1
        x, y = x.astype("f8"), y.astype("f8")
        if x.size:
            worst = max(worst, float(np.abs(x - y).max()) / max(float(np.abs(x).max()), 1e-3) / part)
    return worst


def measure(path, shapes, goal, rounds):
    import numpy as np
    alone, provided = [], []
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("alone.npz", "provided.npz")]
        for _ in range(rounds):
            alone.append(run(path, shapes, "", files[0]))
            provided.append(run(path, shapes, goal, files[1]))
        off = error(*(np.load(f) for f in files))
    best = [{k: min(r[k] for r in runs) for k in ("seconds", "mib")} for runs in (alone, provided)]
    return off, best[0], best[1]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models")
    ap.add_argument("--goal", default="memory")
    ap.add_argument("--rounds", type=int, default=1)
    ap.add_argument("--only", action="append")
    ap.add_argument("--write", metavar="FILE")
    a = ap.parse_args()
    with open(a.models, encoding="utf-8") as f:
        models = [m for m in json.load(f) if not a.only or m["name"] in a.only]
    lines, memory, seconds, failed = ["| model | whole process, MB | | time |", "|---|---|---|---|"], 0.0, 0.0, 0
    for m in models:
        off, x, y = measure(os.path.join(os.path.dirname(os.path.abspath(a.models)), m["file"]), m.get("shapes", {}), a.goal, a.rounds)
        failed += not off <= 1e-3
        memory += math.log(y["mib"] / x["mib"])
        seconds += math.log(y["seconds"] / x["seconds"])
        lines.append(f"| {m['name']} | {x['mib']:.0f} -> {y['mib']:.0f} | x{y['mib'] / x['mib']:.2f} | x{y['seconds'] / x['seconds']:.2f} |")
        print(lines[-1], f"error {off:.1e}", flush=True)
    lines.append(f"| geometric mean | | x{math.exp(memory / len(models)):.2f} | x{math.exp(seconds / len(models)):.2f} |")
    print(lines[-1], f"{failed} of {len(models)} differ")
    if a.write:
        marked_table.replace(a.write, __file__, "\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4], sys.argv[5])
        sys.exit(0)
    sys.exit(main())
