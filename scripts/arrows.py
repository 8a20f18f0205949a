#!/usr/bin/env python3
"""Folders of src/ are stages in the order of the data, and arrows point one way: a folder may use those before it in MODULES, never
those after it. Reads the includes of every source file and the link symbols of every object.

  arrows.py [--objects build/obj] [--list]

Prints the arrows that run up, with the files that make them; closes with a sum. Exit 1 when there is one, when a folder is not in
MODULES, or when two files share a name. --list: every arrow between folders.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

MODULES = """
base base/port machine pack
tk/language tk/planmem tk/mlir tk/access tk/interpreter tk/codegen tk
onnx/graph onnx/import onnx/export
ops geometry lifetime fusion
machine/runtime machine/target
device tk/device
tiling tiling/lower
cost
transform/decompose transform
step passes
alloc_sim
select/search select/check select/bounds select
engine/core engine/ref
engine/cpu/move engine/cpu/units engine/cpu/chain engine/cpu/rows engine/cpu/product engine/cpu/int8 engine/cpu/conv
engine/lower engine/session engine/gpu/shaders engine/gpu
measure
report/facts report/xml report/html report report/compare
app api commands ort
""".split()


def sources(root):
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(folder, name), root)


def include_arrows(root):
    """(file, file it includes), both below root."""
    for f in sources(root):
        with open(os.path.join(root, f), encoding='utf-8') as text:
            for inc in re.findall(r'^\s*#\s*include "([^"]+)"', text.read(), re.M):
                beside = os.path.normpath(os.path.join(os.path.dirname(f), inc))
                for found in (beside, os.path.normpath(inc)):
                    if os.path.exists(os.path.join(root, found)):
                        yield f, found, 'includes it'
                        break


def symbol_arrows(root, objects):
    """(file, file that defines a symbol it uses, symbols)."""
    units = {f: os.path.relpath(f, objects)[:-2] + '.c' for d, _, names in os.walk(objects) for f in (os.path.join(d, n) for n in names)
             if f.endswith('.o')}
    units = {f: u for f, u in units.items() if os.path.exists(os.path.join(root, u))}  # not what is generated, or left from an older tree
    defined, used = {}, {unit: set() for unit in units.values()}
    if not units:
        return
    for line in subprocess.run(['nm', '-A', '-P', *units], capture_output=True, text=True, check=True).stdout.splitlines():
        f, symbol = line.split(': ', 1)  # one call for all: to start a program takes longer than it works
        name, kind = symbol.split()[:2]
        if kind == 'U':
            used[units[f]].add(name)
        elif kind in 'TDRBVWC':
            defined[name] = units[f]
    for unit, names in sorted(used.items()):
        by = collections.defaultdict(list)
        for name in sorted(names):
            if defined.get(name, unit) != unit:
                by[defined[name]].append(name)
        for target, what in sorted(by.items()):
            yield unit, target, ', '.join(what[:4])


def largest_knot(edges):
    """Most folders that reach each other: the largest strongly connected component."""
    graph = collections.defaultdict(set)
    for a, b in edges:
        graph[a].add(b)

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for n in graph[todo.pop()]:
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        return seen
    reached = {a: reach(a) for a in list(graph)}
    return max((1 + sum(1 for b in r if b != a and a in reached.get(b, ())) for a, r in reached.items() if a in r), default=1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--root', default='src')
    p.add_argument('--objects', default='build/obj')
    p.add_argument('--list', action='store_true')
    a = p.parse_args()
    rank = {module: k for k, module in enumerate(MODULES)}
    arrows = collections.defaultdict(list)
    files, bad = collections.defaultdict(list), 0
    for f in sources(a.root):
        files[os.path.basename(f)].append(f)
    for f, to, why in [*include_arrows(a.root), *symbol_arrows(a.root, a.objects)]:
        if os.path.dirname(f) != os.path.dirname(to):
            arrows[os.path.dirname(f), os.path.dirname(to)].append(f'{f} -> {to} ({why})')
    for module in sorted({r for pair in arrows for r in pair} - set(MODULES)):
        print(f'{module}: no module of this name in scripts/arrows.py')
        bad += 1
    for name, places in sorted(files.items()):
        if len(places) > 1:
            print(f'one name for several files: {" ".join(places)}')
            bad += 1
    up = 0
    for (f, to), why in sorted(arrows.items()):
        if a.list:
            print(f'{f} -> {to}: {len(why)}')
        if rank.get(f, 0) < rank.get(to, 0):
            up += 1
            print(f'{f} runs up to {to}:')
            for w in sorted(set(why)):
                print(f'    {w}')
    print(f'{len(arrows)} arrows between {len({r for pair in arrows for r in pair})} folders, {up} upward, '
          f'{largest_knot(arrows)} folders in the largest knot')
    return 1 if up or bad else 0


sys.exit(main())
