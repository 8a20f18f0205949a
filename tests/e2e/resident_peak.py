"""The process that runs a model holds no more than files, plan, arrays and 50 MB. resident_peak.py TOOL MODEL OUTSIDE

Loads nothing but the standard library: what this process holds before its child begins counts as the child's.
"""
import json
import os
import resource
import subprocess
import sys


def peak(tool, model, outside):
    """outside: the file of the weights, "" where they are in the model."""
    arrays = 4 * (4 * 64 * 16 * 16 + 4 * 1000)
    p = subprocess.run([tool, 'run', model, '--json', '--threads', '2', '--repeat', '2'], capture_output=True)
    if p.returncode:
        sys.exit(p.stderr.decode())
    planned = json.loads(p.stdout)['planned_peak_bytes']
    held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    stored = os.path.getsize(model) + (os.path.getsize(outside) if outside else 0)
    over = held - stored - planned - arrays
    if over > 50e6:
        sys.exit(f'{model}: {held} bytes resident: {over} more than {stored} in files, {planned} planned and {arrays} of arrays')


peak(*sys.argv[1:])
