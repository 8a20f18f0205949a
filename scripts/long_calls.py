#!/usr/bin/env python3
"""Counts the parameters of every function that src/ defines, static ones included, and lists those with more than 7.

  long_calls.py [--root src] [--most N] [--limit N] [--widest N]

Prints `FILE:LINE: FUNCTION PARAMETERS`, widest first, then `N functions with more than 7 parameters, M at most`. Exit 1 when more
than --most functions are listed or one has more than --widest parameters.

A definition is told from its tokens alone, outside of braces: a name, a parenthesised list, then an opening brace. Preprocessor
lines, comments and literals are dropped before, so functions that a macro expands to are not seen.
"""
import argparse
import os
import re
import sys

TOKEN = re.compile(r'''
    (?P<skip> //[^\n]* | /\*.*?\*/ | \s+ | ^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])* )
  | (?P<literal> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<other> . )
''', re.VERBOSE | re.DOTALL | re.MULTILINE)

OPENS, CLOSES = {'(', '[', '{'}, {')', ']', '}'}


def tokens(text):
    """(text of the token, its line), without preprocessor lines, comments and blanks."""
    line, at, out = 1, 0, []
    while at < len(text):
        found = TOKEN.match(text, at)
        if found.lastgroup != 'skip':
            out.append(('""' if found.lastgroup == 'literal' else found.group(), line))
        line += text.count('\n', at, found.end())
        at = found.end()
    return out


def closing(toks, k):
    """Index of the token that closes the bracket at k, or the last one."""
    depth = 0
    for j in range(k, len(toks)):
        depth += (toks[j][0] in OPENS) - (toks[j][0] in CLOSES)
        if depth == 0:
            return j
    return len(toks) - 1


def parameters(toks):
    """How many parameters the tokens between a definition's parentheses declare."""
    if not toks or [t for t, _ in toks] == ['void']:
        return 0
    depth, count = 0, 1
    for t, _ in toks:
        depth += (t in OPENS) - (t in CLOSES)
        count += t == ',' and depth == 0
    return count


def definitions(text):
    """(name, line, parameters) of every function that the text defines."""
    toks, k = tokens(text), 0
    while k < len(toks):
        t, line = toks[k]
        if t == '(' and k > 0 and re.match(r'[A-Za-z_]', toks[k - 1][0]):
            end = closing(toks, k)
            if end + 1 < len(toks) and toks[end + 1][0] == '{':
                yield toks[k - 1][0], toks[k - 1][1], parameters(toks[k + 1:end])
                end = closing(toks, end + 1)
            k = end
        elif t in OPENS:
            k = closing(toks, k)
        k += 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--root', default='src')
    p.add_argument('--limit', type=int, default=7, help='parameters that need no listing')
    p.add_argument('--most', type=int, help='functions that may be listed')
    p.add_argument('--widest', type=int, help='parameters that a listed one may have')
    a = p.parse_args()
    long = []
    for folder, _, names in os.walk(a.root):
        for name in names:
            if name.endswith(('.c', '.h')):
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as text:
                    long += [(-count, path, line, fn) for fn, line, count in definitions(text.read()) if count > a.limit]
    for count, path, line, fn in sorted(long):
        print(f'{path}:{line}: {fn} {-count}')
    widest = max((-row[0] for row in long), default=0)
    print(f'{len(long)} functions with more than {a.limit} parameters' + (f', {widest} at most' if long else ''))
    return 1 if (a.most is not None and len(long) > a.most) or (a.widest is not None and widest > a.widest) else 0


sys.exit(main())
