"""OnnxTile in a workflow of the released Olive: the model that it writes is tiled and the same function. Skipped without Olive, whose dependencies
(PyTorch) are 3 GB: pip install olive-ai beside the package, then test_olive alone."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

import networks
import numpy as np
import onnx
import onnxruntime as ort

try:
    import olive
    from olive.workflows import run as run_workflow
except ImportError:
    olive = None


@unittest.skipIf(olive is None, "without Olive")
class Olive(unittest.TestCase):
    def test_workflow(self):
        from onnx_tile.olive import package_config
        with tempfile.TemporaryDirectory() as folder:
            path = networks.path_of(networks.conv_chain(), folder, "chain")
            config = {"input_model": {"type": "ONNXModel", "model_path": path}, "output_dir": os.path.join(folder, "out"),
                      "cache_dir": os.path.join(folder, "cache"), "log_severity_level": 3,
                      "passes": {"peephole": {"type": "OnnxPeepholeOptimizer"},
                                 "tile": {"type": "OnnxTile", "goal": "memory", "target": "cpu-generic", "threads": 1, "force": True}}}
            run_workflow(config, package_config=package_config())
            made, = glob.glob(os.path.join(folder, "out", "**", "*.onnx"), recursive=True)
            self.assertGreater(len(onnx.load(made).graph.node), len(onnx.load(path).graph.node))
            x = {"x": np.random.default_rng(3).standard_normal((1, 3, 256, 256)).astype(np.float32)}
            a, b = (ort.InferenceSession(p).run(None, x)[0] for p in (path, made))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_for_the_command(self):
        told = subprocess.run([sys.executable, "-m", "onnx_tile.olive"], capture_output=True, text=True, check=True).stdout
        self.assertIn("OnnxTile", json.loads(told)["passes"])
        self.assertIn("OnnxPeepholeOptimizer", json.loads(told)["passes"])


if __name__ == "__main__":
    unittest.main()
