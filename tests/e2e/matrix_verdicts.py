"""What scripts/matrix.py calls wrong and what not, how it merges results, and what its table makes of words."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts'))
import matrix
import matrix_table

a = np.arange(6, dtype='f4').reshape(2, 3)
assert matrix.difference([a], [a]) == '' and matrix.difference([a], [a + 1e-4]) == ''
assert 'shape' in matrix.difference([a], [a[:1]]) and 'type' in matrix.difference([a], [a.astype('f8')])
assert 'values' in matrix.difference([a], [a + 0.1]) and 'finite' in matrix.difference([a], [a * np.float32('nan')])
assert '1 outputs of 2' in matrix.difference([a, a], [a])
one = {'table': 'forms', 'row': 'r', 'network': 'n', 'runtime': 'x', 'verdict': 'equal', 'words': ''}
old = {'runtimes': {'x': 1, 'y': 1}, 'results': [one, dict(one, runtime='y', verdict='wrong')]}
both = matrix.merged(old, {'runtimes': {'y': 2, 'z': 2}, 'results': [dict(one, runtime='y'), dict(one, runtime='z')]})
assert [(r['runtime'], r['verdict']) for r in both['results']] == [('x', 'equal'), ('y', 'equal'), ('z', 'equal')], both
assert both['runtimes'] == {'x': 1, 'y': 2, 'z': 2}
cell = dict(table='forms', row='--runtime portable', runtime='tract', verdict='wrong')
assert matrix.must_not(cell, True) and not matrix.must_not(dict(cell, verdict='refused'), True)
assert not matrix.must_not(dict(cell, row='form scan'), True) and matrix.must_not(dict(cell, row='form scan', runtime='onnxruntime'), True)
assert matrix.must_not(dict(cell, row='--runtime openvino', runtime='openvino'), True)
words = 'RuntimeError: Exception from src/a.cpp:1:\nCheck failed\nThe rank of /tmp/x/y.onnx is 0x12ab'
assert matrix_table.shorten(words) == 'Check failed', matrix_table.shorten(words)
some = [dict(verdict=v, words=w) for v, w in (('equal', ''), ('refused', 'no Loop tile/r0/x'), ('refused', 'no Loop tile/r1/y'), ('-', 'untiled'))]
assert matrix_table.sum_cell(some) == '1, refused 2' and matrix_table.sum_cell(some[:1]) == 'equal'
