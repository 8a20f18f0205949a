"""What devices.sh has in Python."""
import json

from command_line import commands


def table(folder):
    """The table and the JSON name the same devices, and each API has one or a reason."""
    j = json.load(open(folder + '/out'))
    table = [l.split()[0] for l in open(folder + '/table') if l.split()[0] != 'device']
    names = [d['device'] for d in j['devices']]
    assert table == names + [m['api'] for m in j['missing']], (table, j)
    for api in ('opencl', 'vulkan', 'cuda'):
        assert any(n.startswith(api + ':') for n in names) != any(m['api'] == api and m['reason'] for m in j['missing']), (api, j)
    assert all(d['memory_bytes'] > 0 and 0 < d['block_bytes'] and d['alignment_bytes'] > 0 and d['work_items'] > 0 for d in j['devices']), j


if __name__ == '__main__':
    commands(table)
