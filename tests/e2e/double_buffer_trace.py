"""The trace of examples/kernels/double_buffer.tk: its statements, its pipes, the memory at its fullest. double_buffer_trace.py TRACE"""
import json
import sys

e = json.load(open(sys.argv[1]))['traceEvents']
names = [x['name'] for x in e]
assert 'alloc a' in names and 'free p' in names and 'p = square' in names and 'y <- p' in names, names[:20]
rows = {x['tid']: x['args']['name'] for x in e if x['name'] == 'thread_name'}
assert {rows[x['tid']] for x in e if x['ph'] == 'X'} == {'fetch', 'drain', 'vector'}
assert {rows[x['tid']] for x in e if x['ph'] == 'i'} == {'memory'}
assert max(x['args']['bytes'] for x in e if x['ph'] == 'C') == 4096
