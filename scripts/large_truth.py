#!/usr/bin/env python3
"""onnx-tile-apply over a generated GeoTIFF, measured: memory of workers, seams, a killed worker, a killed run, another model.

  large_truth.py FOLDER [--size 20000] [--budget 2GB] [--workers 2] [--kill-after CHUNKS] [--width 8] [--once | --together] [--untiled]

Runs with a Python that has onnx_tile[large]. FOLDER keeps the picture, so that it is made once. A line for each thing that is measured;
exit 1 where one is not as it should be. Three runs: nothing is killed, a worker is, the run is; --once: the first alone; --together: one run
in which a worker is killed, then the run itself, another model is refused, and it goes on.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import rasterio

import large_pictures as large

BLOCK = 2048


def make_picture(path, size):
    """Blocks of one texture, mirrored, each with noise of its own brightness."""
    base, rng = large.picture(3, BLOCK, BLOCK), np.random.default_rng(3)
    with rasterio.open(path + '.new', 'w', driver='GTiff', width=size, height=size, count=3, dtype='uint8', tiled=True, blockxsize=512,
                       blockysize=512, BIGTIFF='YES', crs='EPSG:32633', transform=rasterio.transform.from_origin(5e5, 5e6, .5, .5)) as file:
        for y in range(0, size, BLOCK):
            for x in range(0, size, BLOCK):
                block = base[:, ::-1 if y // BLOCK % 2 else 1, ::-1 if x // BLOCK % 2 else 1][:, :size - y, :size - x]
                block = np.clip(block.astype(np.int16) + rng.integers(-30, 30), 0, 255).astype(np.uint8)
                file.write(block, window=((y, y + block.shape[1]), (x, x + block.shape[2])))
    os.rename(path + '.new', path)


def workers_of(pid):
    """Processes that a run has begun and that hold a session: pid -> most resident bytes so far."""
    found = {}
    for name in os.listdir('/proc'):
        try:
            with open(f'/proc/{name}/status', encoding='utf-8') as f:
                status = dict(line.split(':', 1) for line in f)
            if int(status['PPid']) == pid and 'VmHWM' in status:
                with open(f'/proc/{name}/cmdline', 'rb') as f:
                    if b'spawn_main' in f.read():
                        found[int(name)] = int(status['VmHWM'].split()[0]) * 1024
        except (OSError, ValueError, KeyError):
            continue
    return found


def run(a, model, target, kill_worker=False, kill_run=False):
    """One run of the command. Returns exit status, what it printed, seconds, the most of each worker."""
    command = [sys.executable, '-m', 'onnx_tile.large._command', model, a.source, target, '--budget', a.budget, '--workers', str(a.workers),
               '--scale', '1/255', '--dtype', 'uint8', '--out-scale', '255', *(['--untiled'] if a.untiled else [])]
    start, most, kills = time.perf_counter(), {}, ['worker'] * kill_worker + ['run'] * kill_run
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None:
        time.sleep(.2)
        for pid, size in workers_of(process.pid).items():
            most[pid] = max(size, most.get(pid, 0))
        due = a.kill_after * (1 + kill_worker + kill_run - len(kills))
        if kills and chunks_done(target) >= due:
            os.kill(next(iter(workers_of(process.pid))) if kills.pop(0) == 'worker' else process.pid, signal.SIGKILL)
    return process.wait(), process.stdout.read().strip(), time.perf_counter() - start, most


def chunks_done(target):
    try:
        with open(target + '.onnx-tile/manifest.jsonl', encoding='ascii') as f:
            return len(f.readlines()) - 1
    except OSError:
        return 0


def check_seams(a, model, target, edges, samples=24):
    """Windows across the corners and edges of chunks against runs of their own with a far larger margin: how many values differ."""
    compute, rng, different, compared, half, margin = large.session(model), np.random.default_rng(5), 0, 0, 52, 192
    with rasterio.open(a.source) as source, rasterio.open(target) as made:
        for _ in range(samples):
            middle = [int(rng.integers(1, -(-a.size // e))) * e if e < a.size else int(rng.integers(half, a.size - half)) for e in edges]
            lo = [max(0, m - half) for m in middle]
            hi = [min(a.size, m + half) for m in middle]
            begin = [max(0, v - margin) // 16 * 16 for v in lo]
            end = [min(a.size, v + margin + (a.size - v - margin) % 16) for v in hi]
            x = source.read(window=((begin[0], end[0]), (begin[1], end[1]))).astype(np.float32) * np.float32(1 / 255)
            y = compute(x[None])[0][:, lo[0] - begin[0]:hi[0] - begin[0], lo[1] - begin[1]:hi[1] - begin[1]]
            y = np.clip(np.rint(y * np.float32(255)), 0, 255).astype(np.uint8)
            found = made.read(window=((lo[0], hi[0]), (lo[1], hi[1])))
            different += int((found != y).sum())
            compared += y[0].size
    return compared, different


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('folder')
    p.add_argument('--size', type=int, default=20000)
    p.add_argument('--budget', default='2GB')
    p.add_argument('--workers', type=int, default=2)
    p.add_argument('--width', type=int, default=8, help='channels of the network, at the top')
    p.add_argument('--untiled', action='store_true')
    p.add_argument('--kill-after', type=int, default=3, metavar='CHUNKS')
    how = p.add_mutually_exclusive_group()
    how.add_argument('--once', action='store_true', help='one run and its seams; nothing is killed')
    how.add_argument('--together', action='store_true', help='one run and its seams; all that is killed is of it')
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    a.source = os.path.join(a.folder, f'picture_{a.size}.tif')
    if not os.path.exists(a.source):
        make_picture(a.source, a.size)
    models = [os.path.join(a.folder, f'unet_{seed}.onnx') for seed in (7, 8)]
    for path, seed in zip(models, (7, 8)):
        onnx.save(large.unet(a.width, seed=seed), path)
    wrong, kept = 0, []

    def tell(what, good, text):
        nonlocal wrong
        wrong += not good
        print(f'{"ok   " if good else "WRONG"} {what}: {text}', flush=True)
    runs = [('run', {}), ('worker killed', {'kill_worker': True}), ('run killed', {'kill_run': True})]
    if a.together:
        runs = [('run killed', {'kill_worker': True, 'kill_run': True})]
    for name, options in runs:
        target = os.path.join(a.folder, f'out_{name.replace(" ", "_")}.tif')
        shutil.rmtree(target + '.onnx-tile', ignore_errors=True)
        if os.path.exists(target):
            os.remove(target)
        status, text, seconds, most = run(a, models[0], target, **options)
        peaks = ', '.join(f'{b >> 20} MiB' for b in most.values())
        if name == 'run killed':
            tell(name, status == -signal.SIGKILL and not os.path.exists(target), f'exit {status}, {chunks_done(target)} chunks done')
            status, text, _, _ = run(a, models[1], target)
            tell('another model', status == 2 and 'begun with another model' in text, f'exit {status}: {text}')
            status, text, seconds, most = run(a, models[0], target)
            name = 'resumed'
        tell(name, status == 0, f'{text}; {a.size ** 2 / 1e6 / seconds:.1f} Mpx/s of the whole time; workers {peaks}')
        if status:
            break
        kept.append(target)
        with open(target + '.onnx-tile/manifest.jsonl', encoding='ascii') as f:
            edges = json.loads(f.readline())['edges']
        compared, different = check_seams(a, onnx.load(models[0]), target, edges)
        tell('seams', different == 0, f'{compared} pixels across seams, {different} values differ')
        if a.once:
            break
    for target in kept[1:]:
        with rasterio.open(kept[0]) as one, rasterio.open(target) as other:
            same = all(np.array_equal(one.read(window=w), other.read(window=w)) for w in (((y, min(y + 2048, a.size)), (0, a.size)) for y in range(0, a.size, 2048)))
        tell('same file', same, f'{os.path.basename(target)} and {os.path.basename(kept[0])}')
    return wrong > 0


if __name__ == '__main__':
    sys.exit(main())
