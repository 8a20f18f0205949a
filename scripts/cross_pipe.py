#!/usr/bin/env python3
"""How often pipes wait for each other in memory: cross_pipe.py TOOL MODEL... [--target T] [--l2 SIZE,SIZE]

Every region of the models, forced, on a target with DMA: those whose buffers share memory across pipes, the pairs that do, and those of
them that would fit sharing nothing: with the packing search's places, and with those that regions have (PlanMemory's: 0).
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


def plan_of(kernel, options):
    """The plan of its l2."""
    out = subprocess.run([args.tool, 'plan-memory', kernel, *options, '--target', args.target, '--json'], capture_output=True, check=True)
    return next(p for p in json.loads(out.stdout)['scopes'] if p['scope'] == 'l2')


# before: the packing search's places, as low as it gets; now: those that the regions have
counts = {'before': [0, 0, 0], 'now': [0, 0, 0]}
regions = 0
for model in args.models:
    for l2 in args.l2.split(','):
        with tempfile.TemporaryDirectory() as tmp:
            dump = os.path.join(tmp, 'd')
            subprocess.run([args.tool, 'inspect', model, '--force', '--target', args.target, '--l2', l2, '-q', '--dump-dir', dump], check=True)
            for kernel in sorted(glob.glob(f'{dump}/region-*.tk')):
                with open(kernel, encoding='utf-8') as f:
                    text = f.read()
                options = re.search(r'^# args: (.*)', text, re.M).group(1).split()
                bare = os.path.join(tmp, 'bare.tk')
                with open(bare, 'w', encoding='utf-8') as f:
                    f.write(re.sub(r' offset=[\d,]+', '', text))
                regions += 1
                for when, plan in (('before', plan_of(bare, [*options, '--mode', 'search'])), ('now', plan_of(kernel, options))):
                    c = counts[when]
                    c[0] += plan['cross_pipe'] > 0
                    c[1] += plan['cross_pipe']
                    c[2] += plan['cross_pipe'] > 0 and plan['sum_bytes'] <= plan['capacity_bytes']
for when, (sharing, pairs, needless) in counts.items():
    print(f'{when}: {regions} regions, {sharing} share across pipes ({pairs} pairs), {needless} of them would fit sharing nothing')
