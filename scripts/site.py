#!/usr/bin/env python3
"""The documents as a site of static pages (`make site`): site.py OUT [--url ADDRESS]

  README, CONTRIBUTING, CHANGELOG, docs/, reports/, examples/    as they lie in the tree, so that every link between them works
  made/reference-python.md                                       signatures and docstrings of python/onnx_tile
  made/reference-c.md                                            functions and comments of include/onnx_tile.h
  made/reports-gallery.md                                        the sample reports and drawings

Every link and anchor of the pages is looked up afterwards; one that leads nowhere fails. No page asks another host for anything.
"""
import argparse
import ast
import html.parser
import os
import re
import shutil
import sys
import tempfile
from urllib.parse import unquote, urlparse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPIED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs", "reports", "examples", "include")
NAV = [
    {"Start": "README.md"},
    {"Using it": ["docs/guide.md", "docs/reports.md", "made/reports-gallery.md", "docs/dynamic-shapes.md", "docs/exactness.md", "docs/large.md",
                  "docs/steps.md", "docs/json.md", "docs/onnxruntime-operators.md"]},
    {"Reference": ["docs/python.md", "made/reference-python.md", "made/reference-c.md"]},
    {"Results": ["docs/results.md", "docs/matrix.md", "docs/seed-case.md"]},
    {"How it works": ["docs/architecture.md", "docs/design-notes.md", "docs/allocator-simulation.md", "docs/streaming.md", "docs/runtimes.md",
                      "docs/engine.md", "docs/engine-form.md", "docs/devices.md"]},
    {"Buffers and kernels": ["docs/buffer-planning.md", "docs/kernels/language.md", "docs/kernels/rules.md", "docs/kernels/gallery.md",
                             "docs/kernels/mlir.md"]},
    {"Working on it": ["CONTRIBUTING.md", "docs/testing.md", "docs/platforms.md", "docs/adding-an-operator.md", "docs/ot-format.md", "CHANGELOG.md"]},
]


def slug(title, separator):
    """Anchor of a heading, as forges make it and tests/e2e/doc_test.py checks it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", separator)


def read(path):
    """Text of a file of the tree."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


# ---- reference ----

def broken(text):
    """A signature that is too long for a line: one parameter each."""
    first, last, deep = text.index("(") + 1, text.rindex(")", 0, text.find(" -> ") if " -> " in text else None), 0
    parts = [""]
    for c in text[first:last]:
        deep += (c in "([{") - (c in ")]}")
        if c == "," and not deep:
            parts.append("")
        else:
            parts[-1] += c
    return "\n".join([text[:first], *(f"    {p.strip()}," for p in parts), text[last:]])


def signature(f, whole=True):
    """A function as it is called: names, types and defaults; whole: on as many lines as it takes."""
    text = f"{f.name}({ast.unparse(f.args)})" + (f" -> {ast.unparse(f.returns)}" if f.returns else "")
    text = re.sub(r"'([^']*\[[^']*|[A-Z]\w*)'", r"\1", text).replace("self, ", "").replace("(self)", "()")
    return broken(text) if whole and len(text) > 72 else text


def with_list(doc, f):
    """A docstring whose parameters, `name: what it is`, are items of a list."""
    names = "|".join(a.arg for a in [*f.args.args, *f.args.kwonlyargs])
    begins = re.compile(rf"(?:^|[.;)] )({names})((?:, [\w ]+)?):\s", re.M)

    def item(m):
        return f"{m[0][0] if m[0][0] in '.;)' else ''}\n- **`{m[1]}`**{m[2]}: "

    told = []
    for paragraph in doc.split("\n\n"):
        before, found, items = begins.sub(item, paragraph).partition("\n- ") if not paragraph.startswith(" ") else (paragraph, "", "")
        items = re.sub(r"\n+(- |Raises )", lambda m: "\n" + "\n" * (m[1][0] == "R") + m[1], items)
        told += [before] * bool(before) + ["- " + items] * bool(found)
    return "\n\n".join(told)


