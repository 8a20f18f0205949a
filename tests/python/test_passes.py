"""Passes: networks with normalisations and global pools over files that are cut give what the whole gives; killed runs go on; refusals."""
import contextlib
import io
import json
import os
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import onnx_tile
from onnx_tile import large
from onnx_tile.large import _command

try:
    import dask.array as da
except ImportError:
    da = None

TOLERANCE = 1e-6  # of the range


def style(channels=8, seed=1):
    """A convolution and its norm, one of half the size and its norm beside a gate, and up again, beside what was before."""
    rng = np.random.default_rng(seed)
    weights = {"a": rng.normal(0, .2, (channels, 3, 3, 3)), "b": rng.normal(0, .15, (channels, channels, 3, 3)), "c": rng.normal(0, .2, (channels, channels, 1, 1)),
               "d": rng.normal(0, .2, (channels, 3, 4, 4)), "s": rng.uniform(.5, 1.5, channels), "t": rng.normal(0, .3, channels)}
    nodes = [helper.make_node("Conv", ["x", "a"], ["p"], pads=[1] * 4), helper.make_node("InstanceNormalization", ["p", "s", "t"], ["q"], name="first"),
             helper.make_node("Relu", ["q"], ["r"]), helper.make_node("Conv", ["r", "b"], ["u"], pads=[1] * 4, strides=[2, 2]),
             helper.make_node("InstanceNormalization", ["u", "t", "s"], ["v"], name="second"), helper.make_node("GlobalAveragePool", ["u"], ["m"]),
             helper.make_node("Conv", ["m", "c"], ["n"]), helper.make_node("Sigmoid", ["n"], ["g"]), helper.make_node("Mul", ["v", "g"], ["w"]),
             helper.make_node("ConvTranspose", ["w", "d"], ["z"], strides=[2, 2], pads=[1] * 4), helper.make_node("Add", ["z", "x"], ["y"])]
    return model_of(nodes, weights)


