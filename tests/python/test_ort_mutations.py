"""Nodes of the engine's operator that do not fit their bodies, in ONNX Runtime: none ends the process that runs them.

  python test_ort_mutations.py FIRST COUNT: these mutations in this process; prints how many ran and how many were refused.
"""
import os
import random
import subprocess
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import onnx_tile

COUNT = int(os.environ.get("ORT_MUTATIONS", "4000"))
BATCH = 500
TYPES = [t for t in TensorProto.DataType.values() if 0 < t <= 16]
SHAPE = [1, 3, 4, 5]


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def body(rng):
    """A model of one input or two and of one output to three; its inputs' and outputs' types."""
    shape = rng.choice([SHAPE, SHAPE, ["n", 3, 4, 5]])
    nodes = [helper.make_node(rng.choice(["Relu", "Neg", "Identity"]), ["a"], ["o0"])]
    ins, outs, kinds = [value("a", shape)], [value("o0", shape)], [TensorProto.FLOAT]
    if rng.random() < 0.4:
        ins.append(value("b", shape))
        nodes.append(helper.make_node("Greater", ["a", "b"], ["o1"]))
        outs.append(value("o1", shape, TensorProto.BOOL))
        kinds.append(TensorProto.BOOL)
    if rng.random() < 0.3:
        nodes.append(helper.make_node("Cast", ["a"], ["o2"], to=TensorProto.DOUBLE))
        outs.append(value("o2", shape, TensorProto.DOUBLE))
        kinds.append(TensorProto.DOUBLE)
    graph = helper.make_graph(nodes, "body", ins, outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), len(ins), kinds


def damaged(data, rng):
    """The body with bytes of it changed, left out or doubled."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        data[at:at + rng.choice([0, 1, 1, 4])] = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 1, 3])))
    return bytes(data)


def mutated(rng):
    """A model around one such node, and its feeds."""
    inside, n_in, kinds = body(rng)
    ins, outs = ["x", "w"][:n_in], [f"y{k}" for k in range(len(kinds))]
    kinds_in = [TensorProto.FLOAT] * 2
    shape = list(SHAPE)
    what = rng.randrange(8)
    if what in (0, 1):  # most of them: another type than the body's
        kinds[rng.randrange(len(kinds))] = rng.choice(TYPES)
    if what == 2:
        ins = rng.choice([[""] + ins[1:], ins + ["x"], ins[:-1] + [""], ["", "x"], ["x", "", "x"], ins])
    if what == 3:
        outs = rng.choice([outs + [""], [""] + outs[1:], outs[:1] + [""] * (len(outs) - 1), outs + ["more"]])
    if what == 4:
        inside = damaged(inside, rng)
    if what == 5:
        kinds_in[rng.randrange(2)] = rng.choice([t for t in TYPES if t not in (TensorProto.STRING, TensorProto.BFLOAT16)])
    if what == 6:
        shape = rng.choice([[1, 3, 4], [2, 3, 4, 5], [], [1, 3, 0, 5], [1] * 9])
    more = {"threads": rng.choice([-1, 0, 1, 2, 10 ** 12])} if what == 7 else {}
    node = helper.make_node("Engine", ins, outs, "engine", domain="onnx_tile", model=inside, **more)
    if what == 7 and rng.random() < 0.3:
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("model", rng.choice([3, 1.5, [1, 2], "no model"])))
    said = rng.choice([shape, None, [1, 3, 40, 50]])
    results = [value(o, said, kind) for o, kind in zip(outs, kinds) if o]
    nodes, stated = [node], []
    if results and rng.random() < 0.3:  # an output that stays inside
        inner = results.pop(0)
        stated.append(inner)
        nodes.append(helper.make_node("Identity", [inner.name], ["z"]))
        results.append(value("z", said, kinds[outs.index(inner.name)]))
    graph = helper.make_graph(nodes, "g", [value(n, shape, t) for n, t in zip(["x", "w"], kinds_in)], results or [value("x", shape, kinds_in[0])],
                              value_info=stated)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("onnx_tile", 1)], ir_version=8)
    feeds = {n: np.ones(shape, helper.tensor_dtype_to_np_dtype(t)) for n, t in zip(["x", "w"], kinds_in)}
    return model, feeds


def run(first, count):
    """Mutations from `first` on: how many ran, how many were refused."""
    ran = refused = 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.register_custom_ops_library(onnx_tile.ort_library())
    for k in range(first, first + count):
        model, feeds = mutated(random.Random(k))
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)
            ran += 1
        except Exception as why:  # ONNX Runtime's own errors have no common class
            if "onnx_tile" in str(why) and "\n" in str(why).strip():
                raise AssertionError(f"mutation {k}: more than a line: {why}") from None
            refused += 1
    return ran, refused


class Mutations(unittest.TestCase):
    def test_the_process_lives(self):
        total = [0, 0]
        for first in range(0, COUNT, BATCH):
            r = subprocess.run([sys.executable, os.path.abspath(__file__), str(first), str(BATCH)], capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, f"mutations from {first} on: {r.stderr[-500:]}")
            total = [a + int(b) for a, b in zip(total, r.stdout.split())]
        self.assertGreater(total[0], COUNT // 10)
        self.assertGreater(total[1], COUNT // 4)


if __name__ == "__main__":
    print(*run(int(sys.argv[1]), int(sys.argv[2])))
