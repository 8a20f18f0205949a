"""What overlay.sh has in Python."""
import json

import numpy as np
import onnx

from checks import input_extents, outputs
from command_line import commands


def own(path):
    """Give every node a property of its own."""
    m = onnx.load(path)
    for k, n in enumerate(m.graph.node): n.metadata_props.add(key='mine', value=str(k))
    onnx.save(m, path)


def check(original, tiled, report_file, emit):
    """Properties of a tiled model say what the report says; outputs are the same."""
    a, b = onnx.load(original), onnx.load(tiled)
    report = json.load(open(report_file))
    regions = {str(r['id']): r for r in report['regions']}
    had = {n.output[0]: n.metadata_props[0].value for n in a.graph.node if n.metadata_props}
    assert regions, 'nothing is tiled'
    seen = set()
    for n in b.graph.node:
        props = {p.key: p.value for p in n.metadata_props}
        assert len(props) == len(n.metadata_props), f'{n.name}: a key twice'
        notes = {k.removeprefix('onnx_tile.'): v for k, v in props.items() if k.startswith('onnx_tile.')}
        parts = n.name.split('/')
        inside = parts[0] == 'tile' and len(parts) > 1 and parts[1][1:] in regions
        assert bool(notes) == inside, f'{n.name}: {props}'
        if not inside:
            assert n.output[0] not in had or props == {'mine': had[n.output[0]]}, f'{n.name}: not its own properties'
            continue
        r = regions[notes['region']]
        seen.add(notes['region'])
        assert parts[1] == 'r' + notes['region'], n.name
        assert notes['tiles'] == ' x '.join(f'{d["axis"]} {d["tiles"]}' for d in r['dims']), notes
        assert notes['form'] == r['form'] and int(notes['operators']) == len(r['members']), notes
        assert int(notes['working_set_bytes']) == r['working_set_bytes'], notes
        for key, seconds in (('predicted_ms', 'tiled_seconds'), ('predicted_untiled_ms', 'untiled_seconds')):
            assert abs(float(notes[key]) - 1e3 * r[seconds]) <= 1e-3 * 1e3 * r[seconds], (key, notes[key], r[seconds])
    assert seen == set(regions), f'regions without notes: {set(regions) - seen}'
    if had and emit == 'onnx': assert set(had) & {n.output[0] for n in b.graph.node if n.metadata_props}, 'nothing kept its properties'
    if emit == 'onnx':
        onnx.checker.check_model(b, full_check=False)
        x = np.random.default_rng(0).standard_normal(input_extents(a)).astype('f4')
        feeds = {a.graph.input[0].name: x}
        for p, q in zip(outputs(original, feeds, threads=0), outputs(tiled, feeds, threads=0)):
            assert np.abs(p - q).max() <= 1e-4 * max(1, np.abs(p).max()), 'other results'


if __name__ == '__main__':
    commands(own, check)
