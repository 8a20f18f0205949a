#!/usr/bin/env python3
"""Complete the bill of materials that auditwheel has put into a wheel: wheel_bill.py WHEEL PACKAGES

auditwheel finds the packages of files that it copies from where they were installed. PACKAGES has those of all that are bundled, "NAME VERSION" a
line; what the bill lacks of them is added, and the wheel's RECORD says so.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
from urllib.parse import quote


def complete(path, packages):
    """Add what is missing to the bill in `path`; the names that were added."""
    with open(path, encoding="utf-8") as f:
        bill = json.load(f)
    there = {c["name"] for c in bill["components"]}
    added = [p for p in packages if p[0] not in there]
    distribution = next(c["purl"].split("/")[1] for c in bill["components"] if c.get("purl", "").startswith("pkg:deb/"))
    for name, version in added:
        purl = f"pkg:deb/{distribution}/{name}@{quote(version, safe='')}"
        bill["components"].append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(bill, f)
    return [name for name, _ in added]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("wheel")
    ap.add_argument("packages")
    a = ap.parse_args()
    with open(a.packages, encoding="utf-8") as f:
        packages = sorted({tuple(line.split()) for line in f if line.strip()})
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", folder, a.wheel], check=True, stdout=subprocess.DEVNULL)
        root, = glob.glob(os.path.join(folder, "*"))
        bill, = glob.glob(os.path.join(root, "*.dist-info", "sboms", "*.json"))
        if complete(bill, packages):
            subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", os.path.dirname(a.wheel) or ".", root], check=True,
                           stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
