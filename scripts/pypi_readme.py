#!/usr/bin/env python3
"""README as the description of a package, where links to files of the tree lead nowhere.

  pypi_readme.py README.md OUT [--home PREFIX]

With PREFIX each such link becomes PREFIX followed by its path; without, its text stays alone and pictures go.
"""
import argparse
import re

# A picture or a link: "!" or nothing, its text, where it leads.
LINK = re.compile(r"(!?)\[([^]\n]*)\]\(([^)\s]+)\)")
COMMENT = re.compile(r"^<!--.*?-->\n+", re.M | re.S)


def described(text, home):
    """The text with links that work anywhere, and without notes to the test of documents."""
    def put(found):
        picture, words, where = found.groups()
        if re.match(r"[a-z]+:|#", where):
            return found[0]
        if home:
            return f"{picture}[{words}]({home.rstrip('/')}/{where})"
        return "" if picture else words
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"^ +$", "", LINK.sub(put, COMMENT.sub("", text)), flags=re.M))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("readme")
    ap.add_argument("out")
    ap.add_argument("--home", default="", help="what stands before paths of the tree")
    a = ap.parse_args()
    with open(a.readme, encoding="utf-8") as f:
        text = f.read()
    with open(a.out, "w", encoding="utf-8") as f:
        f.write(described(text, a.home))


if __name__ == "__main__":
    main()
