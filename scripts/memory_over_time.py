#!/usr/bin/env python3
"""A picture of what the process of ONNX Runtime holds over time, of a model and of what goal memory makes of it: docs/memory.svg.

  memory_over_time.py --tool TOOL [--svg FILE] MODEL [INPUT=D,D,...]...

Each is run in a process of its own: from before the session is made, through loading, to the end of three runs. The resident set is
sampled every 2 ms, without what the interpreter and the inputs hold. One thread.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

MB = 1 << 20
RUNS = 3
EVERY = 0.002  # seconds between samples
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 240, 56, 34, 30
COLOURS = {'before': '#c2410c', 'after': '#15803d'}


def child(path, shapes):
    """Samples of this process while it loads and runs the model: (seconds, MB), as JSON."""
    import threading
    import time

    import numpy as np
    import onnxruntime

    from compare import make_inputs
    page, samples, stop = os.sysconf('SC_PAGESIZE'), [], threading.Event()

    def resident():
        with open('/proc/self/statm', encoding='ascii') as f:
            return int(f.read().split()[1]) * page / MB

    start, others = time.perf_counter(), [resident()]  # MB of the interpreter, then of the inputs too

    def sample():
        while not stop.is_set():
            samples.append((time.perf_counter() - start, resident() - sum(others)))
            time.sleep(EVERY)

    thread = threading.Thread(target=sample)
    thread.start()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    fed = make_inputs(session, shapes, 0)
    others.append(sum(x.nbytes for x in fed.values()) / MB)
    sums = [float(np.sum(y, dtype='f8')) for _ in range(RUNS) for y in session.run(None, fed)]
    stop.set()
    thread.join()
    print(json.dumps({'samples': samples, 'sums': sums}))


def measured(path, shapes):
    r = subprocess.run([sys.executable, __file__, '--child', path, *shapes], capture_output=True, text=True, check=True)
    return json.loads(r.stdout)['samples']


def line(samples, scale_x, scale_y):
    """Points of the curve: of the samples within one pixel the largest."""
    columns = {}
    for t, mb in samples:
        x = round(LEFT + t * scale_x)
        columns[x] = max(columns.get(x, 0), mb)
    return ' '.join(f'{x},{HEIGHT - BOTTOM - mb * scale_y:.1f}' for x, mb in sorted(columns.items()))


def svg(title, curves):
    longest = max(s[-1][0] for s in curves.values())
    top = max(mb for s in curves.values() for _, mb in s)
    scale_x, scale_y = (WIDTH - LEFT - 12) / longest, (HEIGHT - TOP - BOTTOM) / top
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
            '<style>text{fill:#333}line{stroke:#999}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>',
            f'<text x="{LEFT}" y="16">{title}</text>']
    for mb in (0, top):
        y = HEIGHT - BOTTOM - mb * scale_y
        text += [f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}" stroke-width=".5"/>',
                 f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{mb:.0f}</text>']
    text += [f'<text x="{LEFT}" y="{HEIGHT - 8}">0 s</text>', f'<text x="{WIDTH - 12}" y="{HEIGHT - 8}" text-anchor="end">{longest:.1f} s</text>']
    for name, samples in curves.items():
        peak = max(mb for _, mb in samples)
        y = HEIGHT - BOTTOM - peak * scale_y + (18 if peak == top else -8)  # where curves have come to rest, off the lines
        text += [f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="1.5" points="{line(samples, scale_x, scale_y)}"/>',
                 f'<text x="{WIDTH - 12}" y="{y:.1f}" text-anchor="end" style="fill:{COLOURS[name]}">{name}: at most {peak:.0f} MB</text>']
    return '\n'.join([*text, '</svg>', ''])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool')
    a.add_argument('--svg')
    a.add_argument('--title', default='Memory of the process, MB: loading, then three runs in ONNX Runtime')
    a.add_argument('--child', action='store_true', help=argparse.SUPPRESS)
    a.add_argument('model')
    a.add_argument('shapes', nargs='*')
    a = a.parse_args()
    if a.child:
        child(a.model, {k: [int(n) for n in v.split(',')] for k, v in (s.split('=') for s in a.shapes)})
        return
    if not a.tool:
        sys.exit('memory_over_time.py: --tool is needed')
    with tempfile.TemporaryDirectory() as d:
        tiled = os.path.join(d, 'tiled.onnx')
        words = [x for s in a.shapes for x in ('--shape', s)]
        subprocess.run([a.tool, a.model, '-o', tiled, '--goal', 'memory', '--threads', '1', '-q', *words], check=True)
        curves = {'before': measured(a.model, a.shapes), 'after': measured(tiled, a.shapes)}
    for name, samples in curves.items():
        print(f'{name}\tat most {max(mb for _, mb in samples):.0f} MB\t{samples[-1][0]:.2f} s')
    if a.svg:
        with open(a.svg, 'w', encoding='utf-8') as f:
            f.write(svg(a.title, curves))


if __name__ == '__main__':
    main()
