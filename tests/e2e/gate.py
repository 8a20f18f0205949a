"""What gate.sh has in Python."""
import json
import re
import xml.etree.ElementTree as E

from command_line import commands


def figure(report, card):
    """Print what the report says of the tiled model."""
    c = [c for c in E.parse(report).getroot().iter("card") if c.get("id") == card][0]
    print(c.get("after") or c.get("before"))


def judged(folder, now_text, base_text):
    """The JSON has the figures of the reports, and which check did not pass."""
    j, now, base = json.load(open(folder + '/out')), float(now_text), float(base_text)
    assert not j['passed'] and not j['measured'] and j['baseline'] == 'time.xml', j
    peak, time = j['checks']
    assert peak['passed'] and peak['limit'] == 2**30 and 'baseline' not in peak, peak
    assert not time['passed'] and abs(time['value'] / now - 1) < 1e-6 and abs(time['baseline'] / base - 1) < 1e-6, time


def even(*paths):
    """Lines of a Markdown table have the same number of cells."""
    for path in paths:
        for table in re.findall(r'(?:^\|.*\n)+', open(path).read(), re.M):
            assert len({len(re.findall(r'(?<!\\)\|', line)) for line in table.splitlines()}) == 1, table


def steps(path):
    """Print the steps of the example workflow as shell."""
    text = open(path).read()
    for name, value in re.findall(r'^  ([A-Z]+): (.*)$', text, re.M):
        print(f'{name}="{value}"')
    for line in re.findall(r'^ +(?:run: )?(onnx-tile .*)$', text, re.M):
        print(line)


if __name__ == '__main__':
    commands(figure, judged, even, steps)
