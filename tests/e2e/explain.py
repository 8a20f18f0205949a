"""What explain.sh has in Python."""
import json
import subprocess
import xml.etree.ElementTree as E

from onnx import helper

from builder import Net, save
from command_line import commands


def agree(folder):
    """JSON, table, XML and page tell the same of the peak."""
    j, text, page = json.load(open(folder + '/r.json')), open(folder + '/out').read(), open(folder + '/r.html').read()
    x = E.parse(folder + '/r.xml').getroot()
    peak = {e['id']: e.get('number', e.get('text')) for e in j['peak']}
    twin = {e.get('id'): float(e.get('number')) if e.get('number') else e.get('text', '') for e in x.find('peak')}
    near = lambda a, b: a == b if isinstance(a, str) else abs(a - b) <= 1e-6 * abs(a)
    assert list(peak) == list(twin) and all(near(peak[k], twin[k]) for k in peak), (peak, twin)
    assert [a['value'] for a in j['alive']] == [a.get('value') for a in x.find('alive')]
    assert [c['options'] for c in j['cures']] == [c.get('options') for c in x.find('cures')]
    assert all(c['options'] in text and c['options'] in page for c in j['cures']), text
    assert [o['reason'] for o in j['obstacles']] == [o.get('reason') for o in x.find('obstacles')]
    assert abs(sum(a['bytes'] for a in j['alive']) - peak['peak-bytes']) <= 1 + 1e-6 * peak['peak-bytes'], 'the parts are not the whole'
    assert abs(sum(a['share'] for a in j['alive']) - 1) < 1e-6
    assert j['command'] == x.get('command')
    assert (j['command'] or 'would not help') in text, text
    whole = next(c for c in x.find('cards') if c.get('id') == 'process') if x.find('cards') is not None else None
    told = [l for l in text.splitlines() if l.startswith('  Whole process, ')]
    assert len(told) == 1 and ('tiled' in told[0]) == bool(j['command']) and told[0] in text[:text.index('Untiled, ')], text
    if j['command']:
        assert f"x{float(whole.get('after')) / float(whole.get('before')):.2f} " in told[0], (told, whole.attrib)
    assert 'id="explain"' in page and all(o['reason'].split()[0] in page for o in j['obstacles'])
    assert max(len(l) for l in text.splitlines() if 'onnx-tile ' not in l) <= 118 and len(text.splitlines()) <= 40, text


# ---- reasons are true of the axis that is cut ----

def around(make):
    """A network of rows that are cut, and `make` between two stretches of it."""
    net = Net(1)
    v = net.input('x', [1, 8, 256, 256])
    for part in range(2):
        for _ in range(3):
            v = net.op('Relu', net.conv(v, 8, 8, pads=[1] * 4))
        if part == 0:
            v = make(net, v)
    net.output(v)
    return net


def behind(make):
    """Rows that are cut, then what reads them whole, and later `make` of the same, which stays untiled."""
    net = Net(1)
    v = net.input('x', [1, 8, 512, 512])
    for _ in range(3):
        v = net.op('Relu', net.conv(v, 8, 8, pads=[1] * 4))
    v = t = net.op('MaxPool', v, kernel_shape=[8, 8], strides=[8, 8])
    for axis in 2, 3, 1:
        t = net.op('CumSum', t, net.const(axis, 'i8'))
    t = net.op('Add', v, net.op('Softmax', t, axis=2))
    net.output(net.op('Einsum', t, make(net, v), equation='abcd,abce->ade'))
    return net


def normalised(net, v):
    return net.op('BatchNormalization', v, *(net.uniform([8]) for _ in range(4)), name='it')


def last_axis(net, v):
    return net.op('LayerNormalization', v, net.uniform([64]), name='it', axis=-1)


def wrapped(net, v):
    return net.op('Pad', net.op('Slice', v, *(net.const([k], 'i8') for k in (1, 255, 2))), net.const([0, 0, 1, 0, 0, 0, 1, 0], 'i8'),
                  name='it', mode='wrap')


def unpooled(net, v):
    outs = net.fresh(), net.fresh()
    net.nodes.append(helper.make_node('MaxPool', [v], list(outs), kernel_shape=[2, 2], strides=[2, 2]))
    return net.op('MaxUnpool', *outs, name='it', kernel_shape=[2, 2], strides=[2, 2])


