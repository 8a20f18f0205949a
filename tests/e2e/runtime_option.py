"""What runtime_option.sh has in Python."""
import json
import os
import sys

import numpy as np
import onnx

from builder import conv_chain, save
from checks import session
from command_line import commands

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts'))
import compare  # noqa: E402


def regions_for(runtime, model_file):
    """Regions of a model made for the runtime; fails with the first node that it gets wrong or refuses."""
    model = onnx.load(model_file)
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
    return len(regions)


def forms(*words):
    """RUNTIME MODEL ...: a line "MODEL RUNTIME REGIONS" for each; fails where one holds what its runtime does not take."""
    for runtime, path in zip(words[::2], words[1::2], strict=True):
        try:
            print(path, runtime, regions_for(runtime, path))
        except AssertionError as e:
            raise AssertionError(f'{path} for {runtime}: {e}') from e


def equal(folder, original, *tiled):
    """Outputs of all models are those of the first within rounding, as scripts/compare.py has it."""
    feeds = None
    for k, path in enumerate([original, *tiled]):
        s = session(path)
        feeds = feeds or compare.make_inputs(s, {}, 0)
        made = {f'o{j}': o for j, o in enumerate(s.run(None, feeds))}
        np.savez(f'{folder}/{min(k, 1)}.npz', names=np.array([o.name for o in s.get_outputs()]), **made)
        if k:
            why = compare.equal(f'{folder}/0.npz', f'{folder}/1.npz')
            assert not why, f'{path}: {why}'


def deep(path):
    """Twelve convolutions and a mean over the channels."""
    save(conv_chain([32] * 12, 32, (1, 384, 384), act='Relu', opset=13, tail=[('ReduceMean', {'axes': [1], 'keepdims': 1})],
                    out=[1, 1, 384, 384]), path)


def in_bodies(path, told_file):
    """All convolutions lie in bodies of Loops, and the process grows by less than 0.6 of what it grew by."""
    m, j = onnx.load(path), json.load(open(told_file))
    assert sum(n.op_type == 'Loop' for n in m.graph.node) >= 3, 'border tiles have no bodies'
    assert not any(n.op_type == 'Conv' for n in m.graph.node), 'a tile lies in the outer graph'
    part = j['tiled']['growth_bytes'] / j['untiled']['growth_bytes']
    assert part < 0.6, f'the process grows by {part:.2f} of what it grew by'


def entries(*words):
    """PATH RUNTIMES ...: a model tiled twice names its runtime once."""
    for path, most in zip(words[::2], words[1::2]):
        p = [p.value for p in onnx.load(path).metadata_props if p.key == "onnx_tile.runtime"]
        assert p == most.split(), (path, p)


def no_entry(path):
    """Nothing is tiled, so the model names no runtime."""
    m = onnx.load(path)
    assert any(n.name.startswith("tile/") for n in m.graph.node) or not m.metadata_props


if __name__ == '__main__':
    commands(forms, equal, deep, in_bodies, entries, no_entry)
