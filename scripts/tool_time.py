#!/usr/bin/env python3
"""How much time and memory the tool itself takes for models, by two builds of it, as a Markdown table.

  tool_time.py [--old TOOL] [--new build/onnx-tile] [--slowest 20] [--times 2] [--only TEXT]... FOLDER...

Each model of the folders is tiled with --goal memory for the target cpu-generic with one thread, by both builds in turn; those
that take the new build longest are listed. Time is that of the processor (user and system), the least of so many runs; memory is
the process's peak. A folder is read as its models.json says ("name", "file", "shapes", "dynamic"), else as its *.onnx. "Same":
both builds write the same bytes.
"""
import argparse
import hashlib
import json
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def models_of(folder):
    """Name, path and options of each model of a folder."""
    listed = os.path.join(folder, 'models.json')
    if not os.path.exists(listed):
        return [(f[:-5], os.path.join(folder, f), []) for f in sorted(os.listdir(folder)) if f.endswith('.onnx')]
    found = []
    for m in json.load(open(listed)):
        free = [k for k in m.get('shapes') or {} if k in (m.get('dynamic') or [])]
        shapes = [w for k in free for w in ('--shape', f'{k}=' + ','.join(map(str, m['shapes'][k])))]
        found.append((m['name'], os.path.join(folder, m['file']), shapes))
    return [m for m in found if os.path.exists(m[1])]


def digest(folder):
    """Of all files in a folder, read in parts: a process that is started takes over the peak of the one that starts it."""
    written = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        written.update(name.encode())
        with open(f'{folder}/{name}', 'rb') as f:
            while part := f.read(1 << 20):
                written.update(part)
    return written.hexdigest()


def run(tool, path, shapes):
    """Processor seconds, peak MB, and a hash of what is written."""
    with tempfile.TemporaryDirectory() as at:
        args = [tool, path, '-o', f'{at}/tiled.onnx', '--goal', 'memory', '--target', 'cpu-generic', '--threads', '1', '-q', *shapes]
        pid = os.posix_spawn(tool, args, {**os.environ, 'ONNX_TILE_CACHE': 'off'})
        _, status, used = os.wait4(pid, 0)
        if status != 0:
            sys.exit(f'tool_time.py: {tool} fails on {path}')
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, digest(at)


def best(tool, model, times):
    runs = [run(tool, model[1], model[2]) for _ in range(times)]
    return min(r[0] for r in runs), min(r[1] for r in runs), runs[0][2]


def nodes_of(path):
    import onnx
    return len(onnx.load(path, load_external_data=False).graph.node)


def row_of(model, old, new):
    size = os.path.getsize(model[1]) / 1e6
    row = [model[0], str(nodes_of(model[1])), f'{size:.1f}']
    if not old:
        return row + [f'{new[0]:.2f}', f'{new[1]:.0f}']
    return row + [f'{old[0]:.2f} -> {new[0]:.2f}', f'x{new[0] / old[0]:.2f}', f'{old[1]:.0f} -> {new[1]:.0f}', 'yes' if old[2] == new[2] else 'no']


def main():
    p = argparse.ArgumentParser(description='Time and memory of the tool itself.')
    p.add_argument('--old')
    p.add_argument('--new', default=f'{ROOT}/build/onnx-tile')
    p.add_argument('--slowest', type=int, default=20)
    p.add_argument('--times', type=int, default=2)
    p.add_argument('--only', action='append', default=[])
    p.add_argument('folders', nargs='+')
    o = p.parse_args()
    measured, start = [], time.time()
    for m in [m for f in o.folders for m in models_of(f) if not o.only or any(t in m[0] for t in o.only)]:
        old = best(o.old, m, o.times) if o.old else None
        measured.append((m, old, best(o.new, m, o.times)))
        print(f'{time.time() - start:6.0f} s  {m[0]}', file=sys.stderr, flush=True)
    measured.sort(key=lambda x: -x[2][0])
    both = ['processor, s', 'ratio', 'peak, MB', 'same'] if o.old else ['processor, s', 'peak, MB']
    columns = ['model', 'nodes', 'file, MB', *both]
    print('| ' + ' | '.join(columns) + ' |')
    print('|---|' + '--:|' * (len(columns) - 1))
    for m, old, new in measured[:o.slowest]:
        print('| ' + ' | '.join(row_of(m, old, new)) + ' |')
    after = sum(new[0] for _, _, new in measured)
    before = f' {sum(old[0] for _, old, _ in measured):.1f} s,' if o.old else ''
    then = ' then' if o.old else ''
    print(f'\n{len(measured)} models, the {min(o.slowest, len(measured))} slowest are listed; all of them:{before}{then} {after:.1f} s.')


if __name__ == '__main__':
    main()