def dedented(text):
    """A docstring without its indent; what is set off stays so."""
    lines = text.strip().split("\n")
    indent = min((len(s) - len(s.lstrip()) for s in lines[1:] if s.strip()), default=0)
    return "\n".join([lines[0]] + [s[indent:] for s in lines[1:]])


def described(node, name, level):
    """Heading, signature and docstring of a function, or of a class and what is public in it."""
    out = [f"{'#' * level} `{name}`", ""]
    if isinstance(node, ast.FunctionDef):
        out += ["```python", signature(node), "```", ""]
    doc = ast.get_docstring(node, clean=False)
    if doc:
        out += [with_list(dedented(doc), node) if isinstance(node, ast.FunctionDef) else dedented(doc), ""]
    for inner in node.body if isinstance(node, ast.ClassDef) else []:
        if isinstance(inner, ast.FunctionDef) and (inner.name == "__init__" or not inner.name.startswith("_")):
            own = ast.get_docstring(inner, clean=False)
            kind = "property" if any(ast.unparse(d) == "property" for d in inner.decorator_list) else None
            head = inner.name + (f" -> {ast.unparse(inner.returns)}" if inner.returns else "") if kind else signature(inner, whole=False)
            out += [f"**`{head}`**", ""] + ([with_list(dedented(own), inner), ""] if own else [])
    return out


def python_reference():
    """What `import onnx_tile` offers, in the order of __all__, and the public modules beside it."""
    package = "python/onnx_tile"
    tree = ast.parse(read(f"{package}/__init__.py"))
    where = {a.asname or a.name: n.module for n in tree.body if isinstance(n, ast.ImportFrom) and n.level for a in n.names}
    names = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
    out = ["# Python: reference", "", "Made from the docstrings; [python.md](../docs/python.md) is the introduction.", ""]
    modules = [("onnx_tile", [(n, where[n]) for n in names if n in where and n != "__version__"])]
    large = ast.parse(read(f"{package}/large/__init__.py"))
    own = {a.asname or a.name: "large." + n.module for n in large.body if isinstance(n, ast.ImportFrom) and n.level for a in n.names}
    modules += [("onnx_tile.large", [(n, m) for n, m in own.items() if not n.startswith("_")]), ("onnx_tile.ir", [("TilePass", "ir")]), ("onnx_tile.olive", [("OnnxTile", "olive"), ("package_config", "olive")])]
    for module, listed in modules:
        out += [f"## {module}", ""]
        for name, file in listed:
            body = ast.parse(read(f"{package}/{file.replace('.', '/')}.py")).body
            node = next((n for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name), None)
            if node is None:
                sys.exit(f"site: {module}.{name} is not in {file}")
            out += described(node, name, 3)
    return "\n".join(out)


def c_reference():
    """Sections of the header, each function with the comment before it."""
    text = read("include/onnx_tile.h")
    out = ["# C: reference", "", "Made from [onnx_tile.h](../include/onnx_tile.h), whose comments say what each function does.", ""]
    item = re.compile(r"/\* ---- (?P<section>.*?) ---- \*/|(?P<comment>/\*.*?\*/)|(?P<declared>^(?:typedef|const|onnx_tile\w*|void|uint32_t)\b[^;{]*"
                      r"(?:\{[^}]*\}[^;]*)?;)|(?P<blank>\n\n)", re.M | re.S)
    comment = ""
    for m in item.finditer(text):
        if m["section"]:
            out += [f"## {m['section'][0].upper()}{' '.join(m['section'][1:].split())}", ""]
        elif m["comment"]:
            comment = re.sub(r"^ \* ?", "", m["comment"][2:-2].strip(), flags=re.M)
        elif m["declared"]:
            name = re.findall(r"\b(onnx_tile\w*)\s*(?=\(|;|$)", m["declared"])
            declared = re.sub(r"\s+ONNX_TILE_MUST_USE", "", m["declared"])
            out += [f"### `{name[0] if name else declared[:40]}`", ""] if name else []
            out += ["```c", declared, "```", ""] + ([comment, ""] if comment else [])
            comment = ""
    return "\n".join(out)


