"""session: the same results as a session of ONNX Runtime, in a process that holds less; models of each kind; what is none."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import onnx_tile
from networks import conv_chain

MB = 1 << 20
HOLDS = """
import sys, onnxruntime, onnx_tile
def held(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) << 10
before = held()
s = onnx_tile.session(sys.argv[1], threads=1) if sys.argv[2] == "ours" else onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(held() - before)
"""


def heavy(path, layers=10):
    """Convolutions of 2.3 MB of weights each over a small picture."""
    rng, nodes, weights, value = np.random.default_rng(5), [], [], "x"
    for k in range(layers):
        weights.append(numpy_helper.from_array((rng.standard_normal((256, 256, 3, 3)) / 48).astype(np.float32), f"w{k}"))
        nodes.append(helper.make_node("Conv", [value, f"w{k}"], ["y" if k + 1 == layers else f"v{k}"], pads=[1, 1, 1, 1]))
        value = f"v{k}"
    shape = [1, 256, 4, 4]
    graph = helper.make_graph(nodes, "heavy", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Session(unittest.TestCase):
    def test_results(self):
        """Of a path, bytes and a proto, tiled or not, with options of the caller's."""
        model = conv_chain(64, 64)
        x = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
        want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chain.onnx")
            onnx.save(model, path)
            tiled, _ = onnx_tile.tile(model, force=True)
            for source in (path, model.SerializeToString(), model, tiled):
                options = ort.SessionOptions()
                options.intra_op_num_threads = 2
                got = onnx_tile.session(source, options=options).run(None, {"x": x})[0]
                np.testing.assert_allclose(got, want, atol=1e-5)
                self.assertFalse(options.enable_mem_pattern)
                self.assertEqual(options.intra_op_num_threads, 2)

    @unittest.skipUnless(sys.platform.startswith("linux") and os.path.exists("/proc/self/status"), "needs /proc")
    def test_process(self):
        """Ten weights of 2.3 MB: what loading frees goes back to the system."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "heavy.onnx")
            heavy(path)
            # as Python is started by users: hosts of other tests tell the processes below them how to allocate
            plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
            held = {who: int(subprocess.run([sys.executable, "-c", HOLDS, path, who], check=True, capture_output=True, text=True, env=plain).stdout)
                    for who in ("ours", "stock")}
            self.assertLess(held["ours"], held["stock"] - 10 * MB, held)

    def test_refusals(self):
        with self.assertRaisesRegex(onnx_tile.UsageError, "threads=-1"):
            onnx_tile.session(conv_chain(64, 64), threads=-1)
        with self.assertRaisesRegex(onnx_tile.UsageError, "a model is a path, bytes or"):
            onnx_tile.session(7)
        with self.assertRaises(Exception) as caught:
            onnx_tile.session("absent.onnx")
        self.assertIn("absent.onnx", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
