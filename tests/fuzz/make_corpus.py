#!/usr/bin/env python3
"""Small models to start fuzzing from: random graphs of a few nodes, and the golden texts.

  make_corpus.py FOLDER [N] [--no-text] [--engine-form TOOL] [--range] [--arrays]

--no-text: models only. --engine-form: the graphs as the tool tiles them with --emit engine, those in which it finds a region, as
models and as text. --range: graphs with dynamic dimensions, behind options that say for which sizes. --arrays: files of arrays, behind
the bytes by which fuzz_arrays.c opens them. Models are there as ONNX Runtime saves them optimised, too, where it is installed.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'property'))
import graph_gen  # noqa: E402


def random_models(n):
    """n of them, as bytes."""
    graph_gen.MAX_ELEMS = 3000
    made, seed = 0, 5000
    while made < n:
        seed += 1
        g = graph_gen.grow(seed, steps=1 + seed % 5)
        data = g.model().SerializeToString() if g.steps else b''
        if 0 < len(data) < 20000:
            made += 1
            yield data


def write(folder, name, data):
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(data)


def engine_forms(tool, folder, n):
    made = 0
    with tempfile.TemporaryDirectory() as tmp:
        for data in random_models(6 * n):
            write(tmp, 'm.onnx', data)
            for suffix in ('onnx', 'ot'):
                out = os.path.join(tmp, f'tiled.{suffix}')
                words = [tool, os.path.join(tmp, 'm.onnx'), '-o', out, '-q', '--force', '--l2', '1K', '--target', 'cpu-generic', '--emit', 'engine']
                subprocess.run(words, check=True)
                with open(out, 'rb') as f:
                    tiled = f.read()
                if b'While' in tiled and len(tiled) < 30000:
                    made += 1
                    write(folder, f'tiled_{made:03}.{suffix}', tiled)
            if made >= n:
                break


def ranges(folder, n):
    import dynamic_sizes

    made, seed = 0, 5000
    while made < n:
        seed += 1
        case = (dynamic_sizes.any_case if seed % 2 else dynamic_sizes.image_case)(seed)
        if case is None:
            continue
        model, design, shapes, _ = case
        data = model.SerializeToString()
        if len(data) >= 20000:
            continue
        lines = []
        for name, dims in design.items():
            seen = [[s[name][k] for s in shapes] for k in range(len(dims))]
            lines.append(f'--range={name}=' + ','.join(str(d[0]) if len(set(d)) == 1 else f'{min(d)}:{max(d)}' + (':3' if seed % 3 == 0 else '') for d in seen))
        if seed % 4:
            lines += [f'--design={name}=' + ','.join(map(str, dims)) for name, dims in design.items()]
        lines += ['--goal=memory'] if seed % 5 else ['--memory-budget=64K']
        lines += ['--force'] if seed % 3 else []
        made += 1
        write(folder, f'range_{made:03}', '\n'.join(lines).encode() + b'\n' + data)


def saved(data):
    """The model as ONNX Runtime saves it with all optimisations, or with those that other machines can read; None: it does not."""
    try: import onnxruntime as ort
    except ImportError: return
    for level in (ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED):
        with tempfile.TemporaryDirectory() as tmp:
            o = ort.SessionOptions()
            o.log_severity_level, o.optimized_model_filepath, o.graph_optimization_level = 4, os.path.join(tmp, 'm.onnx'), level
            try: ort.InferenceSession(data, o, providers=['CPUExecutionProvider'])
            except Exception: continue
            with open(o.optimized_model_filepath, 'rb') as f: yield f.read()


def arrays(folder):
    import io

    import numpy as np
    from onnx import numpy_helper

    made = [np.arange(24).astype(t).reshape(d) for t in ('f4', 'f2', 'u1', '?', 'i8') for d in ((24,), (2, 3, 4), (1, 24))]
    for k, a in enumerate([*made, np.asfortranarray(made[1]), np.zeros((3, 0), 'f4'), np.float64(3)]):
        npy, dims = io.BytesIO(), list(np.shape(a))[:4]
        np.save(npy, a)
        contents = (npy.getvalue(), np.asarray(a).tobytes(), numpy_helper.from_array(np.asarray(a)).SerializeToString())
        for kind, content in enumerate(contents):
            for how in (0, 4, 12, 16):
                head = bytes([kind + how, k % 8, len(dims), *(dims + [1] * (4 - len(dims)))])
                write(folder, f'array_{k:02}_{kind}_{how}', head + content)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('folder')
    p.add_argument('n', nargs='?', type=int, default=60)
    p.add_argument('--no-text', action='store_true')
    p.add_argument('--engine-form', metavar='TOOL')
    p.add_argument('--range', action='store_true')
    p.add_argument('--arrays', action='store_true')
    o = p.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    for path in glob.glob(os.path.join(HERE, 'crashes', '*')):
        shutil.copy(path, o.folder)
    if o.arrays:
        return arrays(o.folder)
    if o.engine_form:
        return engine_forms(os.path.abspath(o.engine_form), o.folder, o.n)
    if o.range:
        return ranges(o.folder, o.n)
    for k, data in enumerate(random_models(o.n), 1):
        write(o.folder, f'random_{k:03}.onnx', data)
        for j, other in enumerate(saved(data) if k % 3 == 0 else []): write(o.folder, f'saved_{k:03}_{j}.onnx', other)
    for path in [] if o.no_text else glob.glob(os.path.join(HERE, '..', 'golden', '*', '*.ot')):
        with open(path, 'rb') as f:
            text = f.read()
        write(o.folder, os.path.basename(path), text[text.index(b'model '):])   # without the comments in front
    return None


if __name__ == '__main__':
    main()