def gallery():
    """The sample reports, with a picture where there is one."""
    out = ["# Reports to look at", "", "Made by `make reports`; [reports.md](../docs/reports.md) says what is in them.", ""]
    for name in sorted(os.listdir(os.path.join(ROOT, "reports"))):
        stem, end = os.path.splitext(name)
        if end == ".html":
            title = re.search(r"<title>(.*?)</title>", read(f"reports/{name}"), re.S)
            out += [f"## [{title[1].strip() if title else stem}](../reports/{name})", ""]
            if os.path.exists(os.path.join(ROOT, "reports", stem + ".png")):
                out += [f"[![{stem}](../reports/{stem}.png)](../reports/{name})", ""]
    out += ["## Plans of kernels", ""]
    for name in sorted(os.listdir(os.path.join(ROOT, "reports", "kernels"))):
        out += [f"![{name}](../reports/kernels/{name})", ""]
    return "\n".join(out)


# ---- pages ----

def stage(folder):
    """The sources of the pages."""
    for name in COPIED:
        source, target = os.path.join(ROOT, name), os.path.join(folder, name)
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as f:
        f.write("---\nhide: [navigation]\n---\n" + read("README.md"))  # one page: its place is for the lines of code
    os.mkdir(os.path.join(folder, "made"))
    for name, text in (("reference-python", python_reference()), ("reference-c", c_reference()), ("reports-gallery", gallery())):
        with open(os.path.join(folder, "made", name + ".md"), "w", encoding="utf-8") as f:
            f.write(text)


def build(source, out, url):
    """The pages, by mkdocs; a warning fails."""
    from mkdocs.commands.build import build as make_pages
    from mkdocs.config import load_config
    palette = [{"media": f"(prefers-color-scheme: {kind})", "scheme": scheme, "toggle": {"icon": "material/brightness-6", "name": "Light or dark"}}
               for kind, scheme in (("light", "default"), ("dark", "slate"))]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as f:
        f.write("site_name: onnx-tile\n")
        f.flush()
        config = load_config(
            f.name, docs_dir=source, site_dir=out, site_url=url, strict=True, nav=NAV, plugins=["search"], use_directory_urls=False,
            theme={"name": "material", "font": False, "palette": palette, "features": ["navigation.tabs", "navigation.top", "content.code.copy"]},
            markdown_extensions=["tables", "fenced_code", {"toc": {"slugify": slug, "permalink": True}}],
            validation={"anchors": "warn", "unrecognized_links": "warn", "omitted_files": "ignore"})
        make_pages(config)


class Page(html.parser.HTMLParser):
    """What a page links to, loads, and offers as anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attrs):
        """Collect."""
        a = dict(attrs)
        self.anchors.update(x for x in (a.get("id"), a.get("name")) if x)
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        elif tag in ("img", "script", "source", "iframe") and a.get("src"):
            self.loads.append(a["src"])
        elif tag == "link" and a.get("href") and a.get("rel") != "canonical":
            self.loads.append(a["href"])


def check_links(site):
    """Links that lead nowhere, a line each, and how many were looked up."""
    pages = {os.path.join(d, n): None for d, _, names in os.walk(site) for n in names if n.endswith(".html") and n != "404.html"}
    for path in pages:
        pages[path] = Page(path)
    problems, looked_up = [], 0
    for path, page in sorted(pages.items()):
        for where, loaded in [(x, False) for x in page.links] + [(x, True) for x in page.loads]:
            parts = urlparse(where)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    problems.append(f"{os.path.relpath(path, site)}: loads {where} from another host")
                continue
            looked_up += 1
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            if not os.path.exists(target):
                problems.append(f"{os.path.relpath(path, site)}: {where} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                problems.append(f"{os.path.relpath(path, site)}: {where}: no such anchor")
    return problems, looked_up, len(pages)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--url", default="", help="where it will be, for the list of pages that search engines read")
    a = ap.parse_args()
    out = os.path.abspath(a.out)
    with tempfile.TemporaryDirectory() as folder:
        stage(folder)
        build(folder, out, a.url)
    problems, looked_up, pages = check_links(out)
    for line in problems:
        print("site: error: " + line, file=sys.stderr)
    print(f"{pages} pages, {looked_up} links looked up, {len(problems)} lead nowhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
