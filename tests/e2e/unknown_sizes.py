"""What unknown_sizes.sh has in Python."""
import json
import os
import re
import subprocess
import xml.etree.ElementTree as E

import numpy as np
import onnxruntime as ort
from builder import Net, TensorProto, helper, save
from command_line import commands

RUNTIMES = [[], ['--runtime', 'openvino'], ['--runtime', 'portable'], ['--runtime', 'loop'], ['--emit', 'engine'], ['--runtime', 'engine'],
            ['--runtime', 'engine-device'], ['--emit', 'ort-engine'], ['--target', 'tlf-16m']]
NO_GROWTH = ('--emit', 'engine', 'tlf-16m')  # of whose processes nothing is predicted

# Columns: the words of a command; a limit that is far too small, and one that everything keeps.
SMALL, LARGE = '1K', '100G'
TILE, GATE = ['-o', 'out.onnx'], ['gate']
COLUMNS = {'no limit': [TILE],
           '`--memory-budget`': [TILE + ['--memory-budget', SMALL], TILE + ['--memory-budget', LARGE]],
           'and `--best-effort`': [TILE + ['--best-effort', '--memory-budget', SMALL], TILE + ['--best-effort', '--memory-budget', LARGE]],
           '`--max-tensor`': [TILE + ['--max-tensor', SMALL], TILE + ['--max-tensor', LARGE]],
           '`gate --max-peak`': [GATE + ['--max-peak', SMALL], GATE + ['--max-peak', LARGE]],
           '`gate --max-growth`': [GATE + ['--max-growth', SMALL], GATE + ['--max-growth', LARGE]],
           '`gate --max-process`': [GATE + ['--max-process', SMALL], GATE + ['--max-process', LARGE]]}
KNOWN = ['0', '3, 0', '0, 0', '3, 0', '3, 0', '3, 0', '3, 0']
FREE = ['0', '3, 0', '0, 0', '3, 3', '3, 0', '3, 0', '3, 0']
UNKNOWN = ['0', '3, 3', '0, 0', '3, 3', '3, 3', '3, 3', '3, 3']
ROWS = {'static': ('all sizes are stated', KNOWN),
        'free': ('dimensions of the inputs are free, and a size is guessed', FREE),
        'odd': ('they are free, and no guessed size fits', UNKNOWN),
        'unranked': ('an input has not even a rank', UNKNOWN),
        'custom': ('sizes behind an operator of another domain are not known', UNKNOWN),
        'counted': ('sizes depend on values (NonZero)', UNKNOWN),
        'asked': ('sizes are an input of the model (Reshape)', UNKNOWN),
        'inside': ('sizes inside of a Loop depend on values', UNKNOWN)}


def chain(net, x, channels=3):
    """Two convolutions and a Relu behind each."""
    for k in range(2):
        x = net.op('Relu', net.conv(x, channels if k == 0 else 8, 8, pads=[1] * 4))
    return x


def graph(nodes, results, name='body', ins=()):
    def tensor(v): return helper.make_tensor_value_info(v, {'i': TensorProto.INT64, 'go': TensorProto.BOOL, 'on': TensorProto.BOOL}.get(v, 1), None)
    return helper.make_graph(nodes, name, [tensor(v) for v in ins], [tensor(v) for v in results])


def looped(net, x, nodes):
    """A Loop of three iterations that carries x as `a`, and makes of it `b`."""
    body = graph([*nodes, helper.make_node('Identity', ['go'], ['on'], 'go_on')], ['on', 'b'], ins=['i', 'go', 'a'])
    return net.op('Loop', net.const(np.int64(3), 'i8'), net.const(np.array(True), '?'), x, body=body)


RANGE = {'from': 0, 'to': 4, 'axes': 1}  # of a Slice


def wide(x, tag):
    """Nodes that make of x a tensor four times as large, its Neg, and a tensor of x's extents."""
    return [helper.make_node('Concat', [x] * 4, [tag + 'w'], tag + 'concat', axis=1), helper.make_node('Neg', [tag + 'w'], [tag + 'n'], tag + 'neg'),
            helper.make_node('Slice', [tag + 'n', 'from', 'to', 'axes'], [tag], tag + 'slice')]


