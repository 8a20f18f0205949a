#!/usr/bin/env python3
"""Section out-of-memory of docs/results.md: networks of the classes that people run out of memory with, before and after, in ONNX Runtime.

  out_of_memory.py [--tool build/onnx-tile] [--only GLOB] [--rounds N]

Makes each model (models/memory_models.py), runs the command of its row, and runs both models in ONNX Runtime on the same inputs, one thread,
each in a process of its own. Memory: bytes that the process grows by while the model runs, over the loaded session, the largest of the
rounds. Outputs are equal as scripts/compare.py has it. Exit 1 when an
output differs or a model is not made smaller.
"""
import argparse
import fnmatch
import os
import shlex
import subprocess
import sys
import tempfile

from compare import compare

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEMORY = '--goal memory --threads 1'
# (thread, what it is about, model, options of the one command)
CASES = [
    ('microsoft/onnxruntime#11627', 'a segmentation network of 2 MB takes gigabytes on the slices of a volume', 'slices', MEMORY),
    ('microsoft/onnxruntime#23867', 'a generator of 1.4 MB takes 23 GB at 540 x 960', 'srgan', MEMORY),
    ('microsoft/onnxruntime#25195', 'one tensor is larger than a buffer of the browser may be', 'wide_tensors', MEMORY + ' --max-tensor 34M'),
    ('microsoft/onnxruntime#9178', '64 channels at four times the size do not fit into the browser', 'early_upscale', MEMORY),
    ('spinalcordtoolbox/spinalcordtoolbox#4612', 'killed at 113 slices of 200 x 200', 'volume_unet', MEMORY),
    ('chaiNNer-org/chaiNNer#2007', 'ESRGAN: 9 GB for pieces of 512, 3 GB for pieces of 256, so cut by default', 'esrgan', MEMORY),
    ('xinntao/Real-ESRGAN#211', 'pictures cut into pieces to save memory have seams', 'compact', MEMORY),
    ('Comfy-Org/ComfyUI#163', 'the decoder of latents does not fit; in pieces it has seams', 'vae_decoder', MEMORY + ' --max-slowdown 30'),
    ('tensorflow/tflite-micro#3032', 'the first layers need more than the arena has: run them patch by patch', 'mobilenet', MEMORY),
    ('neuroneural/brainchop-cli#36', 'a whole volume through MeshNet', 'meshnet', MEMORY),
]


def measure(case, a, folder):
    thread, _, model, options = case
    path, tiled = f'{folder}/{model}.onnx', f'{folder}/{model}-tiled.onnx'
    subprocess.run([sys.executable, f'{ROOT}/models/memory_models.py', folder, model], check=True)
    subprocess.run([a.tool, path, '-o', tiled, '-q', *shlex.split(options)], check=True)
    facts = compare(path, tiled, rounds=a.rounds)
    before, after = (int(mb * (1 << 20)) for mb in facts['peak_mb'])
    owner, number = thread.split('#')
    more = options.removeprefix(MEMORY).strip()
    return {'line': f'| [{thread}](https://github.com/{owner}/issues/{number}) | `{model}` | {f"`{more}`" if more else ""} | '
                    f'{before:,} | {after:,} | x{after / before:.2f} | {facts["why"] or "equal"} |',
            'good': not facts['why'] and after < before}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default=f'{ROOT}/build/onnx-tile')
    p.add_argument('--only', default='*')
    p.add_argument('--rounds', type=int, default=2)
    a = p.parse_args()
    lines, good = ['| thread | model | more options | bytes before | after | ratio | outputs |', '|---|---|---|--:|--:|--:|---|'], True
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if not fnmatch.fnmatch(case[2], a.only):
                continue
            row = measure(case, a, folder)
            print(row['line'], file=sys.stderr, flush=True)
            lines.append(row['line'])
            good = good and row['good']
    print('\n'.join(lines))
    print(f'\n{len(lines) - 2} models: {"outputs equal, all smaller" if good else "NOT as it should be"}')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
