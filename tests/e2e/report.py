"""What report.sh has in Python: models, and what reports must say."""
import json
import xml.etree.ElementTree

import html5lib
import numpy as np
from onnx import TensorProto, helper

from builder import Net, save, value
from command_line import commands


def timed(path):
    """bench: regions and nodes have times."""
    f = json.load(open(path))
    assert f['kind'] == 'bench' and f['measured'] is True and f['bench']['same'] is True, 'not measured'
    timed = [r for r in f['regions'] if 'measured_seconds' in r]
    assert timed and all(r['measured_seconds'] > 0 and r['error'] >= 0 for r in timed), 'regions without times'
    nodes = [n for n in f['nodes'] if 'measured_seconds' in n]
    assert len(nodes) * 3 >= len([n for n in f['nodes'] if not n['fused']]), f'{len(nodes)} nodes with times'


def little(d):
    """flow: an If; dynamic: dynamic extents, of which one must be 37."""
    def body(op):
        return helper.make_graph([helper.make_node(op, ['x'], ['r'])], op, [], [value('r', None)])
    for name, extents in ('flow', [8, 8]), ('dynamic', ['n', 'm']):
        net = Net()
        net.input('x', extents)
        net.input('c', [], TensorProto.BOOL)
        if name == 'flow':
            net.op('If', 'c', out='y', then_branch=body('Relu'), else_branch=body('Neg'))
        else:
            net.op('Neg', net.op('Softmax', net.op('Add', net.op('Relu', 'x'), net.const([1.] * 37)), axis=-1), out='y')
        net.output('y', None if name == 'flow' else extents)
        save(net.model(), f'{d}/{name}.onnx')


def process(report_file, told_file):
    """The first card is the whole process that the terminal tells."""
    report, told = json.load(open(report_file)), json.load(open(told_file))
    card, figures = report['cards'][0], [told[k]['process_bytes'] for k in ('untiled', 'tiled')]
    assert card['id'] == 'process', card['id']
    assert [card['before'], card['after']] == figures, (card, figures)


def hostile(path):
    """A model whose names try to become markup, or are no text."""
    names = [b'</script><script>alert(1)</script>', b'"><img src=x onerror=alert(1)>', b"'--><svg/onload=alert(2)>", b'a\nb\r\nc\td',
             b'\x01\x1f\x7f\x1b[31m', b'\xff\xfe\xc0\xaf', b'\xed\xa0\x80x', b'L' * 10000, b'\xe2\x80\xae\xe2\x81\xa6txt.exe\xef\xbb\xbf',
             b']]>&lt;&#0;&amp;', b'=HYPERLINK("http://x")', b'@SUM(1)', b'<!-- ${1} %s %n', b'{{7*7}}', b'\xf0\x9f\x90\x99 \xe4\xb8\x96']
    stand = [f'{k:02d}'.ljust(len(n), '~') for k, n in enumerate(names)] # of the same length: protobuf for Python takes no broken UTF-8
    x, y, last = stand[0] + '!', stand[1] + '!', stand[1] + '?'
    net = Net()
    v, w = net.input(x, [1, 8, 64, 64]), net.const(np.ones((8, 8, 3, 3)) / 72, name='w')
    for k, s in enumerate(stand):
        v = net.op('Conv', v, w, out=s + '#', name=s, pads=[1] * 4) if k % 2 else net.op('Relu', v, out=s + '#', name=s)
    net.op('Softmax', v, out=y, name=last, axis=1)
    net.output(y, [1, 8, 64, 64])
    b = net.model().SerializeToString()
    for s, n in zip(stand, names): b = b.replace(s.encode(), n)
    open(path, 'wb').write(b)


def passes(stem, planned):
    """A kernel's text after each pass: the last one is what is written, what a pass changed is marked."""
    f = json.load(open(stem + '.json'))
    texts = {p['id']: [line['text'] for line in p['lines']] for p in f['passes']}
    marked = {p['id']: [line['text'].strip() for line in p['lines'] if line['changed']] for p in f['passes']}
    assert list(texts) == ['written', 'chosen', 'merged', 'placed'], list(texts)
    assert texts['placed'] == open(planned).read().splitlines(), 'the last text is not what is written'
    assert not marked['written'] and 'alloc a: 1024x96 f32 @gm multi=2' in marked['chosen'], marked
    assert 'alloc b: 1024x96 f32 @gm multi=2  # statements 4 to 8; one place for a, b' in marked['merged'], marked['merged']
    assert all('offset=' in line for line in marked['placed']) and len(marked['placed']) == 3, marked['placed']
    heights = [{m['id']: m['height_bytes'] for m in p['maps']} for p in f['passes']]
    assert heights == [{}, {'ub': 384, 'gm': 4 * 393216}, {'ub': 384, 'gm': 2 * 393216}, {}], heights


def parse(path):
    """The page is well-formed as XML and strictly as HTML5."""
    xml.etree.ElementTree.parse(path)
    html5lib.HTMLParser(strict=True).parse(open(path, 'rb'), transport_encoding='utf-8')


if __name__ == '__main__':
    commands(timed, little, process, hostile, passes, parse)
