#!/usr/bin/env python3
"""Which word means how many things? Counts the types of src/ (structs, enums, unions and names of them) by the words in their names.

  homonyms.py [--root src] [--list] [--least N] [--words WORD,...]
  homonyms.py --headers --words WORD,...

A word names the thing itself where it stands last: `ot_scope_plan` is a plan, of a scope. A module's prefix (`ot_`, `lw_`, ...) is no
word. A type that a header names is one, however many files define its inside; one that several .c files define for themselves counts
in each. Prints `WORD TYPES NAMED`: types with the word, and those of them that it names; all words that name --least types or more,
most first, or those of --words. --list: with the types and their files. --headers: `WORD: TYPE...`, the types of headers that it names.
"""
import argparse
import collections
import os
import re

PREFIX = re.compile(r'^(?:ot|lw|rw|dv|dg|dev|pm|lt|ml|tk|kg|kacc|krun|mem|html|split)_')
STRUCT = re.compile(r'\b(?:struct|enum|union)\s+(\w+)\s*\{')
NAME = re.compile(r'\btypedef\s[^;{}]*?\b(\w+)\s*;')        # typedef struct x x;
END = re.compile(r'^\}\s*(\w+)\s*;', re.M)                  # typedef struct { ... } x;
FUNCTION = re.compile(r'\btypedef\s[^;{}]*?\(\*(\w+)\)\s*\(')  # typedef int (*x)(...);


def types(root):
    """(type, file) of every type below root, each meaning once."""
    where = collections.defaultdict(set)
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as f:
                    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', ' ', f.read(), flags=re.S)
                for pattern in (STRUCT, NAME, END, FUNCTION):
                    for found in pattern.findall(text):
                        where[found].add(path)
    for name, paths in sorted(where.items()):
        public = sorted(p for p in paths if p.endswith('.h'))
        for path in public[:1] or sorted(paths):
            yield name, path


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--root', default='src')
    p.add_argument('--list', action='store_true')
    p.add_argument('--headers', action='store_true')
    p.add_argument('--least', type=int, default=8)
    p.add_argument('--words')
    a = p.parse_args()
    having, named = collections.defaultdict(list), collections.defaultdict(int)
    for name, path in types(a.root):
        words = PREFIX.sub('', name).split('_')
        named[words[-1]] += 1
        for word in set(words):
            having[word].append((name, path))
    wanted = a.words.split(',') if a.words else [w for w, n in named.items() if n >= a.least]
    if a.headers:
        for word in wanted:
            names = [n for n, path in having[word] if path.endswith('.h') and n.split('_')[-1] == word]
            print(f"{word}: {' '.join(names)}")
        return
    for word in sorted(wanted, key=lambda w: (-named[w], -len(having[w]), w)):
        print(f'{word} {len(having[word])} {named[word]}')
        for name, path in having[word] if a.list else []:
            print(f'    {name}  {path}')


main()
