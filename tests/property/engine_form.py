"""A random graph in the native engine: untiled, and tiled with --emit engine.

  model --run--> outputs ----------- like those of ONNX Runtime
    `--emit engine--> tiled --run--> like those of the untiled model in the engine

An operator that the engine does not have is no failure.
"""
import os

import numpy as np
import onnx

from comparing import Failed, differences, run_tool, tile


def run(tool, model, feeds, n_outputs, folder, threads):
    """The outputs; None when the engine lacks an operator."""
    words = ['run', model, '-q', '--threads', str(threads), '--output-dir', os.path.join(folder, 'results')]
    for k, (name, array) in enumerate(feeds.items()):
        path = os.path.join(folder, f'input_{k}.npy')
        np.save(path, array)
        words += ['--input', f'{name}={path}']
    status, said = run_tool(tool, words)
    if status == 1 and 'the engine' in said:
        return None
    if status != 0:
        raise Failed(f'the engine exits {status} on {os.path.basename(model)}: {said[-600:]}')
    return [np.load(os.path.join(folder, 'results', f'{k}.npy')) for k in range(n_outputs)]


def regions_of(model):
    """Regions in the engine's form: names of its loops."""
    names = set()

    def walk(g):
        for n in g.node:
            part = n.name.split('/')
            if len(part) > 2 and part[0] == 'tile' and n.op_type == 'While':
                names.add(part[1])
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    walk(a.g)
    walk(model.graph)
    return len(names)


def check(tool, model, bound, args, feeds, names, known, folder, threads):
    """The number of regions; None when the engine lacks an operator. known: what ONNX Runtime gives, with and without its optimisations;
    nothing: the two need not agree."""
    without_form = [w for k, w in enumerate(args) if w != '--form' and (k == 0 or args[k - 1] != '--form')]
    tiled = os.path.join(folder, 'engine.onnx')
    plain = run(tool, model, feeds, len(names), folder, threads)
    if plain is None:
        return None
    if known and all(differences(names, want, plain) for want in known):
        raise Failed(f'the engine, untiled: {differences(names, known[0], plain)}')
    command = tile(tool, model, tiled, [*without_form, '--emit', 'engine'], bound)
    got = run(tool, tiled, feeds, len(names), folder, threads)
    if got is None:
        raise Failed(f'the engine does not take its own form: {" ".join(command)}')
    why = differences(names, plain, got)
    if why:
        raise Failed(f'the engine, tiled: {why}')
    return regions_of(onnx.load(tiled))
