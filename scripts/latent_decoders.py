#!/usr/bin/env python3
"""Decoders of video and image autoencoders in ONNX Runtime, untiled and tiled for memory: rows of docs/results.md.

  latent_decoders.py [--tool build/onnx-tile] [--rounds N] [NAME...]

Makes the networks (models/latent_decoders.py) and tiles them with --goal memory and one thread. Each run is a process of its own: whole, its most
resident bytes from before the session is made to the last run, the input not counted; time, the least of N rounds of three runs. Printed in Markdown.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUN = '''
import sys, time
import numpy as np, onnxruntime as ort
def resident(key):
    return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith(key)) / 1024
options = ort.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 4
before = resident('VmRSS')
session = ort.InferenceSession(sys.argv[1], options, providers=['CPUExecutionProvider'])
x = session.get_inputs()[0]
feed = {x.name: np.random.default_rng(0).standard_normal(x.shape).astype('f4')}
times = []
for _ in range(3):
    y = None
    start = time.perf_counter()
    y = session.run(None, feed)
    times.append(time.perf_counter() - start)
print(resident('VmHWM') - before - feed[x.name].nbytes / 2 ** 20, min(times), y[0].nbytes / 2 ** 20)
'''


def run(path):
    p = subprocess.run([sys.executable, '-c', RUN, path], capture_output=True, text=True)
    if p.returncode: sys.exit(f'{path}: {p.stderr.strip()}')
    return [float(v) for v in p.stdout.split()]


def row(tool, name, rounds, folder):
    path, out = f'{folder}/{name}.onnx', f'{folder}/{name}_tiled.onnx'
    subprocess.run([sys.executable, f'{ROOT}/models/latent_decoders.py', folder, name], check=True)
    p = subprocess.run([tool, path, '-o', out, '--goal', 'memory', '--threads', '1', '--json'], capture_output=True, text=True)
    if p.returncode: sys.exit(f'{name}: exit {p.returncode}: {p.stderr.strip()}')
    regions = len(json.loads(p.stdout)['regions'])
    runs = [(run(path), run(out)) for _ in range(rounds)]
    (a, b), seconds = runs[0], [min(r[k][1] for r in runs) for k in (0, 1)]
    print(f'| {name} | {a[0]:.0f} | {b[0]:.0f} | {b[0] / a[0]:.2f} | {a[2]:.0f} | {seconds[1] / seconds[0]:.2f} | {regions} |', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default=f'{ROOT}/build/onnx-tile')
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('names', nargs='*')
    a = p.parse_args()
    listed = subprocess.run([sys.executable, f'{ROOT}/models/latent_decoders.py', '--list'], capture_output=True, text=True, check=True)
    print('| decoder | untiled, MB | tiled | of it | result | time | regions |\n|---|--:|--:|--:|--:|--:|--:|')
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or listed.stdout.split(): row(a.tool, name, a.rounds, folder)


if __name__ == '__main__':
    main()
