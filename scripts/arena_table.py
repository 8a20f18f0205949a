#!/usr/bin/env python3
"""How close do planned arenas come to their lower bound? Regions and whole models, as a table.

  arena_table.py [--tool T] [--models DIR] [--only NAME]... [--markdown]

For ResNet-50, VGG-16 and MobileNetV2 (from models/make_models.py; kept in DIR when given): `inspect --force` for several
targets and sizes of the fast memory, every region's planned arena against the most bytes that live at once in it; then the
activations of each whole model in one memory. Exit 1 when the geometric mean over all regions is above 1.03.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'models')]
import make_models  # noqa: E402
import onnx  # noqa: E402

LIMIT = 1.03
MODELS = ['resnet50', 'vgg16', 'mobilenet_v2', 'mobilenet_v2_int8']
RUNS = [('cpu-generic', '256K'), ('cpu-generic', '1M'), ('cpu-generic', '4M'), ('tlf-16m', '512K'), ('tlf-16m', '2M'),
        ('tlf-16m', '16M'), ('ethos-u55', '256K'), ('mcu-512k', '512K')]


def inspect(tool, path, target, size):
    r = subprocess.run([tool, 'inspect', path, '--force', '--json', '--target', target, '--l2', size],
                       capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(f'{path} on {target}, {size}: {r.stderr.strip()}')
    return json.loads(r.stdout)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def size_text(n):
    return f'{n / 2 ** 20:.2f} MiB' if n >= 2 ** 20 else f'{n / 2 ** 10:.1f} KiB'


class Table:
    """Rows of cells, printed with aligned columns or as Markdown."""

    def __init__(self, markdown, *titles):
        self.markdown, self.rows = markdown, [titles]

    def add(self, *cells):
        self.rows.append([str(c) for c in cells])

    def show(self):
        if self.markdown:
            for k, row in enumerate(self.rows):
                print('| ' + ' | '.join(row) + ' |')
                if k == 0:
                    print('|' + '---|' * len(row))
        else:
            width = [max(len(r[k]) for r in self.rows) for k in range(len(self.rows[0]))]
            for row in self.rows:
                print('  '.join(c.ljust(w) if k < 2 else c.rjust(w) for k, (c, w) in enumerate(zip(row, width))))
        print()


def region_rows(tool, names, folder, markdown):
    """Every region of every run; the ratios planned / bound, and one result of each model."""
    ratios, facts = [], {}
    table = Table(markdown, 'model', 'target', 'fast memory', 'regions', 'largest arena', 'at the bound', 'geometric mean', 'worst')
    for name in names:
        for target, size in RUNS:
            d = facts[name] = inspect(tool, os.path.join(folder, name + '.onnx'), target, size)
            pairs = [(r['working_set_bytes'], r['working_set_bound_bytes']) for r in d['regions']]
            these = [p / b for p, b in pairs]
            ratios += these
            if pairs:
                table.add(name, target, size, len(pairs), size_text(max(p for p, _ in pairs)), sum(p == b for p, b in pairs),
                          f'{mean(these):.4f}', f'{max(these):.4f}')
    table.show()
    return ratios, facts


def arena_rows(facts, markdown):
    table = Table(markdown, 'model', 'values', 'side by side', 'live at once', 'planned', 'greedy by size', 'in place', 'smaller by')
    for name, d in facts.items():
        a = d['arena']
        sizes = (size_text(a[k + '_bytes']) for k in ('naive', 'lower_bound', 'planned', 'greedy_by_size', 'in_place'))
        table.add(name, a['buffers'], *sizes, f'{a["naive_bytes"] / a["in_place_bytes"]:.1f} x')
    table.show()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--models')
    p.add_argument('--only', action='append')
    p.add_argument('--markdown', action='store_true')
    a = p.parse_args()
    names = [n for n in MODELS if not a.only or n in a.only]
    with tempfile.TemporaryDirectory() as tmp:
        folder = a.models or tmp
        for name in names:
            path = os.path.join(folder, name + '.onnx')
            if not os.path.exists(path):
                onnx.save(make_models.build(name), path)
        ratios, facts = region_rows(a.tool, names, folder, a.markdown)
    arena_rows(facts, a.markdown)
    total = mean(ratios)
    print(f'{len(ratios)} regions: planned / lower bound {total:.4f} in the geometric mean, {max(ratios, default=1):.4f} at worst')
    return 0 if ratios and total <= LIMIT else 1


if __name__ == '__main__':
    sys.exit(main())
