#!/usr/bin/env python3
"""What tiles save of the SRAM that Vela, the compiler for Ethos-U, asks for: a table for docs/runtimes.md.

  vela_table.py --tool TOOL [--folder DIR] [NAME...]

Networks of models/make_models.py, as they are and tiled, go through onnx2tf (to 8 bits, calibrated on random pictures) and Vela for an
Ethos-U55 with 256 multipliers. The packages are those of scripts/requirements-vela.txt. Bytes and seconds are Vela's own, nothing is run.
Minutes a network.
"""
import argparse
import csv
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
# how each is made, and tiled; fast memory for float32 is four times that of the 8 bits that run
NETWORKS = {
    'mobilenet_v2': (['--size', '144'], ['--l2', '512K']),
    'dncnn': (['--size', '128', '--width', '16', '--depth', '8'], ['--l2', '1M', '--max-tensor', '512K']),
    'unet': (['--size', '128', '--width', '8'], []),
}
WAYS = (('Performance', []), ('Size', []), ('Size', ['--disable-cascading']))
# onnx2tf looks for pictures of this name before it fetches some, though it is given others
PICTURES = 'calibration_image_sample_data_20x128x128x3_float32.npy'


def quiet(words, folder):
    r = subprocess.run(words, cwd=folder, capture_output=True, text=True,
                       env={**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3', 'CUDA_VISIBLE_DEVICES': ''})
    if r.returncode:
        sys.exit(f'{words[0]}: {(r.stderr.strip() or r.stdout.strip()).splitlines()[-1]}')


def quantised(model, folder):
    """The .tflite of a model, 8 bits throughout."""
    given = onnx.load(os.path.join(folder, model)).graph.input[0]
    n, channels, height, width = (d.dim_value for d in given.type.tensor_type.shape.dim)
    random, stem = np.random.default_rng(0), model[:-len('.onnx')]
    np.save(os.path.join(folder, PICTURES), random.random((20, 128, 128, 3), 'f4'))
    np.save(os.path.join(folder, f'{stem}.npy'), random.normal(0, 1, (8 * n, height, width, channels)).astype('f4'))
    quiet(['onnx2tf', '-i', model, '-o', stem, '-oiqt', '-iqd', 'int8', '-oqd', 'int8', '-cind', given.name, f'{stem}.npy', '[[[[0]]]]', '[[[[1]]]]',
           '-nuo', '-v', 'error'], folder)
    return os.path.join(stem, f'{stem}_full_integer_quant.tflite')


def compiled(tflite, way, options, folder):
    """(bytes of SRAM, seconds of a run), as Vela has them."""
    with tempfile.TemporaryDirectory() as out:
        quiet(['vela', tflite, '--accelerator-config', 'ethos-u55-256', '--optimise', way, *options, '--output-dir', out], folder)
        with open(glob.glob(f'{out}/*summary*.csv')[0], encoding='ascii') as f:
            row = next(csv.DictReader(f))
    return float(row['sram_memory_used']) * 1024, float(row['inference_time'])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--tool', required=True)
    a.add_argument('--folder', help='keeps what is made')
    a.add_argument('names', nargs='*', metavar='NAME')
    a = a.parse_args()
    if set(a.names) - set(NETWORKS):
        a.error('NAME: one of ' + ', '.join(NETWORKS))
    os.environ['PATH'] = os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH']
    tool = os.path.abspath(a.tool)
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(a.folder or temporary)
        os.makedirs(folder, exist_ok=True)
        print('| network | Vela | SRAM, KiB | | time, ms | |\n|---|---|---|---|---|---|')
        for name in a.names or NETWORKS:
            made, options = NETWORKS[name]
            quiet([sys.executable, os.path.join(ROOT, 'models', 'make_models.py'), '.', name, *made], folder)
            quiet([tool, f'{name}.onnx', '-o', f'{name}-tiled.onnx', '--target', 'ethos-u55', *options], folder)
            files = [quantised(f'{name}{end}.onnx', folder) for end in ('', '-tiled')]
            for way, more in WAYS:
                (sram, time), (tiled, took) = (compiled(x, way, more, folder) for x in files)
                print(f'| {name} | `{" ".join(["--optimise", way, *more])}` | {sram / 1024:.0f} -> {tiled / 1024:.0f} | x{tiled / sram:.2f} | '
                      f'{time * 1e3:.2f} -> {took * 1e3:.2f} | x{took / time:.2f} |', flush=True)


if __name__ == '__main__':
    main()