def inner(net, name, x):
    """What is wide is inside of the node alone."""
    for key, at in RANGE.items(): net.const(np.array([at]), 'i8', key)
    if name == 'loop': return looped(net, x, wide('a', 'b'))
    branches = dict(then_branch=graph(wide('x', 'y1'), ['y1'], 'yes'), else_branch=graph([helper.make_node('Neg', ['x'], ['y2'], 'small')], ['y2'], 'no'))
    if name == 'if': return net.op('If', net.input('yes', [], TensorProto.BOOL), **branches)
    if name == 'nested':
        net.input('yes', [], TensorProto.BOOL)
        branches['then_branch'] = graph(wide('a', 'y1'), ['y1'], 'yes')
        branches['else_branch'] = graph([helper.make_node('Neg', ['a'], ['y2'], 'small')], ['y2'], 'no')
        return looped(net, x, [helper.make_node('If', ['yes'], ['b'], 'inner', **branches)])
    net.nodes.append(helper.make_node('Wide', [x], ['y'], 'call', domain='f'))
    return 'y'


def decided(tool, folder):
    """An If whose condition is known makes what the branch that is taken makes: as exporters write "squeeze this axis if it is 1"."""
    for frames in 1, 2:
        net = Net()
        x = net.input('x', [1, 4, frames, 8, 8])
        extent = net.op('Gather', net.op('Shape', x), net.const(np.array(2), 'i8'), axis=0)
        net.const(np.array([2]), 'i8', 'axis')
        branches = dict(then_branch=graph([helper.make_node('Squeeze', ['x', 'axis'], ['y1'], 'squeeze')], ['y1'], 'yes'),
                        else_branch=graph([helper.make_node('Identity', ['x'], ['y2'], 'keep')], ['y2'], 'no'))
        y = net.op('If', net.op('Equal', extent, net.const(np.array(1), 'i8')), **branches)
        net.output(net.op('Neg', y), ['a', 4, 'h', 'w'] if frames == 1 else ['a', 4, 'f', 'h', 'w'])
        save(net.model(), f'{folder}/d.onnx')
        told = subprocess.run([tool, 'inspect', f'{folder}/d.onnx', '-q', '-d', 'S'], capture_output=True, text=True, check=True)
        shape = '[1,4,8,8]' if frames == 1 else '[1,4,2,8,8]'
        assert f'%{y} : float32{shape} = If(' in told.stderr, (frames, told.stderr)


def bodies(tool, folder):
    """Values inside of an If, a Loop and a function count: beside x and y, two tensors four times as large, and what the Loop carries; in an If
    inside of a Loop they do likewise."""
    one = 4 * 4 * 64 * 64
    for name in 'if', 'loop', 'nested', 'function':
        net = Net()
        x = net.input('x', [1, 4, 64, 64])
        net.output(net.op('Neg', inner(net, name, x)), [1, 4, 64, 64])
        domains, functions = (), []
        if name == 'function':
            domains = [('f', 1)]
            consts = [helper.make_node('Constant', [], [key], value_ints=[at]) for key, at in RANGE.items()]
            functions = [helper.make_function('f', 'Wide', ['p'], ['q'], consts + wide('p', 'q'), [helper.make_opsetid('', 17)])]
        save(net.model(domains=domains, functions=functions), f'{folder}/b.onnx')
        told = subprocess.run([tool, 'inspect', f'{folder}/b.onnx', '--json'], capture_output=True, text=True, check=True)
        j = json.loads(told.stdout)
        least = (5 if name == 'function' else 9) * one  # y lives, too; nodes of a function are the graph's, and write over what they read
        assert least <= j['untiled']['peak_bytes'] <= least + 3 * one and 'unknown_sizes' not in j, (name, j['untiled'])
        for bytes_, want in (4 * one - 1, 0 if name == 'function' else 3), (4 * one, 0):  # the graph's nodes can be tiled
            r = subprocess.run([tool, f'{folder}/b.onnx', '-o', f'{folder}/out.onnx', '-q', '--max-tensor', str(bytes_)], capture_output=True, text=True)
            assert r.returncode == want, (name, bytes_, r.returncode, r.stderr)


