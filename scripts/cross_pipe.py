#!/usr/bin/env python3
"""How often pipes wait for each other in memory: cross_pipe.py TOOL MODEL... [--target T] [--l2 SIZE,SIZE]

Every region of the models, forced, on a target with DMA: those whose buffers share memory across pipes, the pairs that do, and those of
them that would fit sharing nothing (0 since places are PlanMemory's).
"""
import argparse
import glob
import json
import os
import re
import subprocess
import tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('tool')
parser.add_argument('models', nargs='+')
parser.add_argument('--target', default='tlf-16m')
parser.add_argument('--l2', default='512K,2M')
args = parser.parse_args()

regions = sharing = pairs = needless = 0
for model in args.models:
    for l2 in args.l2.split(','):
        with tempfile.TemporaryDirectory() as tmp:
            dump = os.path.join(tmp, 'd')
            subprocess.run([args.tool, 'inspect', model, '--force', '--target', args.target, '--l2', l2, '-q', '--dump-dir', dump], check=True)
            for kernel in sorted(glob.glob(f'{dump}/region-*.tk')):
                with open(kernel, encoding='utf-8') as f:
                    options = re.search(r'^# args: (.*)', f.read(), re.M).group(1).split()
                out = subprocess.run([args.tool, 'plan-memory', kernel, *options, '--target', args.target, '--json'], capture_output=True, check=True)
                plan = next(p for p in json.loads(out.stdout)['scopes'] if p['scope'] == 'l2')
                regions += 1
                pairs += plan['cross_pipe']
                sharing += plan['cross_pipe'] > 0
                needless += plan['cross_pipe'] > 0 and plan['sum_bytes'] <= plan['capacity_bytes']
print(f'{regions} regions, {sharing} share across pipes ({pairs} pairs), {needless} of them would fit sharing nothing')
