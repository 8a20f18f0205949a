"""What run.sh has in Python: models and arrays, figures of runs."""
import json

import numpy as np
from onnx import TensorProto as T, helper

from builder import constant, model, save, value
from command_line import commands


def models(d):
    """Small models of each kind of input, and arrays for them."""
    def write(name, nodes, inputs, outputs, inits=()):
        save(model(nodes, inputs, outputs, inits), f'{d}/{name}.onnx')

    def node(op, x, y, name=''):
        return helper.make_node(op, x.split(), [y], name)
    w = constant('w', [1, -2, .5])
    nodes = [node('Add', 'x w', 'a', 'add'), node('Relu', 'a', 'y', 'relu'), node('Shape', 'y', 'z', 'shape')]
    results = [value('y', None), value('z', None, T.INT64)]
    write('chain', nodes, [value('x', ['n', 3])], results, [w])
    write('given', nodes, [value('x', ['n', 3]), value('w', ['k'])], results, [w])
    kinds = {'h': T.FLOAT16, 'd': T.DOUBLE, 'i': T.INT32, 'b': T.BOOL, 'u': T.UINT8}
    write('kinds', [node('Identity', k, 'o' + k) for k in kinds], [value(k, [2, 2], t) for k, t in kinds.items()],
          [value('o' + k, [2, 2], t) for k, t in kinds.items()])
    write('strange', [node('Strange', 'x', 'y', 'odd')], [value('x', [1])], [value('y', [1])])
    write('words', [node('Identity', 'x', 'y')], [value('x', [1], T.STRING)], [value('y', [1], T.STRING)])
    write('rankless', [node('Relu', 'x', 'y')], [value('x', None)], [value('y', None)])
    m = model([node('Relu', 'few', 'y', 'thin')], [], [value('y', [4])])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(constant('few', [2]), constant('at', [1], 'i8'), [4]))
    save(m, f'{d}/sparse.onnx')
    x = np.array([[1, 2, 3], [-4, 5, -6]], 'f4')
    arrays = {'x': x, 'xf': np.asfortranarray(x), 'double': x.astype('f8'), 'flat': x.ravel(),
              'wide': np.zeros((2, 4), 'f4'), 'w1': np.array([10], 'f4')}
    for name, a in arrays.items():
        np.save(f'{d}/{name}.npy', a)
    open(f'{d}/x.pb', 'wb').write(constant('x', x).SerializeToString())
    open(f'{d}/bad.npy', 'w').write('no array')


def claims():
    """old, bytes: the shape that the file states is not what the operands make; arrays claim_f4, claim_u1."""
    def write(name, nodes, x, y, inits, opset):
        save(model(nodes, [value('x', *x)], [value('y', *y)], inits, opset, domains=[('com.microsoft', 1)]), name + '.onnx')
    extents, claimed = [3, 32, 16], [9, 32, 16]
    write('old', [helper.make_node('Relu', ['x'], ['y']), helper.make_node('Sin', ['x'], ['not_of_opset_6'])],
          (extents,), (claimed,), [], 6)
    add = helper.make_node('QLinearAdd', ['x', 's', 'z', 'x', 's', 'z', 's', 'z'], ['y'], domain='com.microsoft')
    write('bytes', [add], (extents, T.UINT8), (claimed, T.UINT8), [constant('s', .5), constant('z', 3, 'u1')], 17)
    np.save('claim_f4.npy', np.ones(extents, 'f4'))
    np.save('claim_u1.npy', np.ones(extents, 'u1'))


def random_arrays():
    """What run makes of a seed: each type, floats in [0, 1), bytes and integers of zeros and ones."""
    h, d, i, b, u = (np.load(f'a/{k}.npy') for k in range(5))
    assert [v.dtype.str for v in (h, d, i, b, u)] == ['<f2', '<f8', '<i4', '|b1', '|u1']
    assert all(0 <= v < 1 for v in [*h.ravel(), *d.ravel()]) and len(set(d.ravel())) == 4
    assert b.all() and set(i.ravel()) | set(u.ravel()) <= {0, 1}


def figures(path):
    """Keys and values of the JSON of three runs with the obvious operators."""
    j = json.load(open(path))
    times = ['least_seconds', 'median_seconds', 'p90_seconds', 'p99_seconds']
    assert set(j) == {*times, 'ms_min', 'runs', 'peak_bytes', 'planned_peak_bytes', 'weight_bytes',
                      'resident_bytes', 'threads', 'nodes', 'outputs'}, j
    assert j['runs'] == 3 and j['threads'] == 2 and j['weight_bytes'] == 12
    assert 0 < j['least_seconds'] and [j[k] for k in times] == sorted(j[k] for k in times)
    assert j['resident_bytes'] > 100000
    assert abs(j['ms_min'] - 1e3 * j['least_seconds']) <= 1e-9 * j['ms_min']  # the one older name, which judges read
    assert [n['op'] for n in j['nodes']] == ['Add', 'Relu', 'Shape']
    assert set(j['nodes'][0]) == {'name', 'op', 'measured_seconds'}
    assert j['nodes'][0]['name'] == 'add' and j['nodes'][0]['measured_seconds'] >= 0
    assert j['outputs'][0] == {'name': 'y', 'dtype': 'float32', 'shape': [2, 3]}
    assert j['peak_bytes'] >= j['planned_peak_bytes'] == 24


def traced(path, trace):
    """A trace has the nodes that ran, and changes no outputs."""
    j, e = json.load(open(path)), json.load(open(trace))['traceEvents']
    assert j['runs'] == 1 and {x['args']['name'] for x in e if x['name'] == 'process_name'} == {'chain.onnx'}, e
    x = [v for v in e if v['ph'] == 'X']
    assert [v['args']['op'] for v in x] == ['Relu', 'Shape'] and all(v['ts'] >= 0 and v['dur'] >= 0 for v in x), x
    assert np.array_equal(np.load('traced/0.npy'), np.load('got/0.npy'))


if __name__ == '__main__':
    commands(models, claims, random_arrays, figures, traced)
