"""step, Stepper: blocks of any length give the rows of the whole network, and again after the end; two inputs; failures."""
import os
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import onnx_tile


def network(kind="centred"):
    """Convolutions, one of stride 2, and up again; 'guided': with an input of half the rate, and one without rows; 'mean': of all rows."""
    rng = np.random.default_rng(3)
    inits = {n: rng.normal(0, .3, s).astype("f4") for n, s in (("a", (4, 2, 5)), ("b", (4, 4, 3)), ("c", (4, 2, 4)))}
    nodes = [helper.make_node("Conv", ["x", "a"], ["p"], pads=[2, 2]), helper.make_node("Conv", ["p", "b"], ["q"], strides=[2], pads=[1, 1])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "t"])]
    last = "q"
    if kind == "guided":
        nodes += [helper.make_node("Add", ["q", "guide"], ["r"]), helper.make_node("Mul", ["r", "style"], ["z"])]
        inputs += [helper.make_tensor_value_info("guide", TensorProto.FLOAT, [1, 4, "u"]),
                   helper.make_tensor_value_info("style", TensorProto.FLOAT, [1, 4, 1])]
        last = "z"
    if kind == "mean":
        nodes.append(helper.make_node("GlobalAveragePool", ["q"], ["mean"], name="all_rows"))
        nodes.append(helper.make_node("Mul", ["q", "mean"], ["m"]))
        last = "m"
    nodes.append(helper.make_node("ConvTranspose", [last, "c"], ["y"], strides=[2], pads=[1, 1]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, None])]
    if kind == "guided":
        outputs.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 4, None]))
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, n) for n, v in inits.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def options():
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    return o


def whole(model, feeds):
    return ort.InferenceSession(model.SerializeToString(), options(), providers=["CPUExecutionProvider"]).run(None, feeds)


class Step(unittest.TestCase):
    def test_blocks_of_any_length(self):
        model, rng = network(), np.random.default_rng(4)
        made = onnx_tile.step(model, axis=("x", 2), rows=8)
        self.assertTrue(hasattr(made, "graph"))
        s = onnx_tile.Stepper(made, options=options())
        for rows in (3, 40, 96):  # after each end it begins anew
            x, out, at = rng.normal(0, 1, (1, 2, 2 * rows)).astype("f4"), [], 0
            while at < 2 * rows:
                n = int(rng.integers(0, 20))
                out.append(s.push(x[:, :, at:at + n]))
                at += n
            y = np.concatenate([*out, s.finish()], 2)
            want = whole(model, {"x": x})[0]
            self.assertEqual(y.shape, want.shape)
            np.testing.assert_allclose(y, want, atol=1e-6)
        self.assertEqual(s.seen, 0)

    def test_memory_is_that_of_a_step(self):
        s = onnx_tile.Stepper(onnx_tile.step(network(), axis=("x", 2)))
        state = sum(np.prod(x["shape"]) * np.dtype(x["type"]).itemsize for x in s.data["states"])
        self.assertEqual(s.state_bytes, state)
        self.assertLess(s.state_bytes, 1000)
        self.assertGreater(s.delay["y"], 0)

    def test_two_inputs_and_outputs(self):
        model, rng = network("guided"), np.random.default_rng(5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.onnx")
            self.assertEqual(onnx_tile.step(model, path, axis=("x", 2), shapes={"x": (1, 2, 64), "guide": (1, 4, 32)}), path)
            feeds = {"x": rng.normal(0, 1, (1, 2, 40)).astype("f4"), "guide": rng.normal(0, 1, (1, 4, 20)).astype("f4")}
            style = rng.normal(0, 1, (1, 4, 1)).astype("f4")
            s = onnx_tile.Stepper(path, constants={"style": style}, options=options())
        parts = [s.push({"x": feeds["x"][:, :, 4 * k:4 * k + 4], "guide": feeds["guide"][:, :, 2 * k:2 * k + 2]}) for k in range(10)]
        parts.append(s.finish())
        for name, want in zip(("y", "z"), whole(model, {**feeds, "style": style})):
            np.testing.assert_allclose(np.concatenate([p[name] for p in parts], 2), want, atol=1e-6)

    def test_failures(self):
        with self.assertRaisesRegex(onnx_tile.ModelError, "all_rows.*GlobalAveragePool"):
            onnx_tile.step(network("mean"), axis=("x", 2))
        for axis, rows, text in ((("y", 2), 0, "no input"), (("x", 3), 0, "no axis 3"), (("x", 2), 3, "multiple of 2"), (("x", -1), 0, "from 0")):
            with self.assertRaisesRegex(onnx_tile.UsageError, text):
                onnx_tile.step(network(), axis=axis, rows=rows)
        with self.assertRaisesRegex(onnx_tile.UsageError, "no step"):
            onnx_tile.Stepper(network())
        made = onnx_tile.step(network("guided"), axis=("x", 2), shapes={"x": (1, 2, 64), "guide": (1, 4, 32)})
        with self.assertRaisesRegex(onnx_tile.UsageError, "style"):
            onnx_tile.Stepper(made)
        s = onnx_tile.Stepper(made, constants={"style": np.ones((1, 4, 1), "f4")})
        with self.assertRaisesRegex(onnx_tile.UsageError, "guide"):
            s.push(np.zeros((1, 2, 4), "f4"))


if __name__ == "__main__":
    sys.exit(unittest.main())
