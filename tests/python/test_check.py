"""check: what is the same, what differs, what it takes."""
import tempfile
import unittest

import networks
import numpy as np
from onnx import numpy_helper

import onnx_tile


class Check(unittest.TestCase):
    def test_a_tiled_model_is_the_same_and_takes_less(self):
        model = networks.conv_chain(768, 768, 24)
        tiled, result = onnx_tile.tile(model, goal="memory", threads=1, max_slowdown=10.0)
        self.assertGreater(len(result.regions), 0)
        c = onnx_tile.check(model, tiled, rounds=1)
        self.assertTrue(c.same and c, str(c))
        self.assertLess(c.memory_ratio, 0.8)
        self.assertGreater(c.time_ratio, 0)
        self.assertIn("outputs: the same", str(c))
        self.assertIn("same", repr(c))
        self.assertIn("<table>", c._repr_html_())

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

    def test_what_cannot_be_compared(self):
        model, other = networks.conv_chain(16, 16), networks.conv_chain(16, 16)
        other.graph.output[0].name = other.graph.node[-1].output[0] = "z"
        with self.assertRaisesRegex(onnx_tile.ModelError, "differ"):
            onnx_tile.check(model, other)
        with self.assertRaisesRegex(onnx_tile.ModelError, "after: "):
            onnx_tile.check(model, networks.broken())
        with self.assertRaisesRegex(onnx_tile.UsageError, "runtime 'nope'"):
            onnx_tile.check(model, model, runtime="nope")
        with self.assertRaisesRegex(onnx_tile.UsageError, "rounds"):
            onnx_tile.check(model, model, rounds=0)

    def test_free_dimensions(self):
        model = networks.conv_chain(rows="height", width=32)
        c = onnx_tile.check(model, model, shapes={"x": [1, 3, 40, 32]}, rounds=1)
        self.assertTrue(c)


if __name__ == "__main__":
    unittest.main()
