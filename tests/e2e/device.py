"""What device.sh has in Python: arrays and figures of devices."""
import json
import math
import xml.etree.ElementTree as ET

import numpy as np

from command_line import commands


def same(folder):
    """One output of the device is that of the host."""
    a, b = (np.load(f'{folder}/{d}/0.npy') for d in ('same', 'same_host'))
    assert a.shape == b.shape and np.abs(a - b).max() <= 1e-4 * np.abs(b).max(), (a, b)


def figures(tmp, tiled_file, api):
    """Outputs and figures of the network, untiled and tiled."""
    tiled = json.load(open(tiled_file))['device']
    untiled = json.load(open(f'{tmp}/untiled.json'))['device']
    for k in range(2):
        want = np.load(f'{tmp}/host/{k}.npy')
        for form in 'device', 'tiled':
            got = np.load(f'{tmp}/{form}/{k}.npy')
            assert got.shape == want.shape and np.max(np.abs(got - want)) <= 1e-4 * np.max(np.abs(want)), (form, k)
    for d in untiled, tiled:
        assert d['planned_bytes'] == d['held_bytes'] == d['peak_bytes'], d
        assert d['nodes_on_host'] == 0 and not d['fallbacks'], d
        assert d['downloaded_bytes'] == (16 * 32 * 32 + 5) * 4, d
        m = d['moves']
        assert m['merged'] == m['requests'] - m['transfers'] and m['waits_for_staging'] == 0, m
        assert m['requested_bytes'] <= m['moved_bytes'] <= m['requested_bytes'] + 256 * m['merged'], m
    by_maps = untiled['moves']  # a CPU needs no commands, but for a result whose place another value gets; others merge weights
    if api == 'cuda':
        assert by_maps['merged'] > 0 == by_maps['mapped_up_bytes'] == by_maps['mapped_down_bytes'], by_maps
    else:
        assert by_maps['mapped_up_bytes'] == untiled['uploaded_bytes'] and by_maps['mapped_down_bytes'] >= 20, untiled
        assert by_maps['mapped_down_bytes'] + by_maps['requested_bytes'] == untiled['downloaded_bytes'], untiled
    assert untiled['uploaded_bytes'] == 3 * 64 * 64 * 4 <= tiled['uploaded_bytes'], (tiled, untiled) # halos are moved twice
    assert tiled['arena_bytes'] < untiled['arena_bytes'], (tiled, untiled)
    # bytes that weights take when they are packed; a GPU has one column of a product for each work-item, and fills up none, or
    # blocks of shared memory, which are filled up to 32 channels and take products as they are
    on_gpu = tiled['layouts']['busy_work_items'] > 0
    on_gpu_blocks = (0, 32 * 16 * 9 * 4, 64 * 16 * 9 * 4)
    conv, gemm = (0 if on_gpu else (16 * 3 * 9 + 16 * 16 * 9) * 4), (5 if on_gpu else 8) * 16 * 4
    in_blocks = api == 'opencl' and not on_gpu  # a work-item of pocl has vectors, of llvmpipe it is an element of one
    for d in untiled, tiled:
        l = d['layouts']
        assert l['together'] == (32 if on_gpu else 1) and (api != 'cuda' or on_gpu), l  # work-items that read together: one on devices of a CPU
        assert l['packed_bytes'] in ([a + b for a in on_gpu_blocks for b in (0, gemm)] if on_gpu else (conv, conv + gemm)), l
        assert l['block'] == (8 if in_blocks else 0), l
        assert (l['blocked_activations'] > 0) == (l['blocked_bytes'] > 0) == in_blocks, l
        assert l['spread_kernels'] == 0 or not in_blocks, l
        # a GPU's work-items make single elements of what is small: neighbours, as the array has them
        assert l['transactions_ideal'] <= l['transactions'] <= (1.01 if on_gpu else 0.5 if in_blocks else 0.7) * l['transactions_plain'], l
    l = untiled['layouts']  # transB is packed, and 5 rows become 8
    if not on_gpu:
        assert l['packed_constants'] == 3 and l['packed_bytes'] == conv + gemm and l['packed_filled_bytes'] == 3 * 16 * 4, l


def checked(tmp, tiled_file):
    """All of the arena was filled, and results are those of the host all the same."""
    d = json.load(open(tiled_file))['device']
    assert d['poisoned_bytes'] == d['arena_bytes'] > 0, d
    assert 'poisoned_bytes' not in json.load(open(f'{tmp}/untiled.json'))['device']
    for k in range(2):
        want, got = (np.load(f'{tmp}/{folder}/{k}.npy') for folder in ('host', 'checked'))
        assert np.max(np.abs(got - want)) <= 1e-4 * np.max(np.abs(want)), k


def blocks(ran, devices):
    """The arena is in as many blocks as it takes, and the heap holds what is planned."""
    d = json.load(open(ran))['device']
    most = next(x['block_bytes'] for x in json.load(open(devices))['devices'] if x['device'] == f'{d["api"]}:{d["number"]}')
    assert d['arena_blocks'] == math.ceil(d['arena_bytes'] / most), (d, most)
    assert d['planned_bytes'] == d['held_bytes'] == d['peak_bytes'], d
    heap = d['profile']['heaps'][0]
    assert heap['name'] == 'session' and heap['held_bytes'] == heap['peak_bytes'] == d['planned_bytes'], heap
    assert heap['taken'] == d['arena_blocks'] + 1 and heap['given'] == 0, heap


