#!/usr/bin/env python3
"""Models in ONNX Runtime, as they are and as operators that hold the engine: is the output the same, what become memory and time?

  operator_table.py --models DIR... [--tool TOOL] [--library build/wheel/libonnxtile_ort.so] [--operators whole|parts|regions] [--only GLOB]
                    [--rounds N]

DIR/models.json lists models and shapes as for real_models.py; without it, all of DIR/*.onnx. Each is tiled with `--emit ort-engine --goal memory
--threads 1` and run before and after on the same inputs, one thread, in processes of their own which take turns. Memory is the growth of the
process while it runs, over the loaded session. Outputs are compared as there. A table a folder. Section operator of docs/results.md.
Exit 1 when an output differs or a model cannot be run.
"""
import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile

from memory_truth import cases
from real_models import cells, mean_line, pair

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def look(case, a):
    """Figures of a model as real_models.pair has them, or why there are none."""
    name, path, shapes, dynamic = case
    bind = [x for k in shapes if k in dynamic for x in ('--shape', k + '=' + ','.join(map(str, shapes[k])))]
    with tempfile.TemporaryDirectory() as tmp:
        tiled = f'{tmp}/operators.onnx'
        p = subprocess.run([a.tool, path, '-o', tiled, '-q', '--emit', 'ort-engine', '--ort-operators', a.operators, '--goal', 'memory',
                            '--threads', '1', *bind], capture_output=True, text=True)
        if p.returncode:
            return {'why': p.stderr.strip()[-160:]}
        try:
            return pair(path, tiled, shapes, a.rounds, tmp, library=os.path.abspath(a.library))
        except RuntimeError as e:
            return {'why': str(e)}


def table(folder, a):
    """Lines of Markdown, and how many models differ or do not run."""
    lines, found, bad = ['| model | memory, MB | ratio | time, ms | ratio | outputs |', '|---|--:|--:|--:|--:|---|'], [], 0
    for case in cases(folder):
        if not fnmatch.fnmatch(case[0], a.only):
            continue
        facts = look(case, a)
        lines.append(f'| {case[0]} | {cells(facts)} |')
        print(lines[-1], file=sys.stderr, flush=True)
        bad += facts.get('verdict', 'DIFFERS') == 'DIFFERS'
        if 'why' not in facts:
            found.append(facts)
    return lines + (['', mean_line(found, 'onnxruntime')] if found else []), bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--models', required=True, nargs='+')
    p.add_argument('--tool', default=f'{ROOT}/build/onnx-tile')
    p.add_argument('--library', default=f'{ROOT}/build/wheel/libonnxtile_ort.so')
    p.add_argument('--operators', default='whole')
    p.add_argument('--only', default='*')
    p.add_argument('--rounds', type=int, default=3)
    a = p.parse_args()
    tables = [table(folder, a) for folder in a.models]
    text = '\n\n'.join('\n'.join(lines) for lines, _ in tables)
    print(text)
    return 1 if any(bad for _, bad in tables) else 0


if __name__ == '__main__':
    sys.exit(main())
