"""Planted faults in archives and wheels: release.py ROOT FOLDER. scripts/release_check.py must find each, and nothing in sound ones."""
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile

ROOT, FOLDER = sys.argv[1:]
METADATA = "Metadata-Version: 2.4\nName: onnx-tile\nVersion: 0.1.0\nLicense-Expression: %s\nLicense-File: LICENSE\n\n%s\n"
WHEEL = "onnx_tile-0.1.0-py3-none-manylinux_2_35_x86_64.whl"
ARCHIVE = "onnx_tile-0.1.0.tar.gz"
INFO = "onnx_tile-0.1.0.dist-info/"


def wheel_files():
    """A sound wheel's files, by name."""
    bill = {"components": [{"name": "onnx_tile"}, {"name": "libdnnl2"}, {"name": "libgomp1"}]}
    return {"onnx_tile/bin/onnx-tile": b"\x7fELF", "onnx_tile/lib/libonnxtile.so": b"\x7fELF", "onnx_tile/py.typed": b"",
            "onnx_tile.libs/libdnnl-0a.so.2": b"", "onnx_tile.libs/libgomp-0a.so.1": b"",
            INFO + "licenses/onnx_tile/licenses/libdnnl2": b"Apache License",
            INFO + "licenses/onnx_tile/licenses/libgomp1": b"GNU General Public License ... GCC RUNTIME LIBRARY EXCEPTION",
            INFO + "sboms/auditwheel.cdx.json": json.dumps(bill).encode(),
            INFO + "METADATA": (METADATA % ("Apache-2.0 AND MIT", "See [here](https://example.org/x).")).encode()}


def archive_files():
    """A sound archive's files, by name below its folder."""
    return {"PKG-INFO": (METADATA % ("Apache-2.0", "Words.")).encode(), "setup.py": b"", "tree/Makefile": b"", "tree/src/base/arena.c": b"int x;"}


def write(wheel, archive, wheel_name=WHEEL, top=ARCHIVE[:-7]):
    """Put both into an empty folder; its path."""
    folder = os.path.join(FOLDER, "dist")
    subprocess.run(["rm", "-rf", folder], check=True)
    os.mkdir(folder)
    with zipfile.ZipFile(os.path.join(folder, wheel_name), "w") as z:
        for name, data in wheel.items():
            z.writestr(name, data)
    with tarfile.open(os.path.join(folder, ARCHIVE), "w:gz") as t:
        for name, data in archive.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(data)
            t.addfile(member, io.BytesIO(data))
    return folder


def check(what, folder, said):
    """The check must fail and say that; `said` None: it must pass."""
    p = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "release_check.py"), folder], capture_output=True, text=True, check=False)
    good = p.returncode == 0 and not p.stderr if said is None else p.returncode == 1 and said in p.stderr and p.stderr.count("\n") == 1
    if not good:
        print(f"FAIL: {what}: exit {p.returncode}: {p.stdout}{p.stderr}")
    return good


def changed(files, **more):
    """A copy with other contents; None takes a file out. Keys are ends of names."""
    out = dict(files)
    for end, data in more.items():
        name = next((n for n in out if n.endswith(end)), end)
        if data is None:
            del out[name]
        else:
            out[name] = data
    return out


def main():
    w, s = wheel_files(), archive_files()
    info = (METADATA % ("Apache-2.0 AND MIT", "See [here](docs/guide.md).")).encode()
    gpl = b"GNU General Public License, version 3"
    cases = [
        ("sound", write, (w, s), {}, None),
        ("tag of one Python", write, (w, s), {"wheel_name": "onnx_tile-0.1.0-cp311-cp311-manylinux_2_35_x86_64.whl"}, "its tag is not"),
        ("a library of Python", write, (changed(w, **{"libonnxtile.so": b"\x7fELF\0libpython3.11.so.1.0\0"}), s), {}, "bound to one Python"),
        ("an unknown library", write, (changed(w, **{"onnx_tile.libs/libicuuc-0.so": b""}), s), {}, "nothing is known"),
        ("no licence text", write, (changed(w, libdnnl2=None), s), {}, "no licence text of libdnnl"),
        ("not in the bill", write, (changed(w, **{"auditwheel.cdx.json": b'{"components": [{"name": "libgomp1"}]}'}), s), {}, "no line in its bill"),
        ("GPL", write, (changed(w, libdnnl2=gpl), s), {}, "speaks of the GPL"),
        ("GPL without the exception", write, (changed(w, libgomp1=gpl), s), {}, "speaks of the GPL"),
        ("a relative link", write, (changed(w, METADATA=info), s), {}, "docs/guide.md, which leads nowhere"),
        ("no program", write, (changed(w, **{"bin/onnx-tile": None}), s), {}, "lacks onnx_tile/bin/onnx-tile"),
        ("another licence", write, (changed(w, METADATA=(METADATA % ("GPL-3.0-only", "")).encode()), s), {}, "states the licence GPL"),
        ("a stranger's file", write, (w, changed(s, **{"tree/notes.txt": b""})), {}, "tree/notes.txt, which is not known"),
        ("what was compiled", write, (w, changed(s, **{"tree/src/base/a.c": b"\x7fELF"})), {}, "which was compiled"),
        ("another folder", write, (w, s), {"top": "other"}, "holds the folders"),
    ]
    results = [check(what, make(*arguments, **more), said) for what, make, arguments, more, said in cases]
    os.remove(os.path.join(write(w, s), ARCHIVE))
    results.append(check("no archive", os.path.join(FOLDER, "dist"), "no wheel, or no archive"))
    print(f"{sum(results)} of {len(results)} as they should be")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