def attention(path):
    """bench: tiled, scores of an attention take less than half of the arena."""
    b = json.load(open(path))
    assert b['same'] and b['tiled']['device']['arena_bytes'] < 0.5 * b['original']['device']['arena_bytes'], b


def bench(path, api):
    """bench of two files: the same, and the tiled one has the smaller arena."""
    b = json.load(open(path))
    original, tiled = b['original']['device'], b['tiled']['device']
    assert b['same'] and original['api'] == api and 0 < tiled['arena_bytes'] < original['arena_bytes'], b


def trace(folder):
    """Commands of a trace are those that the figures count."""
    def commands(name):
        return [e for e in json.load(open(f'{folder}/{name}.json'))['traceEvents'] if e['ph'] == 'X']
    d = json.load(open(folder + '/figures.json'))['device']
    x = commands('run')
    moved = {c: sum(e['args']['bytes'] for e in x if e['cat'] == c) for c in ('upload', 'download')}
    assert moved == {'upload': d['uploaded_bytes'], 'download': d['downloaded_bytes']}, (moved, d)
    assert sum(e['cat'] == 'kernel' for e in x) == d['launches'] == sum(k['count'] for k in d['profile']['kernels']), d
    names = {e['name'] for e in x if e['cat'] == 'kernel'}
    assert names == {k['name'] for k in d['profile']['kernels']} and any(n.startswith('Conv, ') for n in names), names # operators, not k0
    rows = {c: {e['tid'] for e in x if e['cat'] == c} for c in ('upload', 'kernel', 'download')}
    assert len(rows['kernel']) == 1 and rows['upload'] != rows['kernel'], rows # a row for each queue: tiles come in beside kernels
    assert d['profile']['memory']['peak_bytes'] == d['peak_bytes'], d
    assert {e['pid'] for e in commands('bench')} == {1, 2}


def report(tmp, api):
    """The XML report has the figures of the JSON."""
    said, root = json.load(open(f'{tmp}/figures.json')), ET.parse(f'{tmp}/r.xml').getroot()
    devices = root.findall('bench/devices/device')
    assert [d.get('side') for d in devices] == ['original', 'tiled'], devices
    for d in devices:
        want, number = said[d.get('side')]['device'], lambda name: float(d.get(name))
        assert d.get('api') == api and d.get('name') == want['name']
        for name in 'planned', 'arena', 'arena-live', 'weight', 'peak':
            assert number(name + '-bytes') == want[name.replace('-', '_') + '_bytes'], (name, d.attrib, want)
        assert number('allocated') == 2 and number('allocated-bytes') == want['peak_bytes'] and number('freed') == 0, d.attrib
        assert 0 < number('arena-live-bytes') <= number('arena-bytes') and 0 <= number('fragmentation') < 1, d.attrib
        assert abs(number('fragmentation') - (1 - number('arena-live-bytes') / number('arena-bytes'))) < 1e-6, d.attrib
        assert 0 < number('busy-seconds') <= number('span-seconds') and number('allocate-seconds') > 0, d.attrib
        laid = want['layouts']
        assert number('packed-constants') == laid['packed_constants'] and number('packed-bytes') == laid['packed_bytes'], (d.attrib, laid)
        assert laid['packed_constants'] > 0 or d.get('side') == 'tiled' or laid['busy_work_items'] > 0, laid  # tiles may read the one weight that is packed in parts
        assert number('blocked-activations') == laid['blocked_activations'] and number('blocked-bytes') == laid['blocked_bytes'], (d.attrib, laid)
        rounded = [math.isclose(number(name), laid[name.replace('-', '_')], rel_tol=1e-8) for name in ('transactions', 'transactions-plain')]
        assert all(rounded) and number('transactions') <= number('transactions-plain'), (d.attrib, laid)
        assert math.isclose(number('transactions-ideal'), laid['transactions_ideal'], rel_tol=1e-8), (d.attrib, laid)
        assert laid['transactions_ideal'] <= laid['transactions'], laid
        moved = {t.get('direction'): t for t in d.iter('transfer')}
        assert float(moved['upload'].get('bytes')) == want['uploaded_bytes'], moved
        peak = moved['upload'].get('of-peak')  # what stands for CUDA on the host has none
        assert float(peak) > 0 if peak else api == 'cuda', moved
        assert float(moved['download'].get('bytes')) == want['downloaded_bytes'], moved
        kernels = list(d.iter('kernel'))
        assert sum(int(k.get('count')) for k in kernels) == number('launches') == want['launches'], d.attrib
        times = [float(k.get('time-seconds')) for k in kernels]
        assert times == sorted(times, reverse=True) and times[-1] > 0, times
        assert any(k.get('name').startswith('Conv, ') for k in kernels), kernels
    cards = {c.get('id') for c in root.iter('card')}
    assert 'device-memory' in cards and 'peak-memory' not in cards, cards


if __name__ == '__main__':
    commands(same, figures, checked, blocks, attention, bench, trace, report)
