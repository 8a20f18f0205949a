#!/usr/bin/env python3
"""The engine as an operator, or as an execution provider, in every release of ONNX Runtime that pip finds for this Python.

  ort_versions.py dist [--provider] [--from 1.15.1] [--to VERSION] [--write docs/onnxruntime-operators.md]

dist: the folder of the wheel (`make wheel`). Each release is installed in turn into a virtual environment, where test_ort.py is run, or
with --provider (docs/provider.md, from 1.22.1 on) test_provider.py. Releases before 1.16, or 1.23, have to be refused in one line. --write replaces what stands between the two marks of that file. Exit 1 when a release fails.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts"))
import marked_table
# Of each way: the tests, the first release that is tried, the first that is not refused, and what registers it.
OPERATOR = ("test_ort", "1.15.1", (1, 16), "import onnxruntime, onnx_tile; onnxruntime.SessionOptions().register_custom_ops_library(onnx_tile.ort_library())")
PROVIDER = ("test_provider", "1.22.1", (1, 23), "import onnx_tile; onnx_tile.register_ep()")


def parts(version):
    return tuple(int(x) for x in version.split("."))


def releases(pip, first, last):
    """Versions of onnxruntime, the oldest first."""
    told = subprocess.run([*pip, "index", "versions", "onnxruntime"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"Available versions: (.*)", told).group(1).split(", ")
    return sorted((v for v in found if parts(first) <= parts(v) and (not last or parts(v) <= parts(last))), key=parts)


def refused(python, register, environment):
    """The line with which a release that is too old is refused; None: it is not."""
    p = subprocess.run([python, "-c", register], capture_output=True, text=True, env=environment)
    line = re.search(r"(?:onnx_tile|UsageError): (ONNX Runtime .* is too old: .*)", p.stderr)
    return line.group(1).strip() if p.returncode == 1 and line else None


def run_tests(python, tests, environment):
    """What the tests say at last, and whether they passed."""
    p = subprocess.run([python, "-m", "unittest", tests], cwd=HERE, capture_output=True, text=True, env=environment)
    ran = re.search(r"Ran (\d+) tests", p.stderr)
    skipped = re.search(r"skipped=(\d+)", p.stderr)
    if p.returncode or not ran:
        return p.stderr.strip()[-2000:], False
    n = int(skipped.group(1)) if skipped else 0
    return f"{int(ran.group(1)) - n} passed" + (f", {n} skipped" if n else ""), True


def rows(results):
    """Markdown: releases that follow one another and say the same in one row, the first and the last of them."""
    groups = []
    for version, text in results:
        if groups and groups[-1][1] == text:
            groups[-1][0].append(version)
        else:
            groups.append(([version], text))
    named = [(v[0] if len(v) == 1 else f"{v[0]} to {v[-1]}, {len(v)} releases", text) for v, text in groups]
    return "\n".join(["| ONNX Runtime | |", "|---|---|"] + [f"| {v} | {text} |" for v, text in named])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dist")
    ap.add_argument("--provider", action="store_const", const=PROVIDER, default=OPERATOR, dest="way")
    ap.add_argument("--from", dest="first")
    ap.add_argument("--to", dest="last")
    ap.add_argument("--write", metavar="FILE")
    a = ap.parse_args()
    tests, first, taken, register = a.way
    wheel, = glob.glob(os.path.join(a.dist, "onnx_tile-*.whl"))
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ONNX_TILE_LIBRARY", "ONNX_TILE_PROGRAM")}
    environment["ONNX_TILE_CACHE"] = "off"
    results, failed = [], 0
    with tempfile.TemporaryDirectory() as root:
        venv.create(root, with_pip=True)
        python = os.path.join(root, "bin", "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        for version in releases(pip, a.first or first, a.last):
            numpy = "numpy<2" if parts(version) < (1, 19) else "numpy>=2"
            subprocess.run([*pip, "install", "--quiet", wheel, "onnx", numpy, f"onnxruntime=={version}"], check=True)
            if parts(version) < taken:
                line = refused(python, register, environment)
                text, ok = (f"refused: `{line.replace(version, '...')}`", True) if line else ("not refused", False)
            else:
                text, ok = run_tests(python, tests, environment)
            print(f"{version}: {text}", flush=True)
            failed += not ok
            results.append((version, text if ok else "FAILED"))
    if a.write:
        marked_table.replace(a.write, __file__, rows(results))
    print(f"{len(results) - failed} releases passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
