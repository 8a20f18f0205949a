"""What tests written in Python share: running models in ONNX Runtime, walking graphs with their bodies, differences.

tests/e2e/lib.bash puts this folder on the path; programs that run by themselves add it.
"""
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort


def session(path, threads=1):
    """A session on the CPU that says nothing of what the model is."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def outputs(path, feeds, threads=1):
    """All outputs of the model, in ONNX Runtime."""
    return session(path, threads).run(None, feeds)


def input_extents(model, k=0):
    """Extents of an input; 0 where one is free."""
    return [d.dim_value for d in model.graph.input[k].type.tensor_type.shape.dim]


def graphs(graph):
    """The graph and all bodies of its nodes, at any depth."""
    yield graph
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from graphs(a.g)


def nodes(graph):
    """Nodes of the graph and of all bodies."""
    for g in graphs(graph):
        yield from g.node


def printed(*words):
    """What a command prints, which has to succeed."""
    r = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    return r.stdout


def tile(tool, path, out, *options):
    """The plan as JSON, for one thread of a target that is the same everywhere, and whether the written model computes something again. Ends the
    program where the tool or the checker of models does not succeed."""
    p = subprocess.run([tool, path, '-o', out, '--threads', '1', '--target', 'cpu-generic', '--json', *options], capture_output=True, text=True)
    if p.returncode: sys.exit(f'{path} {options}: exit {p.returncode}: {p.stderr}')
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    return json.loads(p.stdout), any('tile/again/' in n.name for n in nodes(model.graph))


def unread_constants(graph):
    """Initializers of the graph and of all bodies, and results of Constant nodes, that nothing reads."""
    found = []

    def read(g):
        """Names that it reads of graphs around it."""
        names = {v for n in g.node for v in n.input} | {o.name for o in g.output}
        names |= {v for n in g.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH for v in read(a.g)}
        found.extend(v for v in [*(i.name for i in g.initializer), *(n.output[0] for n in g.node if n.op_type == 'Constant')] if v not in names)
        return names - {v.name for v in [*g.initializer, *g.input]} - {v for n in g.node for v in n.output}
    read(graph)
    return found


def nmse(got, want):
    """Squared error, by the squares of what is wanted."""
    got, want = got.astype('f8'), want.astype('f8')
    return ((got - want) ** 2).sum() / max((want ** 2).sum(), 1e-30)


def range_error(got, want):
    """The largest error, by the range of what is wanted."""
    return np.abs(got.astype('f8') - want).max() / (want.max() - want.min())


def check_lines(path, check, right):
    """A file of arguments for check, one set a line: ends with all that is wrong, or says how many are right."""
    wrong = []
    with open(path, encoding='utf-8') as f:
        todo = [line.split() for line in f]
    for args in todo:
        try:
            check(*args)
        except (SystemExit, Exception) as why:    # what the runtime says of a file, too
            wrong.append(f'{" ".join(args)}: {why}')
    sys.exit('\n'.join(wrong)) if wrong else print(len(todo), right)
