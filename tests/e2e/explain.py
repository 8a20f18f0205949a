"""What explain.sh has in Python."""
import json
import xml.etree.ElementTree as E

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
    assert [o['reason'] for o in j['obstacles']] == [o.get('reason') for o in x.find('obstacles')]
    assert abs(sum(a['bytes'] for a in j['alive']) - peak['peak-bytes']) <= 1 + 1e-6 * peak['peak-bytes'], 'the parts are not the whole'
    assert abs(sum(a['share'] for a in j['alive']) - 1) < 1e-6
    assert j['command'] == x.get('command')
    assert (j['command'] or 'would not help') in text, text
    assert 'id="explain"' in page and all(o['reason'].split()[0] in page for o in j['obstacles'])
    assert max(len(l) for l in text.splitlines() if 'onnx-tile ' not in l) <= 118 and len(text.splitlines()) <= 40, text


if __name__ == '__main__':
    commands(agree)
