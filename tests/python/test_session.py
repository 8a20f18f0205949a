"""Session: arrays in and out, where they lie, types, shapes, what is refused."""
import os
import tempfile
import unittest

import networks
import numpy as np

import onnx_tile


def same(a, b):
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5)


class Sessions(unittest.TestCase):
    def setUp(self):
        self.model = networks.conv_chain(64, 48)
        self.x = np.random.default_rng(1).random((1, 3, 64, 48), np.float32)

    def test_runs_what_was_tiled(self):
        y, = onnx_tile.Session(self.model, threads=1).run({"x": self.x})
        for runtime in ("onnxruntime", "engine"):
            tiled, result = onnx_tile.tile(self.model, runtime=runtime, fast_memory="32K", force=True, threads=1)
            self.assertGreater(len(result.regions), 0)
            with onnx_tile.Session(tiled, threads=2) as session:
                self.assertTrue(same(session.run([self.x])[0], y), runtime)

    def test_agrees_with_onnx_runtime(self):
        import onnxruntime
        reference, = onnxruntime.InferenceSession(self.model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": self.x})
        self.assertTrue(same(onnx_tile.Session(self.model).run({"x": self.x})[0], reference))

    def test_describes_itself(self):
        session = onnx_tile.Session(networks.conv_chain(rows="height"))
        self.assertEqual(session.inputs, [("x", "float32", (1, 3, None, 256))])
        self.assertEqual(session.outputs[0].name, "y")
        self.assertIn("x -> y", repr(session))

    def test_every_type(self):
        model = networks.typed()
        session = onnx_tile.Session(model)
        for rows in (1, 5, 0):
            feeds = {v.name: np.arange(rows * 3).reshape(rows, 3).astype(v.dtype) for v in session.inputs}
            for v, y in zip(session.outputs, session.run(feeds)):
                x = feeds["in_" + v.name[4:]]
                self.assertEqual(y.dtype, x.dtype)
                self.assertTrue(np.array_equal(x, y), v.name)

    def test_inputs_are_read_in_place_and_outputs_are_ones_own(self):
        session = onnx_tile.Session(self.model, threads=1)
        first, = session.run({"x": self.x})
        kept = first.copy()
        second, = session.run({"x": self.x * 2})
        self.assertTrue(np.array_equal(first, kept), "a later run wrote into an earlier result")
        self.assertFalse(np.array_equal(first, second))
        self.assertTrue(same(session.run({"x": np.asfortranarray(self.x)})[0], first))  # another layout
        self.assertTrue(same(session.run({"x": np.repeat(self.x, 2, 3)[..., ::2]})[0], first))
        readonly = self.x.copy()
        readonly.flags.writeable = False
        self.assertTrue(same(session.run({"x": readonly})[0], first))
        session.close()
        self.assertTrue(np.array_equal(first, kept), "a result does not outlive its session")

    def test_free_shape(self):
        session = onnx_tile.Session(networks.conv_chain(rows="height", width=48))
        for rows in (16, 33, 64):
            y, = session.run({"x": self.x[:, :, :rows]})
            self.assertEqual(y.shape, (1, 3, rows, 48))
        bound = onnx_tile.Session(networks.conv_chain(rows="height", width=48), shapes={"x": (1, 3, 64, 48)})
        self.assertEqual(bound.inputs[0].shape, (1, 3, 64, 48))
        self.assertTrue(same(bound.run({"x": self.x})[0], y))

    def test_planned_when_it_is_loaded(self):
        model, wide = networks.conv_chain(256, 256), networks.conv_chain(256, 256, rows="rows")
        x = np.random.default_rng(2).random((1, 3, 256, 256), np.float32)
        with onnx_tile.Session(model, threads=2) as plain:
            want, = plain.run([x])
            most = plain.profile().data["peak_bytes"]
        for source, contexts in (model, 1), (model, 3), (wide, 1):
            with onnx_tile.Session(source, threads=2, goal="memory", contexts=contexts) as session:
                for _ in range(contexts + 1):
                    got, = session.run([x])
                    self.assertTrue(np.allclose(got, want, rtol=1e-4, atol=1e-5))
                self.assertLess(session.profile().data["peak_bytes"], most / 2)
        with onnx_tile.Session(wide, threads=2, goal="time") as session:
            for rows in 256, 100, 60, 70, 80, 90, 256:
                got, = session.run([x[:, :, :rows]])
                self.assertEqual(got.shape[2], rows)
            self.assertTrue(np.allclose(got, want, rtol=1e-4, atol=1e-5))
        for wrong in {"goal": "speed"}, {"goal": "memory", "plan": False}:
            with self.assertRaises(onnx_tile.UsageError):
                onnx_tile.Session(model, **wrong)

    def test_profile(self):
        session = onnx_tile.Session(self.model, threads=1)
        with self.assertRaisesRegex(onnx_tile.UsageError, "run first"):
            session.profile()
        session.run({"x": self.x})
        p = session.profile()
        self.assertGreater(len(p.nodes), 0)
        self.assertTrue(all(n["measured_seconds"] >= 0 for n in p.nodes))
        self.assertGreater(p.data["peak_bytes"], 0)
        self.assertIn("of values", str(p))
        self.assertIn("<table>", p._repr_html_())

    def test_refusals(self):
        session = onnx_tile.Session(self.model)
        cases = [("no input 'z'; it has 'x'", {"x": self.x, "z": self.x}, None), ("'x' is not given", {}, None), ("float32, not float64", {"x": self.x.astype("f8")}, None),
                 ("no output 'z'", {"x": self.x}, ["z"]), ("1 input$", [], None), ("feeds is a dict", None, None), ("feeds is a dict", "x", None)]
        for line, feeds, outputs in cases:
            with self.assertRaisesRegex(onnx_tile.UsageError, line):
                session.run(feeds, outputs)
        with self.assertRaises(onnx_tile.ModelError):
            session.run({"x": self.x[:, :2]})
        self.assertEqual(session.run({"x": self.x}, ["y"])[0].shape, self.x.shape)  # and goes on
        with self.assertRaisesRegex(onnx_tile.UsageError, "threads"):
            onnx_tile.Session(self.model, threads=0)
        with self.assertRaisesRegex(onnx_tile.ModelError, "conv0"):
            onnx_tile.Session(networks.broken())
        session.close()
        session.close()
        with self.assertRaisesRegex(onnx_tile.UsageError, "closed"):
            session.run({"x": self.x})

    def test_external_data_that_is_shortened(self):
        import onnx
        with tempfile.TemporaryDirectory() as folder:
            path, data = os.path.join(folder, "m.onnx"), os.path.join(folder, "w.bin")
            weights = np.ones((1, 3, 64, 48), np.float32)
            graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g",
                                           [onnx.helper.make_tensor_value_info("x", 1, weights.shape)],
                                           [onnx.helper.make_tensor_value_info("y", 1, weights.shape)],
                                           [onnx.numpy_helper.from_array(weights, "w")])
            model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
            onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
            session = onnx_tile.Session(path)
            self.assertTrue(same(session.run({"x": self.x})[0], self.x + 1))
            os.truncate(data, 4096)
            with self.assertRaisesRegex(onnx_tile.ModelError, "'w.bin' has become shorter"):
                session.run({"x": self.x})
            session.close()


if __name__ == "__main__":
    unittest.main()
