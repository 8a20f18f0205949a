"""TilePass in the released onnx_ir: the same function after it, alone and behind other passes; what it is given stays; weights outlive its files."""
import os
import subprocess
import sys
import tempfile
import unittest

import networks
import numpy as np
import onnxruntime as ort

import onnx_tile

try:
    import onnx_ir as ir
    import onnx_ir.passes.common as common
except ImportError:
    ir = None

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "onnx_ir_pass.py")
OPTIONS = {"goal": "memory", "fast_memory": "64K", "target": "cpu-generic", "threads": 1, "force": True}


def run(proto, feeds):
    """Outputs in ONNX Runtime."""
    return ort.InferenceSession(proto.SerializeToString()).run(None, feeds)


@unittest.skipIf(ir is None, "without onnx_ir")
class Ir(unittest.TestCase):
    def setUp(self):
        from onnx_tile.ir import TilePass
        self.kind = TilePass
        self.proto = networks.conv_chain()
        self.feeds = {"x": np.random.default_rng(3).standard_normal((1, 3, 256, 256)).astype(np.float32)}

    def check_same(self, model):
        for a, b in zip(run(self.proto, self.feeds), run(ir.to_proto(model), self.feeds)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_alone(self):
        model = ir.from_proto(self.proto)
        before = ir.to_proto(model).SerializeToString(deterministic=True)
        tiling = self.kind(**OPTIONS)
        done = tiling(model)
        self.assertTrue(done.modified)
        self.assertGreater(len(tiling.result.regions), 0)
        self.assertIn("Slice", {n.op_type for n in done.model.graph.all_nodes()})
        self.check_same(done.model)
        self.assertEqual(ir.to_proto(model).SerializeToString(deterministic=True), before, "the given model was changed")

    def test_behind_others(self):
        first = common.CommonSubexpressionEliminationPass()
        done = ir.passes.Sequential(first, common.RemoveUnusedNodesPass(), self.kind(**OPTIONS))(ir.from_proto(self.proto))
        self.assertTrue(done.modified)
        self.check_same(done.model)

    def test_nothing_to_tile(self):
        done = self.kind()(ir.from_proto(networks.gathered()))
        self.assertFalse(done.modified)

    def test_weights_in_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            ir.save(ir.from_proto(self.proto), path, external_data="m.data", size_threshold_bytes=0)
            model = ir.load(path)
            done = self.kind(**OPTIONS)(model)
        self.check_same(done.model)  # its files and ours are gone

    def test_example(self):
        with tempfile.TemporaryDirectory() as folder:
            before, after = networks.path_of(self.proto, folder, "chain"), os.path.join(folder, "tiled.onnx")
            told = subprocess.run([sys.executable, EXAMPLE, before, after], capture_output=True, text=True, check=True).stdout
            self.assertRegex(told, "^chain for onnxruntime on host.*\n")
            self.check_same(ir.load(after))

    def test_what_is_refused(self):
        with self.assertRaisesRegex(onnx_tile.UsageError, "'out' is no option of a pass"):
            self.kind(out="x.onnx")
        with self.assertRaises(onnx_tile.UsageError):
            self.kind(goal="speed")(ir.from_proto(self.proto))


if __name__ == "__main__":
    unittest.main()