def make(name):
    """The model of a row."""
    net, extents, domains = Net(), [1, 3, 64, 64], ()
    if name == 'static':
        net.output(chain(net, net.input('x', extents)), [1, 8, 64, 64])
    elif name == 'free':
        net.output(chain(net, net.input('x', ['n', 3, 'h', 'w'])), ['n', 8, 'h', 'w'])
    elif name == 'odd':
        net.output(net.op('Relu', net.op('Add', net.input('x', [1, 'a']), net.const(np.ones((1, 37))))), [1, 37])
    elif name == 'unranked':
        net.output(chain(net, net.input('x', None)))
    elif name == 'custom':
        net.nodes.append(helper.make_node('Odd', [chain(net, net.input('x', extents))], ['o'], domain='custom'))
        domains = [('custom', 1)]
        net.output(chain(net, 'o', 8))
    elif name == 'counted':
        net.output(net.op('Relu', net.op('Cast', net.op('NonZero', chain(net, net.input('x', extents))), to=1)))
    elif name == 'inside':
        counted = helper.make_node('NonZero', ['a'], ['where'], 'where'), helper.make_node('Shape', ['where'], ['many'], 'many')
        mean = helper.make_node('Cast', ['many'], ['f'], 'cast', to=1), helper.make_node('ReduceMean', ['f'], ['m'], 'mean', keepdims=0)
        add = helper.make_node('Add', ['a', 'm'], ['b'], 'add')
        net.output(looped(net, chain(net, net.input('x', extents)), [*counted, *mean, add]), [1, 8, 64, 64])
    else:
        net.output(chain(net, net.op('Reshape', net.input('x', [3 * 64 * 64]), net.input('s', [4], TensorProto.INT64))))
    return net.model(domains=domains)


def status(tool, folder, model, words, runtime):
    words = ['gate', model, *words[1:]] if words[0] == 'gate' else [model, *words]
    out = os.path.join(folder, 'out.onnx')
    if os.path.exists(out):
        os.remove(out)
    r = subprocess.run([tool, *words, *runtime], cwd=folder, capture_output=True, text=True)
    assert (r.returncode == 0) == (not r.stderr), (words, r.stderr)
    assert len(r.stderr.splitlines()) <= 1, (words, r.stderr)
    assert words[0] == 'gate' or os.path.exists(out) == (r.returncode == 0), (words, 'a file beside exit', r.returncode)
    return r.returncode


def table(cells):
    """The lines of docs/reports.md: rows that are alike are one."""
    lines = ['| exit status with 1K, 100G | ' + ' | '.join(COLUMNS) + ' |', '|---|' + '---|' * len(COLUMNS)]
    alike = {}
    for name in ROWS:
        alike.setdefault(tuple(cells[name]), []).append(ROWS[name][0])
    return lines + [f'| {"; ".join(told)} | ' + ' | '.join(row) + ' |' for row, told in alike.items()]


def grid(tool, folder, document):
    """Every model, runtime and limit; the document has the table."""
    bad = []
    for name, (_, wanted) in ROWS.items():
        save(make(name), f'{folder}/{name}.onnx')
        for runtime in RUNTIMES:
            if name == 'custom' and 'ort-engine' in runtime:
                continue  # the engine does not run it, which is exit status 1
            for (column, commands_), want in zip(COLUMNS.items(), wanted):
                grows = not any(w in NO_GROWTH for w in runtime) or 'engine-device' in runtime
                known = grows and not ('process' in column and 'engine-device' in runtime)
                # a session of the engine needs sizes
                known = known or name == 'static' and 'growth' in column and any(w in ('engine', 'ort-engine') for w in runtime)
                want = '3, 3' if ('growth' in column or 'process' in column) and not known else want
                got = ', '.join(str(status(tool, folder, name + '.onnx', words, runtime)) for words in commands_)
                if got != want:
                    bad.append(f'{name} {" ".join(runtime)}: {column} exit {got}, not {want}')
    lines = table({name: row[1] for name, row in ROWS.items()})
    text = open(document).read()
    bad += [f'not in {document}: {line}' for line in lines if line not in text]
    assert not bad, '\n'.join(bad)


def no_zero(figures, where):
    """Figures of a JSON object: null or above 0."""
    for key in ('peak_bytes', 'growth_bytes', 'process_bytes', 'traffic_bytes', 'time_seconds', 'largest_tensor_bytes', 'macs'):
        assert key not in figures or figures[key] is None or figures[key] > 0 or key in ('macs', 'largest_tensor_bytes'), (where, key, figures)


def ranges(tool, folder):
    """Limits hold over all of a range, whichever size is planned for; what is not proved over it passes none."""
    most, small = 2 * 2 * 8 * 64 * 64 * 4, ['--design', 'x=1,3,32,32']
    for name, words, over, want in (('free', small, most - 1, 3), ('free', small, most, 0), ('free', [], most, 0), ('unranked', [], 10**12, 3)):
        save(make(name), f'{folder}/{name}.onnx')
        words = ['gate', f'{folder}/{name}.onnx', '--range', 'x=1:2,3,32:64,32:64', *words, '--max-peak', str(over)]
        r = subprocess.run([tool, *words, '--json'], capture_output=True, text=True)
        assert r.returncode == want and json.loads(r.stdout)['range'] == 'x=1:2,3,32:64,32:64', (words, r.returncode, r.stdout, r.stderr)
    for limit in '--max-growth', '--max-process':
        for over, want in ('1K', 3), ('100G', 0):
            words = ['gate', f'{folder}/free.onnx', '--range', 'x=1:2,3,32:64,32:64', *small, limit, over]
            r = subprocess.run([tool, *words], capture_output=True, text=True)
            assert r.returncode == want, (words, r.returncode, r.stdout, r.stderr)


