#!/usr/bin/env bash
# --runtime: what is written is what that runtime takes, node by node; the model, the table, the JSON and the report name it.
. "$(dirname "$0")/lib.bash"
make_model --small resnet50 unet vgg16_head vit

cat >"$tmp/forms.py" <<'P'
"""forms.py RUNTIME MODEL: fails with the first node that the runtime gets wrong or refuses; prints the number of tiled regions."""
import sys, onnx
runtime, model = sys.argv[1], onnx.load(sys.argv[2])
SEQUENCES = runtime == 'onnxruntime'
regions = set()

def names(g): return {i.name for i in g.input} | {i.name for i in g.initializer} | {o for n in g.node for o in n.output}

def captures(g, seen=frozenset()):
    """Names of outside that a body reads, bodies of bodies included."""
    own = seen | names(g)
    for n in g.node:
        yield from (i for i in n.input if i and i not in own)
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH: yield from captures(a.g, own)

def walk(g):
    for n in g.node:
        part = n.name.split('/')
        if part[0] != 'tile': continue
        regions.add(part[1])
        where = f'{n.name} ({n.op_type})'
        bodies = [a.g for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
        assert n.domain == '' or runtime.startswith('engine'), f'{where}: an operator of {n.domain}'
        assert SEQUENCES or 'Sequence' not in n.op_type, f'{where}: a sequence'
        if n.op_type == 'Loop':
            assert runtime not in ('portable',), f'{where}: a Loop'
            if not SEQUENCES:
                assert all(n.input), f'{where}: an input is left out'
                types = {v.name: v.type for v in [*g.value_info, *g.output, *bodies[0].output]}
                assert not any(types[o.name].HasField('sequence_type') for o in bodies[0].output), f'{where}: carries a sequence'
        if n.op_type == 'Scan':
            assert all(n.input), f'{where}: an input is left out'
            assert runtime != 'loop', f'{where}: a Scan'
            if runtime != 'onnxruntime':
                assert not any(a.name == 'scan_output_axes' and any(a.ints) for a in n.attribute), f'{where}: scan_output_axes'
                assert not list(captures(bodies[0])), f'{where}: captures {sorted(set(captures(bodies[0])))[:3]}'
        for b in bodies: walk(b)
walk(model.graph)
if runtime in ('loop', 'portable'):
    # ONNX Runtime makes one Split of Slices that share out a tensor along one axis
    known = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    single = [n.name for n in model.graph.node if n.name.startswith('tile/r') and n.op_type == 'Slice' and known[n.input[3]].size == 1]
    assert not single, f'{single[0]} names one axis'
if runtime == 'openvino':
    # a shared bias would keep every convolution from merging it
    biases = [n.input[2] for n in model.graph.node if n.op_type in ('Conv', 'ConvTranspose') and len(n.input) > 2]
    assert len(biases) == len(set(biases)), 'convolutions share a bias'
made_for = [p.value for p in model.metadata_props if p.key == 'onnx_tile.runtime']
assert made_for == ([runtime] if regions else []), f'metadata: {made_for}'
print(len(regions))
P

args=(--target cpu-generic --l2 64K --force)
for m in resnet50 unet vgg16_head vit; do
    for r in onnxruntime openvino loop portable engine engine-device; do
        expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/$m.$r.onnx" "${args[@]}" --runtime $r
        head -n 1 "$tmp/out" | grep -qF -- "$m.onnx for $r on cpu-generic" || fail "$m: the first line is not of $r: $(head -n 1 "$tmp/out")"
        "$PYTHON" "$tmp/forms.py" $r "$tmp/$m.$r.onnx" >"$tmp/regions" 2>"$tmp/why" || fail "$m for $r: $(tail -n 1 "$tmp/why")"
        [ "$(cat "$tmp/regions")" != 0 ] || fail "$m for $r: nothing is tiled"
        case $r in engine*) continue ;; esac
        expect 0 "$PYTHON" "$root/scripts/compare.py" --rounds 1 "$tmp/$m.onnx" "$tmp/$m.$r.onnx"
    done
    expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/x.onnx" "${args[@]}" -q
    cmp -s "$tmp/x.onnx" "$tmp/$m.onnxruntime.onnx" || fail "$m: the default is not onnxruntime"
    expect 0 "$TOOL" "$tmp/$m.onnx" -o "$tmp/x.onnx" "${args[@]}" -q --emit engine
    cmp -s "$tmp/x.onnx" "$tmp/$m.engine.onnx" || fail "$m: --emit engine is not --runtime engine"
done

