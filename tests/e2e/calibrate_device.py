"""What calibrate_device.sh has in Python."""
import json
import xml.etree.ElementTree as E

from command_line import commands


def figures(path, devices):
    """The target file has the usual form, and its figures are those of the first device."""
    t = E.parse(path).getroot()
    device = json.load(open(devices))['devices'][0]
    assert t.get('name') == 'opencl-calibrated' and t.get('cpu') is None and int(t.get('cores')) == device['units']
    assert t.get('description') == 'opencl on ' + device['name'][:80], t.get('description')
    want = {'fast': 'bytes bandwidth granule cache double-buffer', 'slow': 'bytes bandwidth',
            'rates': 'conv conv-depthwise conv-pointwise gemm elementwise transcendental reduction pooling', 'overheads': 'node loop region',
            'transfers': 'upload upload-seconds download download-seconds'}
    assert [e.tag for e in t if e.tag != 'memory'] == list(want)
    number = lambda e, a: float(t.find(e).get(a))
    for e, names in want.items():
        assert list(t.find(e).attrib) == names.split(), e
    assert number('slow', 'bytes') == device['memory_bytes']
    assert 256 * 1024 <= number('fast', 'bytes') <= 128 << 20
    assert 1e7 < number('slow', 'bandwidth') <= number('fast', 'bandwidth') < 1e15
    assert all(1e5 < number('rates', k) < 1e16 for k in t.find('rates').attrib)
    assert all(1e7 < number('transfers', k) < 1e15 and 0 < number('transfers', k + '-seconds') < 0.1 for k in ('upload', 'download'))
    assert all(0 < number('overheads', k) <= 5e-3 for k in ('node', 'loop', 'region'))
    scopes = {m.get('scope'): m for m in t.findall('memory')}
    assert int(scopes['shared'].get('bytes')) == device['shared_bytes']


def transfers(silent_plan, plan, target):
    """A plan takes what the target file says of transfers longer than one of a file that is silent."""
    silent, said = (json.load(open(f))['untiled']['time_seconds'] for f in (silent_plan, plan))
    x = E.parse(target).find('transfers')
    up, down = (float(x.get(k + '-seconds')) + n * 4 / float(x.get(k)) for k, n in (('upload', 3 << 16), ('download', 16 << 14)))
    assert abs(said - silent - up - down) < 1e-6 * said, (said, silent, up, down)


if __name__ == '__main__':
    commands(figures, transfers)
