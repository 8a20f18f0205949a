"""The reports of one run, F.html F.xml F.json F.csv, against each other: one argument a stem, optionally `strict:` in front.

  F.xml   is the reference (its schema is xmllint's business)
  F.json  the same tree: names with '_' for '-', numbers and texts equal
  F.csv   one row a region, in order, cells equal the region's attributes
  F.html  is XML; `strict:` parses it as HTML5 without an error, too. Every <data value> is a number of the XML (or how many of
          something there are in it), and no other text shows a figure: digits stand in names, sentences and titles of the XML,
          in drawings, or in <data>.
Nothing that a model could have brought is an element, an attribute or a script. Prints what is wrong, one line each.
"""
import csv
import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter

XHTML = '{http://www.w3.org/1999/xhtml}'
SVG = '{http://www.w3.org/2000/svg}'
TAGS = set('''html head meta title style body a header p h1 h2 h3 h4 ul ol li span nav div form label kbd input output main section
    details summary table caption thead tbody tr th td dl dt dd data b small footer script button figure figcaption svg defs pattern
    rect path line circle polyline polygon use g text tspan title desc br noscript code em strong i'''.split())
NUMBER = re.compile(r'-?\d+(\.\d+)?(e[+-]?\d+)?$')
REGION = re.compile(r'\b[Rr](?:egion )?r?\d+\b')
bad = 0


def wrong(stem, text):
    global bad
    bad += 1
    print(f'{os.path.basename(stem)[:60]!r}: {text[:300]}')


def clean(text):
    """As XML 1.0 can hold it."""
    return re.sub('[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]', '\ufffd', text)


# ---- JSON ----

def same_value(word, value):
    if value is None: return word in ('0', 'none')  # a figure that there is none of
    if isinstance(value, bool): return word == ('true' if value else 'false')
    if isinstance(value, (int, float)): return float(word) == float(value)
    return isinstance(value, str) and word == clean(value)


def json_name(name):
    key = name.replace('-', '_')
    return {'bench_regions': 'regions', 'bench_outputs': 'outputs'}.get(key, key)


def compare_json(stem, element, value, path):
    """element: of the XML; value: what JSON has for it."""
    if isinstance(value, list):
        children = list(element)
        if len(children) != len(value): return wrong(stem, f'{path}: {len(children)} in XML, {len(value)} in JSON')
        for k, (child, item) in enumerate(zip(children, value)):
            if child.tag == 'member':
                if int(child.get('node')) != item: wrong(stem, f'{path}[{k}]: member {child.get("node")} is {item}')
            else:
                compare_json(stem, child, item, f'{path}[{k}]')
        return
    seen = set()
    for name, word in element.attrib.items():
        key = json_name(name)
        seen.add(key)
        if key not in value or not same_value(word, value[key]):
            wrong(stem, f'{path}.{key}: XML {word!r}, JSON {value.get(key)!r}')
    for child in element:
        key = json_name(child.tag)
        seen.add(key)
        if key not in value: wrong(stem, f'{path}.{key} is not in JSON')
        else: compare_json(stem, child, value[key], f'{path}.{key}')
    if seen != set(value): wrong(stem, f'{path}: only in JSON: {set(value) - seen}')


def no_constant(name): raise ValueError(f'{name} in JSON')


# ---- CSV ----

def check_csv(stem, root):
    with open(stem + '.csv', newline='', encoding='utf-8') as f: rows = list(csv.reader(f, strict=True))
    regions = root.findall('regions/region')
    nodes = root.findall('nodes/node')
    if len(rows) != len(regions) + 1: return wrong(stem, f'CSV: {len(rows)} lines for {len(regions)} regions')
    head = rows[0]
    for region, cells in zip(regions, rows[1:]):
        if len(cells) != len(head): wrong(stem, f'CSV: {len(cells)} cells under {len(head)} names')
        row = dict(zip(head, cells))
        members = [int(m.get('node')) for m in region.findall('members/member')]
        dims = region.findall('dims/dim')
        want = {name.replace('-', '_'): word for name, word in region.attrib.items()}
        want['nodes'] = str(len(members))
        want['operators'] = ' '.join(nodes[k].get('op') for k in members)
        want['first'], want['last'] = nodes[members[0]].get('name'), nodes[members[-1]].get('name')
        want['axes'] = ' '.join(d.get('axis') for d in dims)
        for name in ('tiles', 'tile', 'extent'): want[name] = ' '.join(d.get(name) for d in dims)
        for name, cell in row.items():
            word = want.get(name, '')
            if word[:1] in ('=', '+', '-', '@', '\t', '\r') and not NUMBER.match(word): word = "'" + word
            if word != cell: wrong(stem, f'CSV: {name} is {cell!r}, in XML {word!r}')
        if set(want) - set(row): wrong(stem, f'CSV lacks {set(want) - set(row)}')


# ---- HTML ----

