#!/usr/bin/env python3
"""Which functions of the library does nobody reach: not the program, not include/onnx_tile.h, by which the Python package and the
operator library call it? Objects are compiled with a section for each function, so the linker knows.

  dead.py --main build/obj/commands/main.o --library build/libonnxtile.a --sources src --link COMMAND...

COMMAND links an executable: compiler, flags and libraries. Prints every function that is found; exit status 1 when there is one.
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

PREFIX = re.compile(r'^\.text\.(?:unlikely\.|startup\.|hot\.|exit\.)?')
CLONE = re.compile(r'\.(?:constprop|isra|part|cold|lto_priv|localalias)(?:\.\d+)*')


def function_of(section):
    """.text.unlikely.grow.part.0 -> grow; None: no code."""
    return CLONE.sub('', PREFIX.sub('', section)) if PREFIX.match(section) else None


def sections_of(library):
    """{member: sections with code}"""
    members, member = collections.defaultdict(list), None
    for line in subprocess.run(['objdump', '-h', library], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.match(r'(\S+\.o): +file format', line)
        member = found.group(1) if found else member
        found = re.match(r' +\d+ (\.text\.\S+) +([0-9a-f]+)', line)
        if found and int(found.group(2), 16) > 0:
            members[member].append(found.group(1))
    return members


def dropped(main, library, link):
    """(member, section) that a link of everything leaves out."""
    symbols = subprocess.run(['nm', '-g', '--defined-only', library], capture_output=True, text=True, check=True).stdout
    api = sorted(set(re.findall(r' T (onnx_tile_\w+)', symbols)))
    if not api:
        sys.exit(f'{library} has no function of include/onnx_tile.h')
    with tempfile.TemporaryDirectory() as tmp:
        command = [link[0], *link[1:], '-o', os.path.join(tmp, 'all'), main, *(f'-Wl,-u,{x}' for x in api), '-Wl,--whole-archive', library,
                   '-Wl,--no-whole-archive', '-Wl,--gc-sections,--print-gc-sections', *[x for x in link if x.startswith('-l')]]
        p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)
    name = os.path.basename(library)
    return set(re.findall(rf"removing unused section '(\.text\.[^']+)' in file '[^']*{re.escape(name)}\(([^)]+)\)'", p.stderr))


def called_beside(path, function):
    """Is it called in its file outside of itself? Then its callers there may hold it inline: they are what counts."""
    inside = False
    with open(path, encoding='utf-8') as f:
        for line in f:
            here = re.search(rf'\b{function}\b(?! *:)', re.sub(r'/\*.*?\*/|//.*', '', line))
            if here and re.match(rf'\w[\w *]*\b{function}\(', line):
                inside = not line.rstrip().endswith(';')
            elif here and not inside and not line.startswith(' *'):
                return True
            if inside and line.startswith('}') or line.rstrip().endswith('}') and inside and re.match(r'\w', line):
                inside = False
    return False


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--main', required=True)
    ap.add_argument('--library', required=True)
    ap.add_argument('--sources', required=True)
    ap.add_argument('--link', nargs=argparse.REMAINDER, required=True)
    a = ap.parse_args()
    paths = {x[:-2] + '.o': os.path.join(d, x) for d, _, names in os.walk(a.sources) for x in names if x.endswith('.c')}
    out = dropped(a.main, a.library, a.link)
    dead, n_all = collections.defaultdict(list), 0
    for member, sections in sections_of(a.library).items():
        if member not in paths:  # generated
            continue
        parts = collections.defaultdict(list)
        for section in sections:
            parts[function_of(section)].append((section, member) in out)
        n_all += len(parts)
        dead[paths[member]] += sorted(x for x, gone in parts.items() if all(gone) and not called_beside(paths[member], x))
    if not n_all:
        sys.exit(f'{a.library} has no section for each function')
    bad = sum(map(len, dead.values()))
    for path in sorted(x for x in dead if dead[x]):
        print(f'{path}: {", ".join(dead[path])}')
    print(f'{n_all} functions, {bad} of them not reached')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
