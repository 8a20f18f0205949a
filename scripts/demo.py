#!/usr/bin/env python3
"""What onnx-tile does, in a minute: tile a ResNet-50 and a super-resolution network, run before and after.

The models are generated here with seeded weights (models/make_models.py), tiled by the program, and run in stock ONNX Runtime,
each in its own process. Prints the program's own table of predictions, then what was measured. Files stay in demo-out/.
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'models')]
import compare  # noqa: E402
import make_models  # noqa: E402
import onnx  # noqa: E402

# name, model, its arguments, options of the tool
CASES = [
    ('resnet50_b8', 'resnet50', dict(batch=8, size=224), ['--goal', 'memory']),
    ('sr_720p_x2', 'sr', dict(size=720), ['--goal', 'memory']),
]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--out', default='demo-out')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--rounds', type=int, default=3)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    rows, failed = [], 0
    for name, model, arguments, options in CASES:
        before, after = (os.path.join(a.out, name + end) for end in ('.onnx', '.tiled.onnx'))
        print(f'== {name}: generating', flush=True)
        onnx.save(make_models.build(model, **arguments), before)
        command = [a.tool, before, '-o', after, '--threads', str(a.threads)] + options
        print('$ ' + ' '.join(command), flush=True)
        subprocess.run(command, check=True)
        print('== running both in ONNX Runtime\n', flush=True)
        try:
            facts = compare.compare(before, after, a.threads, a.rounds)
        except RuntimeError as e:
            print(f'{name}: {e}')
            failed += 1
            continue
        rows.append(compare.row(name, facts))
        failed += bool(facts['why'])
    print(f'measured in ONNX Runtime, {a.threads} thread{"s" if a.threads > 1 else ""}:')
    print(compare.HEADER)
    print('\n'.join(rows))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
