#!/usr/bin/env python3
"""How many operators, types and options each test of a kind of fault covers, as the table of docs/testing.md.

  covered.py                 print the table
  covered.py --check FILE    exit 1 where FILE has another

What is counted are the lists that the tests themselves go through, read from their sources.
"""
import argparse
import ast
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path[:0] = [os.path.join(ROOT, 'scripts'), os.path.join(ROOT, 'tests', 'models')]


def text_of(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def size(path, name):
    """Elements of the list, tuple or dictionary that a module calls so; of the entries of a dictionary of lists all together."""
    for node in ast.parse(text_of(path)).body:
        targets = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(targets, ast.Name) and targets.id == name:
            return len(getattr(node.value, 'elts', None) or node.value.keys)
    raise SystemExit(f'{path}: no list {name}')


def entries(path, name):
    """The same of the lists in a dictionary, all together."""
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == name:
            return sum(len(v.elts) for v in node.value.values)
    raise SystemExit(f'{path}: no dictionary {name}')


def number(path, pattern):
    """The number that the pattern finds."""
    found = re.search(pattern, text_of(path))
    if not found:
        raise SystemExit(f'{path}: nothing like {pattern}')
    return int(found.group(1).replace(',', ''))


def rows():
    import sweep
    import sweep_cases
    e2e = 'tests/e2e/'
    few, sizes, words, figures = e2e + 'narrow_types.py', e2e + 'unknown_sizes.py', e2e + 'explain.py', e2e + 'figures.py'
    yield ('what ONNX Runtime loads is loaded tiled, and equal', '`scripts/sweep.py`', f'{len(sweep_cases.operators())}', f'{len(sweep_cases.TYPES)}',
           f'{len(sweep.MODES)} ways to tile, and the models of the onnx package')
    yield ('weights of few bits', 'narrow_types', 'DequantizeLinear before products, read once and twice', f'{size(few, "PRODUCTS")}',
           f'goal memory; {size(few, "RUNTIMES")} runtimes by force')
    yield ('the same before Relu and Clip', 'narrow_types', f'{size(few, "READ")} ways to be read', f'{size(few, "READ_TYPES")}', f'{size(few, "WAYS")}')
    yield ('the same in half precision', 'narrow_types', 'DequantizeLinear before MatMul', f'{size(few, "HALF_TYPES")}', 'goal memory; by force')
    own, free = e2e + 'own_subgraphs.py', e2e + 'free_sizes.sh'
    yield ('weights shared with If, Loop, Scan', 'own_subgraphs', f'{size(own, "INNER")}', '1', 'goal memory; by force')
    yield ('stated shapes that do not follow', 'own_subgraphs', f'{size(own, "STATED")}', '1', f'{size(own, "STATED_WITH")}')
    nested = e2e + 'nested_bodies.py'
    yield ('bodies inside of bodies', 'nested_bodies', f'{sum(size(nested, "KINDS") ** n for n in (1, 2, 3))} orders of If, Loop, Scan and calls', '1',
           'shapes, a gate, the engine; untrue statements in bodies')
    yield ('kinds that few exporters write', 'unusual_models', f'{number(e2e + "unusual_models.py", r"COUNT = ([0-9]+)")} models', '-',
           'defaults, goal memory, by force')
    yield ('one size for all commands', 'free_sizes', f'{len(re.findall("^[a-z0-9]+ [a-z]+=", text_of(free), re.M))} models with free sizes', '3',
           'tiling, explain, gate, verify, run, bench; tiled and for the engine')
    yield ('gates and budgets that pass empty', 'unknown_sizes', f'{size(sizes, "ROWS")} models, sizes known and not', '-',
           f'{size(sizes, "RUNTIMES")} runtimes x {entries(sizes, "COLUMNS")} commands')
    yield ('rows of learned models (ai.onnx.ml)', 'unknown_sizes', f'{size(sizes, "LEARNED")} models', '2', 'batch free and bound')
    yield ('contradicting figures', 'figures', '4 models', '-', f'{size(figures, "OPTIONS")} sets of options x {size(figures, "REPORTS") + 3} outputs')
    yield ('reasons that are false', 'explain', f'{size(words, "REASONS")}', '-', 'goal memory')
    yield ('cures that are untrue', 'explain', f'{size(words, "CURED")} models', '-', f'{size(words, "CURED_WITH")} sets of options')
    yield ('one rule of own noise', 'noise_rule', f'{number(e2e + "noise_rule.py", r"range[(]([0-9]+)[)]")} pairs of results',
           f'{size(e2e + "noise_rule.py", "TYPES")}', 'library and Python')
    yield ('bodies that are believed', 'test_engine_lies', f'{number("tests/unit/test_engine_lies.c", r"#define BODIES +([0-9]+)")} bodies', '-', 'two threads, poisoned memory, guards')
    yield ('nodes that do not fit their bodies', 'test_ort_mutations', f'{number("tests/python/test_ort_mutations.py", r"MUTATIONS., .([0-9]+)")} nodes',
           '16', 'the provider and the operators inside ONNX Runtime')
    yield ('temporary files that stay', 'written_files', f'{size(e2e + "written_files.py", "SIGNALS")} signals', '-', 'limits on files, two writers, a closed stdout')


def table():
    lines = ['| kind | test | operators, models, cases | types | options |', '|---|---|---|---|---|']
    return lines + ['| ' + ' | '.join(row) + ' |' for row in rows()]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--check', metavar='FILE')
    a = p.parse_args()
    lines = table()
    if not a.check:
        print('\n'.join(lines))
        return 0
    missing = [line for line in lines if line + '\n' not in text_of(a.check)]
    for line in missing:
        print(f'not in {a.check}: {line}')
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main())