def function(net, v):
    out = net.fresh()
    net.nodes.append(helper.make_node('Twice', [v], [out], name='it', domain='own'))
    return out


def whole(net, v):
    return net.op('Softmax', v, name='it', axis=2)


GENERAL = ('peak-within-slowdown',)
REASONS = ((normalised, GENERAL), (last_axis, GENERAL), (wrapped, ('pad-wrap',)), (unpooled, ('not-cut',)), (function, ('local-function',)),
           (whole, ('whole-ends', 'softmax', 'peak-within-slowdown')))
CURED = ('unet', 'dncnn', 'vgg16_features', 'free')
CURED_WITH = (['--max-slowdown', '0'], ['--max-slowdown', '300'], ['--goal', 'time'])


def reason_of(tool, path, options):
    """Of node 'it': of a barrier or a refusal; None: it is in a region."""
    done = subprocess.run([tool, 'inspect', path, '--goal', 'memory', '--json', *options], capture_output=True, text=True, check=True)
    j = json.loads(done.stdout)
    found = [b['reason_id'] for b in j['barriers'] if b['node'] == 'it'] + [r['reason_id'] for r in j['refusals'] if 'it' in r['nodes']]
    assert len(found) <= 1, found
    return found[0] if found else None


def reasons(tool, folder):
    """Each operator is told what is true of it where rows are cut."""
    for make, want in REASONS:
        net, path = (behind if want == GENERAL else around)(make), f'{folder}/{make.__name__}.onnx'
        body = helper.make_function('own', 'Twice', ['a'], ['b'], [helper.make_node('Add', ['a', 'a'], ['b'])],
                                    [helper.make_opsetid('', 16)])  # of another opset than the model: it is not read in its place
        more = {'functions': [body], 'domains': [('own', 1)]} if make is function else {}
        save(net.model(**more), path)
        got = reason_of(tool, path, ['--target', 'cpu-generic', '--threads', '1'])
        assert got in want, (make.__name__, got, want)


def again(tool, folder):
    """What an earlier run has written is told to be that, in every form."""
    for name, options in ('vgg16_features', ['--goal', 'memory']), ('free', ['--goal', 'memory', '--force']), ('dncnn', ['--emit', 'engine', '--force']):
        tiled = f'{folder}/{name}-again.onnx'
        subprocess.run([tool, f'{folder}/{name}.onnx', '-o', tiled, '-q', *options], check=True)
        j = json.loads(subprocess.run([tool, 'inspect', tiled, '--json'], capture_output=True, text=True, check=True).stdout)
        of_tiles = [b for b in j['barriers'] if b['node'].startswith('tile/')]
        assert of_tiles and all(b['reason_id'] == 'tiled-already' for b in of_tiles), (name, of_tiles)


def cured(tool, folder):
    """What is named as a help makes less in a run of its own, as it says; what makes nothing less is not named."""
    named = 0
    for name in CURED:
        path = f'{folder}/{name}.onnx'
        for options in CURED_WITH:
            options = options + ['--target', 'cpu-generic', '--threads', '1']
            run = lambda *words: json.loads(subprocess.run([tool, *words, '--json'], capture_output=True, text=True, check=True).stdout)
            j = run('explain', path, *options)
            peak = {e['id']: e.get('number') for e in j['peak']}
            now = peak.get('tiled-growth-bytes') or peak['tiled-peak-bytes']
            for c in j['cures']:
                named += 1
                goal = [] if '--goal' in options or '--goal' in c['options'] else ['--goal', 'memory']
                t = run('inspect', path, *goal, *options, *c['options'].split())['tiled']
                assert t['peak_bytes'] == c['peak_bytes'] and t.get('growth_bytes') == c.get('growth_bytes'), (name, options, c, t)
                assert c.get('growth_bytes', c['peak_bytes']) < now * 7 / 8, (name, options, c, now)
            text = subprocess.run([tool, 'explain', path, *options], capture_output=True, text=True, check=True).stdout
            assert '--force' not in text and text.count('--max-slowdown') == \
                sum('--max-slowdown' in c['options'] for c in j['cures']) + ('--max-slowdown' in (j['command'] or '')), text
    assert named > 2, 'no cure was found for any'


if __name__ == '__main__':
    commands(agree, reasons, again, cured)
