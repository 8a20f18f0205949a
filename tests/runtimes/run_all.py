#!/usr/bin/env python3
"""Which bugs of other runtimes still show? Runs every reproducer of this folder in a process of its own.

  run_all.py [--json] [NAME...]

A reproducer builds one small model, prints what the standard asks for and what the runtime gives, and ends with `shown` or `not shown`.
One that crashes or does not end is shown, too. What the forms of the tool must keep clear of is in docs/matrix.md.
"""
import argparse
import ast
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60


def summary(path):
    """First line of the docstring."""
    with open(path, encoding='utf-8') as f:
        return ast.get_docstring(ast.parse(f.read())).split('\n')[0]


def outcome(path):
    """(state, output): shown, not shown, or that it cannot be run here."""
    try:
        p = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return 'shown (does not end)', ''
    last = (p.stdout.strip().splitlines() or [''])[-1]
    if p.returncode < 0:
        return 'shown (crash)', p.stdout
    if p.returncode:
        missing = 'ModuleNotFoundError' in p.stderr
        return ('not installed' if missing else 'the script fails'), p.stdout + p.stderr
    return (last if last in ('shown', 'not shown') else 'the script fails'), p.stdout


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--json', action='store_true')
    ap.add_argument('names', nargs='*')
    a = ap.parse_args()
    rows = []
    for name in sorted(os.listdir(HERE)):
        if not name.endswith('.py') or name == os.path.basename(__file__) or (a.names and name not in a.names):
            continue
        path = os.path.join(HERE, name)
        state, text = outcome(path)
        rows.append({'file': name, 'what': summary(path), 'now': state})
        if not a.json:
            print(f'{name:32s} {state}')
            for line in text.splitlines()[-8:] if state == 'the script fails' or a.names else []:
                print('   ', line[:200])
    if a.json:
        print(json.dumps(rows))
    return 1 if any(r['now'] == 'the script fails' for r in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
