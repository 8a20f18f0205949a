"""check: what is the same, what differs, what it takes."""
import tempfile
import unittest

import networks
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import onnx_tile
from onnx_tile._half import computes_half


class Check(unittest.TestCase):
    def test_a_tiled_model_is_the_same_and_takes_less(self):
        model = networks.conv_chain(768, 768, 24)
        tiled, result = onnx_tile.tile(model, goal="memory", threads=1, max_slowdown=10.0)
        self.assertGreater(len(result.regions), 0)
        c = onnx_tile.check(model, tiled, rounds=1)
        self.assertTrue(c.same and c, str(c))
        self.assertLess(c.memory_ratio, 0.8)
        self.assertLess(c.process_ratio, 0.9)
        self.assertGreaterEqual(c.before.process_bytes, c.before.growth_bytes)
        self.assertGreater(c.time_ratio, 0)
        self.assertIn("outputs: the same", str(c))
        self.assertIn("same", repr(c))
        self.assertIn("<table>", c._repr_html_())

    def test_outputs_that_are_compared_are_no_memory_of_the_model(self):
        """An output of 64 MiB, and next to nothing else: held once, whatever is done with it after the first run."""
        n = 4096
        graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g",
                                  [helper.make_tensor_value_info(*v) for v in (("x", TensorProto.FLOAT, [n, 1]), ("y", TensorProto.FLOAT, [n]))],
                                  [helper.make_tensor_value_info("z", TensorProto.FLOAT, [n, n])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        c = onnx_tile.check(model, model, rounds=2)
        for side in (c.before, c.after):
            self.assertGreater(side.growth_bytes, 0.9 * 4 * n * n)
            self.assertLess(side.growth_bytes, 1.5 * 4 * n * n)

    def test_another_model_is_not(self):
        model, other = networks.conv_chain(32, 32), networks.conv_chain(32, 32)
        w = numpy_helper.to_array(other.graph.initializer[1]).copy()
        w[:8] *= 1.5
        other.graph.initializer[1].CopyFrom(numpy_helper.from_array(w, "w1"))
        with tempfile.TemporaryDirectory() as folder:
            c = onnx_tile.check(networks.path_of(model, folder, "a"), networks.path_of(other, folder, "b"), rounds=1)
        self.assertFalse(c)
        self.assertIn("'y' differs: NMSE", str(c))
        self.assertFalse(np.isnan(c.outputs[0].nmse))

    def test_own_rounding_is_no_difference(self):
        """What is further apart than the tolerance, and no further than the model from itself; and at the size that is planned for."""
        left = networks.rounded(("Sub", "pm", "y"))
        exact = networks.rounded(("Sub", "mm", "z"), ("Add", "zx", "y"))
        wrong = networks.rounded(("Mul", "xh", "y"))
        c = onnx_tile.check(left, exact, rounds=1)
        self.assertTrue(c, str(c))
        self.assertTrue(c.outputs[0].own_noise)
        self.assertIn("within the model's own rounding", str(c))
        self.assertFalse(onnx_tile.check(left, wrong, rounds=1))
        self.assertFalse(onnx_tile.check(exact, left, rounds=1))  # which has no such noise
        self.assertGreater(c.before.growth_bytes, 3 * 1024 * 1024 * 4)

    def test_half_precision_inside(self):
        """A model that is float32 outside: what its own rounding does is allowed where it has float16 inside, and nowhere else."""
        def network(half):
            net = networks.conv_chain(32, 32)
            if half:
                y = net.graph.node[-1].output[0]
                net.graph.node[-1].output[0] = "inner"
                net.graph.node.extend([helper.make_node("Cast", ["inner"], ["rounded"], to=TensorProto.FLOAT16),
                                       helper.make_node("Cast", ["rounded"], [y], to=TensorProto.FLOAT)])
            return net
        with tempfile.TemporaryDirectory() as folder:
            exact, rounded = (networks.path_of(network(half), folder, name) for half, name in ((False, "a"), (True, "b")))
            self.assertEqual([computes_half(p) for p in (exact, rounded)], [False, True])
            self.assertTrue(onnx_tile.check(rounded, exact, rounds=1))
            w = network(False)
            for t in w.graph.initializer:
                if t.name == "w1":
                    t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t) * np.float32(1.002), "w1"))
            near = networks.path_of(w, folder, "c")
            self.assertFalse(onnx_tile.check(exact, near, rounds=1))
            self.assertTrue(onnx_tile.check(rounded, near, rounds=1))

    def test_what_states_half_precision(self):
        def file_of(**parts):
            graph = helper.make_graph(**{"nodes": [], "name": "g", "inputs": [], "outputs": [], **parts})
            path = f"{folder}/m.onnx"
            with open(path, "wb") as f:
                f.write(helper.make_model(graph).SerializeToString())
            return path
        info = [helper.make_tensor_value_info("v", TensorProto.FLOAT16, [1])]
        tensor = numpy_helper.from_array(np.ones(3, np.float16), "t")
        body = helper.make_graph([], "b", [], info)
        with tempfile.TemporaryDirectory() as folder:
            self.assertFalse(computes_half(file_of(initializer=[numpy_helper.from_array(np.full(10, 10, np.int64), "to")])))
            for parts in ({"inputs": info}, {"outputs": info}, {"value_info": info}, {"initializer": [tensor]},
                          {"nodes": [helper.make_node("Constant", [], ["c"], value=tensor)]},
                          {"nodes": [helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body)]}):
                self.assertTrue(computes_half(file_of(**parts)), str(parts))
            for junk in (b"", b"no model", b"\x3a\xff", bytes(range(256))):
                with open(f"{folder}/junk", "wb") as f:
                    f.write(junk)
                self.assertFalse(computes_half(f"{folder}/junk"))

    def test_what_cannot_be_compared(self):
        model, other = networks.conv_chain(16, 16), networks.conv_chain(16, 16)
        other.graph.output[0].name = other.graph.node[-1].output[0] = "z"
        with self.assertRaisesRegex(onnx_tile.ModelError, "differ"):
            onnx_tile.check(model, other)
        with self.assertRaisesRegex(onnx_tile.ModelError, "after: "):
            onnx_tile.check(model, networks.broken())
        with self.assertRaisesRegex(onnx_tile.ModelNotFound, "/nowhere/x.onnx"):
            onnx_tile.check(model, "/nowhere/x.onnx")
        with self.assertRaisesRegex(onnx_tile.UsageError, "runtime 'nope'"):
            onnx_tile.check(model, model, runtime="nope")
        with self.assertRaisesRegex(onnx_tile.UsageError, "rounds"):
            onnx_tile.check(model, model, rounds=0)

    def test_free_dimensions(self):
        model = networks.conv_chain(rows="height", width=32)
        c = onnx_tile.check(model, model, shapes={"x": [1, 3, 40, 32]}, rounds=1)
        self.assertTrue(c)

    def test_what_is_missing_is_named(self):
        import importlib.util
        from unittest import mock
        real = importlib.util.find_spec
        for gone, runtime, said in (({"numpy"}, None, "needs NumPy: pip install numpy$"),
                                    ({"onnxruntime", "openvino"}, None, "needs ONNX Runtime or OpenVINO: pip install numpy onnxruntime$"),
                                    ({"openvino"}, "openvino", "needs OpenVINO: pip install numpy openvino$")):
            with mock.patch("importlib.util.find_spec", lambda n, gone=gone: None if n in gone else real(n)):
                with self.assertRaisesRegex(ImportError, said):
                    onnx_tile.check("a.onnx", "b.onnx", runtime=runtime)


if __name__ == "__main__":
    unittest.main()