def numbers_and_texts(root):
    """Words of numbers in the XML, how many there are of things, and all texts with digits."""
    numbers, texts, counts = set(), set(), Counter()
    for e in root.iter():
        for name, word in e.attrib.items():
            (numbers if NUMBER.match(word) else texts).add(word)
        counts[('children', e)] = len(e)
    nodes = root.findall('nodes/node')

    def operators(of, key):
        for op, n in Counter(nodes[k].get('op') for k in of).items(): counts[key, op] += n

    for e in root.findall('regions/region'):
        operators([int(m.get('node')) for m in e.iter('member')], ('region', e))
    for e in root.findall('refusals/refusal'):
        key = e.get('reason'), e.get('lift')
        members = [int(m.get('node')) for m in e.iter('member')]
        counts[('refusals', key)] += 1
        counts[('refused', key)] += len(members)
        operators(members, ('refusal', key))
    for e in root.findall('barriers/barrier'):
        key = e.get('reason'), e.get('lift')
        counts[('barriers', key)] += 1
        operators([int(e.get('node'))], ('barrier', key))
    counts['tiled'] = sum(n.get('region') is not None for n in nodes)
    counts['buffers'] = sum(int(s.get('buffers', 0)) for s in root.findall('scopes/scope'))
    counts['boxes'] = len(root.findall('maps/map/boxes/box'))
    # a map's table says the last step, the XML the first one after it
    numbers |= {str(int(float(b.get('upper-step'))) - 1) for b in root.iter('box')}
    numbers |= {str(n) for n in counts.values()}
    texts |= {t.rsplit('/', 1)[-1] for t in texts}
    return numbers, texts


def printable(text):
    """As the page shows it: what turns lines around or controls terminals is a U+FFFD."""
    return re.sub('[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]', '\ufffd', text)


def words(text): return re.sub(r'\s+', ' ', text).strip()


def digits_left(text, texts, prefixes):
    """What shows figures in a text after the texts of the XML are taken out."""
    text = words(text)
    if not re.search(r'\d', text) or text in texts: return ''
    text = REGION.sub('', text)
    for t in prefixes:
        if not re.search(r'\d', text): return ''
        if t in text: text = text.replace(t, '')
    # a name that was cut: the beginning of one that the XML has
    for part in re.split(r', |\u2026', text):
        part = part.strip()
        if re.search(r'\d', part) and not (len(part) >= 20 and any(t.startswith(part) for t in prefixes)): return part
    return ''


def check_html(stem, root):
    tree = ET.parse(stem + '.html').getroot()
    numbers, raw = numbers_and_texts(root)
    texts = {words(printable(t)) for t in raw}
    prefixes = sorted((t for t in texts if re.search(r'\d', t)), key=len, reverse=True)
    if tree.tag != XHTML + 'html': return wrong(stem, f'HTML: root {tree.tag}')
    seen = 0

    def walk(e, in_drawing, in_graph):
        nonlocal seen
        tag = e.tag.rsplit('}', 1)[-1]
        if tag not in TAGS: wrong(stem, f'HTML: <{tag}>')
        for name, value in e.attrib.items():
            if name.lower().startswith('on') or 'javascript:' in value.lower(): wrong(stem, f'HTML: {name}={value!r}')
            if name.rsplit('}', 1)[-1] == 'href' and not value.startswith('#'): wrong(stem, f'HTML: a link to {value!r}')
        if tag == 'data' and not in_drawing:
            seen += 1
            if e.get('value') not in numbers: wrong(stem, f'HTML: {e.get("value")} ({e.text}) is not in the XML')
            if len(e): wrong(stem, 'HTML: <data> with elements')
        cls = e.get('class')
        about_it = cls == 'note' and in_graph or cls in ('legend', 'g-legend') # words of a drawing about itself
        drawing = in_drawing or about_it or e.tag == SVG + 'svg' or tag in ('style', 'script', 'title')
        name = cls in ('n', 'name', 'name mono', 'shape') # nodes are called 42, too, and shapes are 4
        if not drawing and tag != 'data' and e.text and not name:
            left = digits_left(e.text, texts, prefixes)
            if left: wrong(stem, f'HTML: a figure outside of <data>: <{tag} class={cls!r}> {left!r}')
        for child in e:
            walk(child, drawing, in_graph or e.get('id') == 'graph')
            if not drawing and child.tail:
                left = digits_left(child.tail, texts, prefixes)
                if left: wrong(stem, f'HTML: a figure outside of <data>: in <{tag} class={e.get("class")!r}> {left!r}')

    walk(tree, False, False)
    if sum(1 for _ in tree.iter(XHTML + 'script')) != 1: wrong(stem, 'HTML: not one script')
    for chip in tree.iterfind(f".//{XHTML}ul[@class='chips']/{XHTML}li"):
        text = ''.join(chip.itertext())
        if re.match(r'(model|written to) .*/', text): wrong(stem, f'HTML: names a folder of this machine: {text}')
    for card in root.findall('cards/card'):
        for name in ('before', 'after', 'bound'):
            if card.get(name) is not None and tree.find(f".//*[@data-card='{card.get('id')}']//{XHTML}data[@value='{card.get(name)}']") is None:
                wrong(stem, f'HTML: the card {card.get("id")} does not say {name} {card.get(name)}')
    if root.find('cards/card') is not None and seen == 0: wrong(stem, 'HTML: no figures')


def check_html5(stem):
    import html5lib
    with open(stem + '.html', 'rb') as f:
        try: html5lib.HTMLParser(strict=True).parse(f, transport_encoding='utf-8')
        except html5lib.html5parser.ParseError as e: wrong(stem, f'HTML5: {e}')


for argument in sys.argv[1:]:
    stem = argument.removeprefix('strict:')
    try:
        root = ET.parse(stem + '.xml').getroot()
        with open(stem + '.json', encoding='utf-8') as f: value = json.load(f, parse_constant=no_constant)
        compare_json(stem, root, value, 'report')
        check_csv(stem, root)
        check_html(stem, root)
        if stem != argument: check_html5(stem)
    except (ET.ParseError, ValueError, OSError, csv.Error) as e:
        wrong(stem, f'{type(e).__name__}: {e}')
sys.exit(bad != 0)
