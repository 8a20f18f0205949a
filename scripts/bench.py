#!/usr/bin/env python3
"""Benchmarks: generated networks, tiled for time and for memory, measured in stock ONNX Runtime.

  bench.py [--tool T] [--only NAME]... [--threads N] [--rounds N]

Prints one line a network and goal, with the tool's own time and peak memory. Exit 1 when an output differs.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'models')]
import compare  # noqa: E402
import make_models  # noqa: E402
import onnx  # noqa: E402

CASES = [
    ('resnet50_b8', 'resnet50', dict(batch=8)),
    ('mobilenet_v2_b16', 'mobilenet_v2', dict(batch=16)),
    ('vgg16_head_512', 'vgg16_head', dict(size=512)),
    ('sr_360p', 'sr', dict(size=360)),
    ('unet_512', 'unet', dict(size=512)),
    ('dncnn_512_w32', 'dncnn', dict(size=512, width=32)),
    ('vit_1024_tokens', 'vit', dict(size=512, depth=2)),
    ('elementwise_1024', 'elementwise', dict(size=1024)),
    ('depthwise_b16', 'depthwise', dict(batch=16)),
]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--tool', default='build/onnx-tile')
    p.add_argument('--only', action='append')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--rounds', type=int, default=3)
    a = p.parse_args()
    failed = 0
    print(compare.HEADER, flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        for name, model, arguments in CASES:
            if a.only and name not in a.only:
                continue
            before, after = os.path.join(tmp, 'a.onnx'), os.path.join(tmp, 'b.onnx')
            onnx.save(make_models.build(model, **arguments), before)
            for goal in ('time', 'memory'):
                start = time.perf_counter()
                subprocess.run([a.tool, before, '-o', after, '-q', '--goal', goal, '--threads', str(a.threads)], check=True)
                took = time.perf_counter() - start
                facts = compare.compare(before, after, a.threads, a.rounds)
                failed += bool(facts['why'])
                print(compare.row(f'{name} ({goal})', facts) + f' tool {took:.2f} s', flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f'{failed} differ; largest child process {peak:.0f} MB')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