def figures(tool, folder):
    """Outputs of models with unknown sizes: a number, or not known."""
    for name in ROWS:
        for runtime in RUNTIMES[:2] + RUNTIMES[4:7:2] + RUNTIMES[8:]:
            where = (name, *runtime)
            reports = [w for k in ('html', 'xml', 'json', 'csv') for w in ('--report', f'{folder}/r.{k}')]
            plain = subprocess.run([tool, 'inspect', f'{folder}/{name}.onnx', *runtime, *reports], capture_output=True, text=True, check=True)
            told = subprocess.run([tool, 'inspect', f'{folder}/{name}.onnx', *runtime, '--json'], capture_output=True, text=True, check=True)
            explained = subprocess.run([tool, 'explain', f'{folder}/{name}.onnx', *runtime], capture_output=True, text=True, check=True)
            summary = subprocess.run([tool, 'compare', '--markdown', f'{folder}/r.xml', f'{folder}/r.xml'], capture_output=True, text=True,
                                     check=True)
            page = open(f'{folder}/r.html').read()
            for text in plain.stdout, explained.stdout, summary.stdout:
                assert not re.search(r'(?<![\d.])0 B\b', text), (where, text)
            headline = page.split('id="cards"')[1].split('</section>')[0]
            assert '>0 B<' not in headline, (where, headline)
            j = json.loads(told.stdout)
            unknown = name not in ('static', 'free')
            assert ('unknown_sizes' in j) == unknown, (where, j.get('unknown_sizes'))
            for side in ('untiled', 'tiled'):
                no_zero(j[side], where)
            cards = {c.get('id'): c for c in E.parse(f'{folder}/r.xml').getroot().iter('card')}
            peak = cards['peak-memory']
            assert unknown == (peak.get('at-least') == 'true' or peak.get('before') is None), (where, peak.attrib)
            assert peak.get('before') != '0' and peak.get('after') != '0', (where, peak.attrib)
            if unknown:
                assert 'not known' in plain.stdout and re.search('not known|at least', headline), where
                assert ('not known' in summary.stdout) == (peak.get('before') is None or cards.get('process-growth', peak).get('before') is None), where


def cures(tool, folder):
    """--shape is named where it can help alone: not for what is no tensor, for strings, nor where all inputs are static."""
    sequence = helper.make_tensor_sequence_value_info('s', 1, None), helper.make_node('ConcatFromSequence', ['s'], ['y'], axis=0), 1
    strings = helper.make_tensor_value_info('s', TensorProto.STRING, [4]), helper.make_node('Identity', ['s'], ['y']), TensorProto.STRING
    for name, (value, node, made) in ('sequence', sequence), ('strings', strings):
        whole = helper.make_graph([node], name, [value], [helper.make_tensor_value_info('y', made, [4] if made != 1 else None)])
        save(helper.make_model(whole, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), f'{folder}/{name}.onnx')
    for name, why in ('sequence', 'it is no tensor'), ('strings', 'its elements are strings'), ('unranked', 'bind it with --shape'), ('custom', 'made by'), \
            ('counted', 'made by NonZero'), ('inside', 'inside of Loop'):
        for command in 'inspect', 'explain', 'gate':
            told = subprocess.run([tool, command, f'{folder}/{name}.onnx', *(['--max-peak', '1G'] if command == 'gate' else [])], capture_output=True, text=True)
            text = told.stdout + told.stderr
            assert told.returncode == (3 if command == 'gate' else 0) and ('--shape' in text) == (name == 'unranked'), (name, command, text)
            assert why in text or command == 'explain', (name, command, text)
            assert not re.search(r'(?<![\d.])0 B\b|\b1 nodes|make not known', text), (name, command, text)


LEARNED = {'TreeEnsembleRegressor': dict(targets=2), 'TreeEnsembleClassifier': dict(labels=3), 'LinearRegressor': dict(targets=2), 'LinearClassifier': dict(labels=3),
           'two': dict(labels=2), 'texts': dict(labels=3, texts=True), 'FeatureVectorizer': {}}