# the models of the golden tests, cut as small as it goes
n=0
for m in "$root"/tests/golden/*/*.ot; do
    for r in onnxruntime openvino loop portable; do
        "$TOOL" "$m" -o "$tmp/golden.onnx" --target cpu-generic --l2 1K --force -q --runtime $r 2>/dev/null || continue
        "$PYTHON" "$tmp/forms.py" $r "$tmp/golden.onnx" >"$tmp/regions" 2>"$tmp/why" || fail "$m for $r: $(tail -n 1 "$tmp/why")"
        n=$((n + $(cat "$tmp/regions")))
    done
done
[ $n -ge 40 ] || fail "only $n regions in the golden models"

# a deep chain for loop: border tiles lie in bodies, too, since all that two of them make in the outer graph would live at once
"$PYTHON" - "$tmp/deep.onnx" <<'P'
import sys, numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh, save
rng, C, N, D = np.random.default_rng(0), 32, 384, 12
x, nodes, init = 'x', [], []
for k in range(D):
    init.append(nh.from_array((rng.standard_normal((C, C, 3, 3)) * 0.1).astype('f4'), f'w{k}'))
    nodes += [h.make_node('Conv', [x, f'w{k}'], [f'c{k}'], pads=[1] * 4), h.make_node('Relu', [f'c{k}'], [f'r{k}'])]
    x = f'r{k}'
nodes.append(h.make_node('ReduceMean', [x], ['y'], axes=[1], keepdims=1))
g = h.make_graph(nodes, 'deep', [h.make_tensor_value_info('x', T.FLOAT, [1, C, N, N])],
                 [h.make_tensor_value_info('y', T.FLOAT, [1, 1, N, N])], init)
save(h.make_model(g, opset_imports=[h.make_opsetid('', 13)], ir_version=8), sys.argv[1])
P
expect 0 "$TOOL" "$tmp/deep.onnx" -o "$tmp/deep.loop.onnx" --target cpu-generic --goal memory --runtime loop --json
"$PYTHON" - "$tmp/deep.loop.onnx" "$tmp/out" <<'P' || fail "a deep chain for loop"
import json, sys, onnx
m, j = onnx.load(sys.argv[1]), json.load(open(sys.argv[2]))
assert sum(n.op_type == 'Loop' for n in m.graph.node) >= 3, 'border tiles have no bodies'
assert not any(n.op_type == 'Conv' for n in m.graph.node), 'a tile lies in the outer graph'
part = j['tiled']['growth_bytes'] / j['untiled']['growth_bytes']
assert part < 0.6, f'the process grows by {part:.2f} of what it grew by'
P
expect 0 "$PYTHON" "$root/scripts/compare.py" --rounds 1 "$tmp/deep.onnx" "$tmp/deep.loop.onnx"

# JSON, reports, and a target file that names a runtime
expect 0 "$TOOL" inspect "$tmp/unet.onnx" "${args[@]}" --runtime loop --json --report "$tmp/r.xml" --report "$tmp/r.html" --report "$tmp/r.json"
grep -q '"runtime": *"loop"' "$tmp/out" || fail "--json does not name the runtime"
grep -q '"runtime": *"loop"' "$tmp/r.json" || fail "the JSON report does not name the runtime"
grep -q '<report [^>]*runtime="loop"' "$tmp/r.xml" || fail "the XML report does not name the runtime"
grep -q '>runtime</span> loop<' "$tmp/r.html" || fail "the page does not name the runtime"
if command -v xmllint >/dev/null; then expect 0 xmllint --noout --schema "$root/reports/benefit.xsd" "$tmp/r.xml"; fi
cat >"$tmp/t.xml" <<'X'
<target name="mine" cores="1" runtime="openvino">
  <fast bytes="65536" bandwidth="9e10" granule="64" cache="true" double-buffer="false"/>
  <slow bandwidth="1.5e10"/>
  <rates conv="5e10" conv-depthwise="2e10" conv-pointwise="5e10" gemm="4e10" elementwise="4e9" transcendental="1e9" reduction="2e9" pooling="2e9"/>
  <overheads node="1e-6" loop="1e-6" region="1e-5"/>
</target>
X
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target "$tmp/t.xml"
head -n 1 "$tmp/out" | grep -qF 'for openvino on mine' || fail "the file's runtime does not count: $(head -n 1 "$tmp/out")"
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target "$tmp/t.xml" --runtime portable
head -n 1 "$tmp/out" | grep -qF 'for portable on mine' || fail "--runtime does not replace the file's: $(head -n 1 "$tmp/out")"
sed -i 's/cache="true"/cache="false"/' "$tmp/t.xml"
expect 1 "$TOOL" inspect "$tmp/unet.onnx" --target "$tmp/t.xml"; says 'runtime="openvino"'
expect 2 "$TOOL" inspect "$tmp/unet.onnx" --target ethos-u55 --runtime openvino; says 'target ethos-u55 has a scratchpad'
expect 0 "$TOOL" inspect "$tmp/unet.onnx" --target ethos-u55 --runtime engine -q

# Tiled once more, a model has one entry; where nothing is tiled, it has none.
expect 0 "$TOOL" "$tmp/unet.portable.onnx" -o "$tmp/twice.onnx" --target cpu-generic --l2 32K --force -q
"$PYTHON" -c 'import sys, onnx
for path, most in zip(sys.argv[1::2], sys.argv[2::2]):
    p = [p.value for p in onnx.load(path).metadata_props if p.key == "onnx_tile.runtime"]
    assert p == most.split(), (path, p)' "$tmp/twice.onnx" onnxruntime || fail "tiled twice: not one entry"
expect 0 "$TOOL" "$tmp/vgg16_head.onnx" -o "$tmp/same.onnx" --target h200 -q --l2 16G --max-slowdown 0
cmp -s "$tmp/vgg16_head.onnx" "$tmp/same.onnx" || "$PYTHON" -c 'import sys, onnx
m = onnx.load(sys.argv[1])
assert any(n.name.startswith("tile/") for n in m.graph.node) or not m.metadata_props' "$tmp/same.onnx" || fail "an entry, and nothing is tiled"
finish
