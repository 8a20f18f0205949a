#!/usr/bin/env python3
"""What is passed on, looked into: release_check.py DIST (`make release`).

wheels       the tag says any Python 3, and no file asks for a library of Python; every library beside the package has a text of its licence
             and stands in the bill of materials; no text is the GPL's, but of what has GCC's runtime exception
archive      one folder; what it holds is known, and no file of it was compiled
both         the metadata's version is the name's, and no link of the description is relative
"""
import argparse
import email
import glob
import json
import os
import re
import sys
import tarfile
import zipfile

# Files of the archive below its one folder.
KNOWN = re.compile(r"(PKG-INFO|setup\.(py|cfg)|pyproject\.toml|MANIFEST\.in|README\.md|LICENSE|onnx_tile/[\w/]+\.(py|typed)|onnx_tile/py\.typed"
                   r"|onnx_tile\.egg-info/[\w-]+(\.txt)?|tree/(Makefile|scripts/setup\.sh|reports/benefit\.xsd|include/[\w]+\.(h|def)"
                   r"|python/native/\w+\.(c|map)|src/[\w/]+\.(c|h|def|inc|css|js)))$")
# Bundled libraries by what begins their names: the package of Debian that has their licence, and stands in the bill.
BUNDLED = {"libdnnl": r"libdnnl\d+", "libgomp": "libgomp1", "libprotobuf-c": "libprotobuf-c1", "libxml2": "libxml2", "liblzma": "liblzma5",
           "libonnxtile-no-icu": r"onnx-tile|onnx_tile", "libOpenCL": "ocl-icd-libopencl1"}
GPL = re.compile(r"GNU (Lesser )?General Public License|^License:.*\bL?GPL", re.M | re.I)
# Texts that speak of the GPL and do not put what is bundled under it, and why: what they must say.
EXCUSED = {"libgomp1": re.compile(r"GCC RUNTIME LIBRARY EXCEPTION"),
           "liblzma5": re.compile(r"liblzma is in the public domain")}  # the package's programs are not bundled

problems = []


def problem(where, what):
    """Remember what is wrong."""
    problems.append(f"{os.path.basename(where)}: {what}")


def check_metadata(path, raw, licence):
    """Of the wheel or archive: version, licence, links."""
    told = email.message_from_string(raw)
    if f"-{told['Version']}" not in os.path.basename(path):
        problem(path, f"is of version {told['Version']}")
    if not re.fullmatch(licence, told["License-Expression"] or ""):
        problem(path, f"states the licence {told['License-Expression']}")
    if not told.get_all("License-File"):
        problem(path, "names no licence file")
    for where in re.findall(r"\]\(([^)\s]+)\)", told.get_payload()):
        if not re.match(r"[a-z]+:|#", where):
            problem(path, f"its description links to {where}, which leads nowhere")


def needed_python(data):
    """Whether a binary asks for Python's own library or its functions."""
    return re.search(rb"\0(libpython[\w.]*|Py_Initialize\w*|PyModule_\w+|PyInit_\w+)\0", data) is not None


def check_bundled(path, z, names):
    """Libraries beside the package: licence texts and the bill of materials. Both, by name."""
    licences = {os.path.basename(n): z.read(n).decode("utf-8", "replace") for n in names if "/licenses/" in n and ".dist-info/" in n and n[-1] != "/"}
    bill = [c["name"] for n in names if "/sboms/" in n and n.endswith(".json") for c in json.loads(z.read(n))["components"]]
    libraries = [os.path.basename(n) for n in names if re.match(r"onnx_tile\.libs/.", n)]
    for name in libraries:
        package = next((p for stem, p in BUNDLED.items() if name.startswith((stem + "-", stem + "."))), None)
        if not package:
            problem(path, f"bundles {name}, of which nothing is known here")
            continue
        for what, there in (("no licence text", licences), ("no line in its bill of materials", bill)):
            if not any(re.fullmatch(package, n) for n in there):
                problem(path, f"has {what} of {name}")
    for name, text in licences.items():
        if GPL.search(text) and not any(re.fullmatch(n, name) and excuse.search(text) for n, excuse in EXCUSED.items()):
            problem(path, f"the licence text {name} speaks of the GPL")
    return libraries, licences


def check_wheel(path):
    """One wheel; what it holds, in a line."""
    if not re.search(r"-py3-none-manylinux_\d+_\d+_(x86_64|aarch64)\.whl$", path):
        problem(path, "its tag is not that of any Python 3 on any Linux of a C library")
    with zipfile.ZipFile(path) as z:
        names = z.namelist()
        metadata = [n for n in names if n.endswith(".dist-info/METADATA")]
        check_metadata(path, z.read(metadata[0]).decode(), r"Apache-2\.0( AND [\w.-]+( WITH [\w.-]+)?)*")
        for name in names:
            if re.search(r"\.so(\.|$)|/bin/", name) and needed_python(z.read(name)):
                problem(path, f"{name} is bound to one Python")
        for name in ("onnx_tile/bin/onnx-tile", "onnx_tile/lib/libonnxtile.so", "onnx_tile/py.typed"):
            if name not in names:
                problem(path, f"lacks {name}")
        libraries, licences = check_bundled(path, z, names)
        whole = sum(i.file_size for i in z.infolist())
    return f"{len(names)} files, {whole / 1e6:.1f} MB unpacked; {len(libraries)} libraries, {len(licences)} licence texts"


def check_archive(path):
    """The source archive; what it holds, in a line."""
    with tarfile.open(path) as t:
        members = t.getmembers()
        top = {m.name.split("/")[0] for m in members}
        if top != {os.path.basename(path)[:-len(".tar.gz")]}:
            problem(path, f"holds the folders {sorted(top)}")
        files = [m for m in members if not m.isdir()]
        for m in files:
            name = m.name.partition("/")[2]
            if not m.isfile() or not KNOWN.match(name):
                problem(path, f"holds {name}, which is not known")
            elif t.extractfile(m).read(4) == b"\x7fELF":
                problem(path, f"holds {name}, which was compiled")
        raw = next((m for m in files if m.name.count("/") == 1 and m.name.endswith("/PKG-INFO")), None)
        if raw:
            check_metadata(path, t.extractfile(raw).read().decode(), r"Apache-2\.0")
    return f"{len(files)} files, {sum(m.size for m in files) / 1e6:.1f} MB unpacked"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dist")
    a = ap.parse_args()
    found = [(p, check_wheel(p)) for p in sorted(glob.glob(os.path.join(a.dist, "onnx_tile-*.whl")))]
    found += [(p, check_archive(p)) for p in sorted(glob.glob(os.path.join(a.dist, "onnx_tile-*.tar.gz")))]
    found += [(p, "Debian package") for p in sorted(glob.glob(os.path.join(a.dist, "*.deb")))]
    if not any(p.endswith(".whl") for p, _ in found) or not any(p.endswith(".gz") for p, _ in found):
        problem(a.dist, "no wheel, or no archive: run 'make release'")
    for path, told in found:
        print(f"{os.path.basename(path)}  {os.path.getsize(path) / 1e6:.1f} MB  ({told})")
    for line in problems:
        print(f"release: error: {line}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