def learned(name, batch, targets=1, labels=0, texts=False):
    """A model of trees or lines over three features."""
    op = 'TreeEnsembleClassifier' if name in ('two', 'texts') else name
    tree, ids = op.startswith('Tree'), list(range(targets if not labels else labels))
    more = dict(inputdimensions=[3]) if op == 'FeatureVectorizer' else dict(coefficients=[.5] * 3 * len(ids), intercepts=[.1] * len(ids)) if not tree else {}
    if tree:
        kind = 'class' if labels else 'target'
        nodes = dict(treeids=[0] * 3, nodeids=[0, 1, 2], featureids=[0] * 3, values=[.5, 0., 0.], modes=['BRANCH_LEQ', 'LEAF', 'LEAF'], truenodeids=[1, 0, 0], falsenodeids=[2, 0, 0])
        leaves = dict(treeids=[0] * len(ids), nodeids=[1 + k % 2 for k in ids], ids=ids, weights=[1. + k for k in ids])
        more = {**{'nodes_' + k: v for k, v in nodes.items()}, **{f'{kind}_{k}': v for k, v in leaves.items()}}
    if labels:
        more |= {'classlabels_strings': [f'l{k}' for k in ids]} if texts else {'classlabels_int64s' if tree else 'classlabels_ints': ids}
    elif op.endswith('Regressor'):
        more |= {'n_targets' if tree else 'targets': targets}
    outs = [('l', TensorProto.STRING if texts else TensorProto.INT64, [batch]), ('y', 1, [batch, labels])] if labels else [('y', 1, [batch, targets if ids != [0] else 3])]
    node = helper.make_node(op, ['x'], [o[0] for o in outs], 'learned', domain='ai.onnx.ml', **more)
    whole = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', 1, [batch, 3])], [helper.make_tensor_value_info(*o) for o in outs])
    return helper.make_model(whole, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('ai.onnx.ml', 3)], ir_version=8)


def trees(tool, folder):
    """What learned models make has as many rows as their input, and as many columns as ONNX Runtime makes; a free batch is no reason for a warning."""
    for name, words in LEARNED.items():
        for batch in 'n', 4:
            model = learned(name, batch, **words)
            save(model, f'{folder}/learned.onnx')
            made = ort.InferenceSession(f'{folder}/learned.onnx').run(None, {'x': np.ones((4, 3), np.float32)})
            told = subprocess.run([tool, 'inspect', f'{folder}/learned.onnx', '--shape', 'x=4,3', '-q', '-d', 'S'], capture_output=True, text=True, check=True).stderr
            for value, out in zip(model.graph.output, made):
                assert re.search(rf'%{value.name} : \w+\[{",".join(map(str, out.shape))}\]', told), (name, batch, out.shape, told)
            free = subprocess.run([tool, 'inspect', f'{folder}/learned.onnx'], capture_output=True, text=True, check=True)
            assert not free.stderr, free.stderr


def behind(tool, folder):
    """What a network's end makes of it, of an unknown size, changes no plan before it: normalisations are taken apart all the same."""
    plans = {}
    for counts in False, True:
        net = Net(seed=4)
        v = net.input('x', [1, 3, 512, 512])
        for k in range(4):
            v = net.op('InstanceNormalization', net.conv(v, 8 if k else 3, 8, pads=[1] * 4), net.uniform(8), net.uniform(8))
            v = net.op('Relu', v)
        v = net.conv(net.op('MaxPool', v, kernel_shape=[8, 8], strides=[8, 8]), 8, 500, pads=[1] * 4)
        v = net.reshape(net.op('Softmax', net.reshape(v, [1, -1]), axis=1), [1, 500, 64, 64])
        v = net.op('ReduceMax', net.op('CumSum', v, net.const(np.int64(1), 'i8')), axes=[1])
        if counts:
            v = net.op('GatherND', v, net.op('Transpose', net.op('NonZero', net.op('Greater', v, net.const(1e-6, 'f4'))), perm=[1, 0]))
        net.output(v, ['n'] if counts else [1, 1, 64, 64])
        save(net.model(), f'{folder}/behind.onnx')
        words = ['-o', f'{folder}/out.onnx', '--goal', 'memory', '--target', 'cpu-generic', '--threads', '1', '--json']
        p = subprocess.run([tool, f'{folder}/behind.onnx', *words], check=True, capture_output=True, text=True)
        told = json.loads(p.stdout)
        assert ('unknown_sizes' in told) == counts and told['tiled']['process_bytes'] > 0, told
        plans[counts] = [r['nodes'] for r in told['regions']]
    assert plans[False] and plans[False] == plans[True], [len(p) for p in plans.values()]


if __name__ == '__main__':
    commands(grid, figures, bodies, decided, ranges, cures, trees, behind)
