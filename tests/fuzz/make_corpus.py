#!/usr/bin/env python3
"""Small models to start fuzzing from: make_corpus.py FOLDER [N]. Random graphs of a few nodes, and the golden texts."""
import glob
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'property'))
import graph_gen  # noqa: E402


def main():
    folder, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    os.makedirs(folder, exist_ok=True)
    graph_gen.MAX_ELEMS = 3000
    made, seed = 0, 5000
    while made < n:
        seed += 1
        g = graph_gen.grow(seed, steps=1 + seed % 5)
        data = g.model().SerializeToString() if g.steps else b''
        if 0 < len(data) < 20000:
            with open(os.path.join(folder, f'random_{made:03}.onnx'), 'wb') as f:
                f.write(data)
            made += 1
    for path in glob.glob(os.path.join(HERE, '..', 'golden', '*', '*.ot')):
        text = open(path).read()
        with open(os.path.join(folder, os.path.basename(path)), 'w') as f:
            f.write(text[text.index('model '):])   # without the comments in front
    for path in glob.glob(os.path.join(HERE, 'crashes', '*')):
        shutil.copy(path, folder)


if __name__ == '__main__':
    main()
