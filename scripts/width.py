#!/usr/bin/env python3
"""No line of the sources is wider than 100 columns, drawings in comments and strings included: clang-format leaves those alone.

  width.py [--most 100] FILE...

Prints file and line of each that is; exit 1 when there is one. Columns are characters, not bytes.
"""
import argparse
import sys


def wide_lines(path, most):
    with open(path, encoding='utf-8') as text:
        for number, line in enumerate(text, 1):
            if len(line.rstrip('\n')) > most:
                yield number, len(line.rstrip('\n'))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('files', nargs='+')
    p.add_argument('--most', type=int, default=100)
    a = p.parse_args()
    found = [(f, *at) for f in a.files for at in wide_lines(f, a.most)]
    for f, number, columns in found:
        print(f'{f}:{number}: {columns} columns, {a.most} are allowed')
    return 1 if found else 0


sys.exit(main())