def attention():
    """Every pixel meets every other."""
    nodes = [helper.make_node("Reshape", ["x", "flat"], ["f"]), helper.make_node("Transpose", ["f"], ["k"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["k", "f"], ["p"], name="pairs"), helper.make_node("Softmax", ["p"], ["w"], axis=2),
             helper.make_node("MatMul", ["f", "w"], ["o"]), helper.make_node("Shape", ["x"], ["e"]), helper.make_node("Reshape", ["o", "e"], ["r"]),
             helper.make_node("GlobalAveragePool", ["r"], ["m"]), helper.make_node("Sub", ["r", "m"], ["y"])]
    return model_of(nodes, {"flat": np.array([0, 3, -1])})


def model_of(nodes, weights):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "h", "w"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, "h", "w"])],
                              [numpy_helper.from_array(v.astype("f4") if v.dtype == np.float64 else v, n) for n, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def whole(model, x):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


class Stop(Exception):
    """A run ends in the middle."""


class Passes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.model = style()
        self.x = np.random.default_rng(2).normal(.5, 1, (3, 210, 170)).astype("f4")
        self.want = whole(self.model, self.x[None])[0]

    def near(self, y):
        self.assertEqual((y.shape, y.dtype), (self.want.shape, self.want.dtype))
        self.assertLess(float(np.abs(y - self.want).max()) / float(np.ptp(self.want)), TOLERANCE)

    def test_models_and_plan(self):
        plan = onnx_tile.passes(self.model, "p", shapes={"x": (1, *self.x.shape)})
        self.assertEqual([m["model"] for m in plan["passes"]], ["pass_1.onnx", "pass_2.onnx", "final.onnx"])
        self.assertEqual([(s["pass"], s["kind"], s["numbers"]) for s in plan["statistics"]], [(1, "moments", 8), (2, "mean", 8), (2, "moments", 8)])
        with open("p/plan.json", encoding="utf-8") as f:
            self.assertEqual(json.load(f), plan)
        with self.assertRaisesRegex(onnx_tile.ModelError, "node 'pairs' .MatMul., attention: .*as it was trained"):
            onnx_tile.passes(attention(), "none", shapes={"x": (1, 3, 32, 32)})
        self.assertFalse(os.path.exists("none"))

    def test_chunks_and_workers(self):
        results = []
        for more in ({"chunk": 50, "workers": 0}, {"chunk": (64, 37), "workers": 0, "tiled": False}, {"workers": 0}, {"chunk": 50, "workers": 2}):
            done = large.apply(self.model, self.x, **more)
            self.assertEqual(done.passes, 2)
            self.near(done.target)
            results.append(done.target)
        np.testing.assert_array_equal(results[0].view("u4"), results[3].view("u4"))
        self.assertIn("after 2 passes", str(done))
        self.near(large.apply(self.model, self.x, workers=0, chunk=60, runtime="engine").target)

    def test_elements_are_converted(self):
        bytes_ = np.random.default_rng(3).integers(0, 255, self.x.shape, np.uint8)
        self.want = whole(self.model, (bytes_.astype("f4") * np.float32(1 / 255))[None])[0]
        self.near(large.apply(self.model, bytes_, workers=0, chunk=64, scale=1 / 255).target)

    def test_no_budget(self):
        with self.assertRaisesRegex(onnx_tile.BudgetError, "a worker needs"):
            large.apply(self.model, self.x, workers=0, budget="1MB")

    def run_until(self, number, chunks, **more):
        """Stop behind so many chunks of a pass."""
        def progress(p):
            self.assertEqual(p.of, 3)
            if (p.number, p.chunks) == (number, chunks):
                raise Stop
        with self.assertRaises(Stop):
            large.apply(self.model, "x.npy", "y.npy", workers=0, chunk=50, progress=progress, **more)

    def test_killed_runs(self):
        np.save("x.npy", self.x)
        for number, chunks in ((1, 3), (2, 5), (3, 2)):
            self.run_until(number, chunks)
            self.assertFalse(os.path.exists("y.npy"))
            seen = []
            with self.assertRaisesRegex(onnx_tile.UsageError, "begun with another model"):
                large.apply(style(seed=4), "x.npy", "y.npy", workers=0)
            np.save("x2.npy", self.x)
            with self.assertRaisesRegex(onnx_tile.UsageError, "begun with another source"):
                large.apply(self.model, "x2.npy", "y.npy", workers=0)
            done = large.apply(self.model, "x.npy", "y.npy", workers=0, progress=seen.append)
            self.assertEqual((seen[0].number, seen[0].chunks), (number, chunks + 1))
            self.assertEqual([p.number for p in seen], sorted(p.number for p in seen))
            self.assertEqual(done.chunk, (50, 50) if number == 3 else done.chunk)
            self.near(np.load("y.npy"))
            self.assertEqual(sorted(os.listdir("y.npy.onnx-tile")), ["manifest.jsonl", "numbers.jsonl"])
            self.assertEqual(large.apply(self.model, "x.npy", "y.npy", workers=0).done_before, done.chunks)
            os.remove("y.npy")
            for name in os.listdir("y.npy.onnx-tile"):
                os.remove(os.path.join("y.npy.onnx-tile", name))

    def values(self):
        """Files of values that passes have written."""
        return [n for n in os.listdir("y.npy.onnx-tile") if n.startswith("value_")]

    def test_values_that_are_stored(self):
        plan = onnx_tile.passes(self.model, "p", shapes={"x": (1, *self.x.shape)}, store="always")
        self.assertEqual([(s["value"], s["pass"], s["shape"]) for s in plan["stored"]], [("p", 1, [1, 8, 210, 170]), ("u", 2, [1, 8, 105, 85])])
        self.assertEqual([sorted({*m["inputs"]} & {"x", "p", "u"}) for m in plan["passes"]], [["x"], ["p"], ["u", "x"]])
        np.save("x.npy", self.x)
        for more in ({"chunk": 50, "workers": 0}, {"chunk": (64, 37), "workers": 0, "tiled": False}, {"workers": 2}):
            done = large.apply(self.model, "x.npy", "y.npy", store="always", resume=False, **more)
            self.assertEqual(done.stored_bytes, 4 * 8 * (210 * 170 + 105 * 85))
            self.assertIn("after 2 passes that wrote", str(done))
            self.near(np.load("y.npy"))
            self.assertEqual(self.values(), [])
        self.near(large.apply(self.model, self.x, workers=0, chunk=61, store="always").target)
        self.assertEqual(large.apply(self.model, self.x, workers=0, store="never").stored_bytes, 0)
        with self.assertRaisesRegex(onnx_tile.UsageError, "store 'some': use 'never', 'auto' or 'always'"):
            large.apply(self.model, self.x, workers=0, store="some")

    def test_inputs_alone_are_converted(self):
        bytes_ = np.random.default_rng(3).integers(0, 255, self.x.shape, np.uint8)
        self.want = whole(self.model, (bytes_.astype("f4") * np.float32(1 / 255))[None])[0]
        self.near(large.apply(self.model, bytes_, workers=0, chunk=64, scale=1 / 255, store="always").target)

    def test_killed_runs_that_store(self):
        np.save("x.npy", self.x)
        for number, chunks, left in ((1, 3, 1), (2, 5, 2), (3, 2, 1)):
            self.run_until(number, chunks, store="always")
            self.assertEqual(len(self.values()), left)  # the first one goes when the second pass is over
            with self.assertRaisesRegex(onnx_tile.UsageError, "begun with another choice of store="):
                large.apply(self.model, "x.npy", "y.npy", workers=0, store="never")
            seen = []
            large.apply(self.model, "x.npy", "y.npy", workers=0, store="always", progress=seen.append)
            self.assertEqual((seen[0].number, seen[0].chunks), (number, chunks + 1))
            self.near(np.load("y.npy"))
            self.assertEqual(self.values(), [])
            os.remove("y.npy")
            for name in os.listdir("y.npy.onnx-tile"):
                os.remove(os.path.join("y.npy.onnx-tile", name))

    def test_values_that_are_lost(self):
        np.save("x.npy", self.x)
        self.run_until(2, 1, store="always")
        for name in self.values():
            os.remove(os.path.join("y.npy.onnx-tile", name))
        seen = []
        large.apply(self.model, "x.npy", "y.npy", workers=0, store="always", progress=seen.append)
        self.assertEqual((seen[0].number, seen[0].chunks), (1, 1))
        self.near(np.load("y.npy"))

    def test_auto_goes_on_as_it_began(self):
        np.save("x.npy", self.x)
        self.run_until(2, 1, store="never")
        large.apply(self.model, "x.npy", "y.npy", workers=0, store="auto")
        self.near(np.load("y.npy"))

    def test_torn_numbers(self):
        np.save("x.npy", self.x)
        self.run_until(1, 3)
        with open("y.npy.onnx-tile/numbers.jsonl", "a", encoding="ascii") as f:
            f.write('{"chunk": 3, "num')
        large.apply(self.model, "x.npy", "y.npy", workers=0)
        self.near(np.load("y.npy"))

    def test_begun_anew(self):
        np.save("x.npy", self.x)
        self.run_until(2, 1)
        seen = []
        large.apply(self.model, "x.npy", "y.npy", workers=0, chunk=90, resume=False, progress=seen.append)
        self.assertEqual((seen[0].number, seen[0].chunks), (1, 1))
        self.near(np.load("y.npy"))

    def test_command(self):
        np.save("x.npy", self.x)
        with open("m.onnx", "wb") as f:
            f.write(self.model.SerializeToString())
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(_command.main(["m.onnx", "x.npy", "y.npy", "--workers", "0", "--chunk", "70"]), 0)
        self.assertIn("after 2 passes", out.getvalue())
        self.near(np.load("y.npy"))

    def test_classifiers(self):
        """An output that follows no axis: of a pooled value."""
        rng = np.random.default_rng(5)
        nodes = [helper.make_node("Conv", ["x", "a"], ["p"], pads=[1] * 4), helper.make_node("InstanceNormalization", ["p", "s", "t"], ["q"]),
                 helper.make_node("Relu", ["q"], ["r"]), helper.make_node("GlobalAveragePool", ["r"], ["m"]), helper.make_node("Flatten", ["m"], ["f"]),
                 helper.make_node("MatMul", ["f", "b"], ["y"])]
        model = model_of(nodes, {"a": rng.normal(0, .2, (8, 3, 3, 3)), "s": rng.uniform(.5, 1.5, 8), "t": rng.normal(0, .3, 8), "b": rng.normal(0, 1, (8, 5))})
        del model.graph.output[0].type.tensor_type.shape.dim[2:]
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 5
        self.want = whole(model, self.x[None])[0]
        np.save("x.npy", self.x)
        for more in ({"chunk": 50, "workers": 0}, {"chunk": (64, 37), "workers": 0, "store": "always"}, {"workers": 2}):
            done = large.apply(model, "x.npy", "y.npy", resume=False, **more)
            self.near(np.load("y.npy"))
            self.assertIn("an output without rows, after 2 passes", str(done))
        self.assertEqual(large.apply(model, "x.npy", "y.npy", workers=0).done_before, 1)
        with self.assertRaisesRegex(onnx_tile.UsageError, "chunk: 3 numbers, the output is cut along 2 axes"):
            large.apply(model, self.x, workers=0, chunk=(1, 2, 3))
        with self.assertRaisesRegex(onnx_tile.UsageError, "a TIFF has rows and columns, the result 1 dimension"):
            large.apply(model, self.x, "y.tif", workers=0)

    def test_refused(self):
        x = np.zeros((3, 24, 24), "f4")
        with self.assertRaisesRegex(onnx_tile.UsageError, "node 'pairs' .MatMul., attention: .*as it was trained"):
            large.apply(attention(), x, "y.npy", workers=0)
        with self.assertRaisesRegex(onnx_tile.UsageError, "chunk: 3 numbers"):
            large.apply(self.model, self.x, workers=0, chunk=(1, 2, 3))
        self.assertEqual(os.listdir("."), [])

    @unittest.skipIf(da is None, "without Dask")
    def test_lazily_it_is_refused(self):
        with self.assertRaisesRegex(onnx_tile.UsageError, "as apply does in passes"):
            large.map_array(self.model, da.from_array(self.x, chunks=(3, 64, 64)))


if __name__ == "__main__":
    unittest.main()
