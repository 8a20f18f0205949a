#!/usr/bin/env python3
"""Install the wheel into a fresh virtual environment and run the tests of the Python package there.

  run.py dist [--keep DIR] [--package NAME==VERSION]... [TEST]...

dist: the folder of the wheel (`make wheel`). Other packages are those of scripts/requirements.txt, requirements-large.txt and requirements-hosts.txt, or the
ones that are named; tests of large files and of hosts are skipped without theirs.
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


def pinned():
    """What the tests need, in the versions of scripts/requirements.txt, requirements-large.txt and requirements-hosts.txt."""
    found = []
    for name, which in (("requirements.txt", r"(onnx|onnxruntime|numpy)=="), ("requirements-large.txt", r"\w"), ("requirements-hosts.txt", r"\w")):
        with open(os.path.join(HERE, "..", "..", "scripts", name), encoding="ascii") as f:
            found += [line.strip() for line in f if re.match(which, line)]
    return found


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dist")
    ap.add_argument("tests", nargs="*")
    ap.add_argument("--keep")
    ap.add_argument("--package", action="append")
    a = ap.parse_intermixed_args()
    wheels = glob.glob(os.path.join(a.dist, "onnx_tile-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"run.py: {len(wheels)} wheels in {a.dist}: run 'make wheel' first")
    with tempfile.TemporaryDirectory() as folder:
        root = a.keep or os.path.join(folder, "venv")
        venv.create(root, with_pip=True, clear=True)
        python = os.path.abspath(os.path.join(root, "bin", "python"))
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels, *(a.package or pinned())], check=True)
        command = [python, "-m", "unittest", *(a.tests or ["discover", "-s", HERE])]
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ONNX_TILE_LIBRARY", "ONNX_TILE_PROGRAM")}
        sys.exit(subprocess.run(command, cwd=HERE, env=dict(environment, ONNX_TILE_CACHE="off")).returncode)


if __name__ == "__main__":
    main()
