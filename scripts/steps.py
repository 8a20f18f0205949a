#!/usr/bin/env python3
"""Figures of docs/steps.md: networks of tests/models/step_networks.py, step by step beside the whole model, in ONNX Runtime.

  steps.py [--tool build/onnx-tile] [--rows N]

rows: of the whole input, about. `small` and `large` are steps of as few rows as can be, and of eight times as many; differences are
shares of the largest value.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path.insert(0, os.path.join(ROOT, 'tests', 'models'))
from builder import save  # noqa: E402
from step_networks import networks  # noqa: E402
from stepping import compare  # noqa: E402


def size_of(n):
    return f'{n} B' if n < 1024 else f'{n / 1024:.1f} KiB'


def verdict(most):
    return 'bits' if most == 0 else f'{most:.0e}'


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--tool', default=os.path.join(ROOT, 'build', 'onnx-tile'))
    p.add_argument('--rows', type=int, default=320)
    a = p.parse_args()
    print('| network | rows of a step | late | state | small steps | large steps |\n|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, axis) in networks().items():
            path, step = save(model, os.path.join(folder, 'm.onnx')), os.path.join(folder, 'step.onnx')

            def write(of):
                said = subprocess.run([a.tool, path, '-o', step, '--emit', 'step', '--axis', of, '--json'], capture_output=True, text=True, check=True)
                return json.loads(said.stdout)
            about = write(axis)
            small = compare(path, step, {'t': a.rows})[0]
            align = about['align']
            write(f'{axis}={8 * align}')
            large = compare(path, step, {'t': a.rows})[0]
            print(f"| {name} | {align} | {about['outputs'][0]['delay']} | {size_of(about['state_bytes'])} | {verdict(small)} | {verdict(large)} |")


if __name__ == '__main__':
    main()
