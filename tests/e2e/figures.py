"""What figures.sh has in Python: every output of one run, read and compared."""
import csv
import json
import os
import re
import subprocess
import xml.etree.ElementTree as E

import numpy as np
import onnx

from command_line import commands

UNITS = {'B': 1, 'µs': 1e-6, 'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30, 'us': 1e-6, 'ms': 1e-3, 's': 1}
ROWS = {'whole process': ('process_bytes', 'process'), 'resident growth': ('growth_bytes', 'process-growth'), 'peak memory': ('peak_bytes', 'peak-memory'),
        'model loaded': ('loaded_bytes', 'model-loaded'), 'bytes moved': ('traffic_bytes', 'bytes-moved'), 'time': ('time_seconds', 'time')}
SHOWN = r'([0-9.]+) (B|KiB|MiB|GiB|us|µs|ms|s)'


OPTIONS = [], ['--goal', 'memory'], ['--goal', 'memory', '--target', 'mcu-512k'], ['--emit', 'engine', '--goal', 'memory']
REPORTS = ('xml', 'html', 'json', 'csv')  # beside the table, --json and `compare --markdown`


def number(text, unit):
    """A figure as it is shown, and by how much it may be rounded."""
    return float(text) * UNITS[unit], .51 * 10 ** -len(text.partition('.')[2]) * UNITS[unit]


def near(shown, exact):
    return abs(shown[0] - exact) <= shown[1]


def table_rows(text):
    """{title: (before, after)} of the headline."""
    found = {}
    for title in ROWS:
        m = re.search(rf'^  {title} +{SHOWN} +{SHOWN}', text, re.M)
        if m:
            found[title] = number(*m.group(1, 2)), number(*m.group(3, 4))
    return found


def check(tool, path, options):
    def run(*words):
        return subprocess.run([tool, *words], capture_output=True, text=True, check=True).stdout
    reports = [w for f in REPORTS for w in ('--report', 'r.' + f)]
    table = run('inspect', path, *options, *reports)
    j = json.loads(run('inspect', path, *options, '--json'))
    xml, page, twin = E.parse('r.xml').getroot(), open('r.html').read(), json.load(open('r.json'))
    lines = list(csv.DictReader(open('r.csv')))
    markdown = run('compare', 'r.xml', 'r.xml', '--markdown')
    cards = {c.get('id'): c for c in xml.iter('card')}
    assert {c['id']: (c['before'], c['after']) for c in twin['cards']} == \
        {k: (float(c.get('before')), float(c.get('after'))) for k, c in cards.items()}, 'cards of XML and JSON'
    shown = table_rows(table)
    assert {'peak memory', 'bytes moved', 'time'} <= set(shown), table
    for title, (before, after) in shown.items():
        key, card = ROWS[title]
        for side, value, attribute in ('untiled', before, 'before'), ('tiled', after, 'after'):
            exact = j[side][key]
            assert near(value, exact), (title, side, value, exact)
            assert abs(float(cards[card].get(attribute)) - exact) <= 1e-6 * exact, (title, side)
            assert f'value="{cards[card].get(attribute)}"' in page, (title, side, 'is not on the page')
    # parts add up
    kept = re.search(rf'of the growth, {SHOWN} before and {SHOWN} after', table)
    if kept:
        for side, at in ('untiled', (1, 2)), ('tiled', (3, 4)):
            assert near(number(*kept.group(*at)), j[side]['growth_bytes'] - j[side]['peak_bytes']), (side, table)
    # a limit is one
    least = j.get('compulsory_bytes')
    assert least is None or least <= min(j[s]['traffic_bytes'] for s in ('untiled', 'tiled')), j
    assert ('no plan can move less' in table) == (least is not None), table
    for c in cards.values():
        assert c.get('bound') is None or float(c.get('bound')) <= min(float(c.get('before')), float(c.get('after'))), c.attrib
    # regions
    assert len(lines) == len(j['regions']) == len(xml.find('regions')) == len(re.findall(r'^  r\d+ +\d+  ', table, re.M))
    for line, r in zip(lines, j['regions']):
        assert int(line['working_set_bytes']) == r['working_set_bytes'] and abs(float(line['tiled_seconds']) - r['tiled_seconds']) < 1e-9
    # the same report beside itself: nothing changed, by the same figures
    for title in set(shown) & {'peak memory', 'time'}:
        row = re.search(rf'^\| {title}[^|]*\|(.*)$', markdown, re.M | re.I)
        assert row, markdown
        numbers = [number(*n) for n in re.findall(SHOWN, row.group(1))]
        assert numbers and all(near(n, j['tiled'][ROWS[title][0]]) for n in numbers), (row.group(0), j['tiled'])


def short(x):
    """A count as the table shows it."""
    for unit in '', ' K', ' M', ' G':
        if x < 999.5:
            return f'{x:.{0 if not unit or x >= 99.95 else 1 if x >= 9.995 else 2}f}{unit}'
        x /= 1000
    raise AssertionError(x)


def check_operators(tool, path):
    """inspect --table: a line a node of the report, and what ONNX itself says of its weights."""
    table = subprocess.run([tool, 'inspect', path, '--table', '--report', 'r.json'], capture_output=True, text=True, check=True).stdout
    titles, *rows, total = table.rstrip('\n').split('\n')[3:]
    nodes = json.load(open('r.json'))['nodes']
    assert titles.split() == ['operator', 'name', 'makes', 'MACs', 'parameters', 'memory', 'time', 'tiled'] and len(rows) == len(nodes), table
    graph = onnx.load(path).graph
    weights = {i.name: int(np.prod(i.dims)) for i in graph.initializer if i.data_type == onnx.TensorProto.FLOAT}
    read = {n.name or n.output[0]: sum(weights.get(i, 0) for i in n.input) for n in graph.node}
    end = titles.index('parameters') + len('parameters')
    for row, node in zip(rows, nodes):
        assert row.startswith(node['op']) and node['name'][-12:] in row and row[:end].endswith(f"  {short(node['parameters'])}"), (row, node)
        assert node['parameters'] == read[node['name']], node
    assert total.startswith(f'{len(nodes)} operator') and total[:end].endswith(f'  {short(sum(weights.values()))}'), total


def agree(tool, folder):
    os.chdir(folder)
    models = [f for f in sorted(os.listdir('.')) if f.endswith('.onnx')]
    assert len(models) == 4, models
    for path in models:
        check_operators(tool, path)
        for options in OPTIONS:
            try:
                check(tool, path, options)
            except AssertionError as e:
                raise AssertionError(path, options) from e


if __name__ == '__main__':
    commands(agree)
