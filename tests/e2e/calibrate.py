"""What calibrate.sh has in Python."""
import xml.etree.ElementTree as E

from command_line import commands


def figures(path):
    """Figures of a target file that a machine can have."""
    t = E.parse(path).getroot()
    number = lambda e, a: float(t.find(e).get(a))
    assert number('fast', 'bandwidth') > 1e9 and number('slow', 'bandwidth') > 1e8
    assert all(1e6 < number('rates', k) < 1e14 for k in t.find('rates').attrib)
    assert all(0 < number('overheads', k) < 1e-3 for k in ('node', 'loop', 'region'))


if __name__ == '__main__':
    commands(figures)
