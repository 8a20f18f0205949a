#!/usr/bin/env python3
"""Rows that memory_truth.py kept (--json), as a table: what was predicted and measured of the whole process, and what tiling leaves of it.

  memory_table.py FILE...
"""
import argparse
import json
import statistics

from memory_truth import off


def mean(values):
    return statistics.geometric_mean(max(v, 1e-3) for v in values)


def lines_of(rows):
    """Lines of Markdown: a row a model, means and errors below."""
    lines = ['| model | untiled, MB: predicted | measured | tiled: predicted | measured | whole process | growth |', '|---|--:|--:|--:|--:|--:|--:|']
    tiled = [r for r in rows if 'tiled' in r.get('measured', {})]
    parts = {what: [r['measured']['tiled'][what] / r['measured']['untiled'][what] for r in tiled] for what in ('whole', 'growth')}
    for k, r in enumerate(tiled):
        cells = [f"{r[kind][side]['whole']:.0f}" for side in ('untiled', 'tiled') for kind in ('predicted', 'measured')]
        lines.append(f"| {r['name']} | {' | '.join(cells)} | x{parts['whole'][k]:.2f} | x{parts['growth'][k]:.2f} |")
    errors = {side: [abs(off(r, side, 'whole')) for r in tiled] for side in ('untiled', 'tiled')}
    told = '; '.join(f'{side}: median {statistics.median(e):.0%}, largest {max(e):.0%}' for side, e in errors.items())
    return lines + ['', f"{len(tiled)} models, geometric means: whole process x{mean(parts['whole']):.3f}, growth x{mean(parts['growth']):.3f}. "
                        f'Predictions of the whole process are off, {told}.']


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('files', nargs='+')
    rows = []
    for path in a.parse_args().files:
        with open(path, encoding='utf-8') as f:
            rows += json.load(f)
    print('\n'.join(lines_of(rows)))


if __name__ == '__main__':
    main()
