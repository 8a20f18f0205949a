#!/usr/bin/env bash
# What graph viewers show of a tiled model: metadata_props of its regions' nodes say what the report says, other nodes keep theirs,
# and checkers and runtimes take the model as before.
. "$(dirname "$0")/lib.bash"
make_model --small resnet50 unet vgg16_head vit

cat >"$tmp/own.py" <<'P'
import sys, onnx
m = onnx.load(sys.argv[1])
for k, n in enumerate(m.graph.node): n.metadata_props.add(key='mine', value=str(k))
onnx.save(m, sys.argv[1])
P
cat >"$tmp/check.py" <<'P'
import json, sys
import numpy as np, onnx, onnxruntime
original, tiled, report, emit = sys.argv[1:]
a, b = onnx.load(original), onnx.load(tiled)
report = json.load(open(report))
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
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 3
    i = a.graph.input[0]
    x = np.random.default_rng(0).standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype('f4')
    run = lambda p: onnxruntime.InferenceSession(p, o, providers=['CPUExecutionProvider']).run(None, {i.name: x})
    for p, q in zip(run(original), run(tiled)):
        assert np.abs(p - q).max() <= 1e-4 * max(1, np.abs(p).max()), 'other results'
P

"$PYTHON" "$tmp/own.py" "$tmp/resnet50.onnx"
for m in resnet50 unet vgg16_head vit; do
    for emit in onnx engine; do
        expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/tiled.onnx" --target cpu-generic --l2 64K --force --emit $emit -q --report "$tmp/r.json"
        "$PYTHON" "$tmp/check.py" "$tmp/$m.onnx" "$tmp/tiled.onnx" "$tmp/r.json" $emit 2>"$tmp/why" || fail "$m, $emit: $(tail -n 1 "$tmp/why")"
    done
done
finish
