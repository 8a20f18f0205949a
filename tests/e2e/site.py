"""site.py ROOT FOLDER: scripts/site.py makes references of all that is public, and its check of links finds planted faults."""
import importlib.util
import os
import re
import sys

ROOT, FOLDER = sys.argv[1:]
spec = importlib.util.spec_from_file_location("site_script", os.path.join(ROOT, "scripts", "site.py"))
site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site)
problems = []


def need(what, good):
    """Remember what is not so."""
    if not good:
        problems.append(what)


def check_references():
    """Against the header and the package, read in another way."""
    with open(os.path.join(ROOT, "include", "onnx_tile.h"), encoding="utf-8") as f:
        functions = set(re.findall(r"\b(onnx_tile_\w+)\(", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)))
    c = site.c_reference()
    headings = re.findall(r"^### `(\w+)`$", c, re.M)
    need(f"functions of C: {sorted(functions - set(headings))} have no heading", len(functions) > 40 and functions <= set(headings))
    bare = [h for h in re.findall(r"^### `(\w+)`\n\n```c\n[^`]*```\n\n(?=#|\Z)", c, re.M)]
    need(f"most functions of C have their comment; without: {bare}", len(bare) * 4 < len(headings))
    python = site.python_reference()
    for name in ("tile", "Session", "Stepper", "apply", "TilePass", "UsageError"):
        need(f"Python's {name} has no heading", f"### `{name}`\n" in python)
    need("signature of tile, one parameter a line", re.search(r"^tile\(\n    model: Model,\n    out: .*\n    \*,\n    goal: .*,\n(    .*,\n)+\) -> Tuple", python, re.M))
    need("a short signature, on one line", re.search(r"^ort_library\(\) -> ", python, re.M))
    for item in ("**`budget`**: bytes that the whole", "**`design`**: the size", "**`ort_operators`**, for that one: "):
        need(f"no item of a list: {item}", f"\n- {item}" in python)
    need("what follows a list is no part of it", "\n\nRaises ModelError naming node" in python)
    need("docstring of tile", "Rewrite a model so that chains of operators run tile by tile." in python)


def check_checker():
    """Four faults among sound links."""
    os.mkdir(os.path.join(FOLDER, "s"))
    pages = {"index.html": '<h1 id="top">x</h1><a href="b.html#there">1</a><a href="#top">2</a><a href="https://example.org">3</a>'
                           '<a href="gone.html">4</a><a href="b.html#gone">5</a><img src="gone.png">',
             "b.html": '<p id="there"></p><a href="index.html">1</a><script src="https://example.org/x.js"></script>'}
    for name, text in pages.items():
        with open(os.path.join(FOLDER, "s", name), "w", encoding="utf-8") as f:
            f.write(text)
    found, looked_up, count = site.check_links(os.path.join(FOLDER, "s"))
    need(f"pages and links: {count}, {looked_up}", (count, looked_up) == (2, 6))
    for what in ("gone.html is not there", "b.html#gone: no such anchor", "gone.png is not there", "b.html: loads https://example.org/x.js from another host"):
        need(f"not found: {what}", sum(what in line for line in found) == 1)
    need(f"other faults: {found}", len(found) == 4)


check_references()
check_checker()
print("\n".join("FAIL: " + p for p in problems) or "references and links: all good")
sys.exit(bool(problems))
