"""geometry: crops of a network with an odd extent are the whole, to the bit; depth as Dask's map_overlap takes it; failures."""
import os
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import onnx_tile


def network(size=("h", "w")):
    """Convolutions, one of stride 2 with padding that depends on the extent, and back to the rows of the input by Resize and a cut."""
    rng = np.random.default_rng(4)
    inits = {n: rng.normal(0, .3, s).astype("f4") for n, s in (("a", (4, 2, 5, 5)), ("b", (4, 4, 3, 3)), ("c", (2, 4, 3, 3)))}
    inits.update(scales=np.array([1, 1, 2, 2], "f4"), begin=np.zeros(2, "i8"), axes=np.array([2, 3]), two=np.array([2]), four=np.array([4]))
    nodes = [helper.make_node("Conv", ["x", "a"], ["p"], pads=[2] * 4),
             helper.make_node("Conv", ["p", "b"], ["q"], strides=[2, 2], auto_pad="SAME_UPPER"),
             helper.make_node("Resize", ["q", "", "scales"], ["r"], mode="linear"),
             helper.make_node("Shape", ["x"], ["all"]), helper.make_node("Slice", ["all", "two", "four"], ["end"]),
             helper.make_node("Slice", ["r", "begin", "end", "axes"], ["s"]),
             helper.make_node("Conv", ["s", "c"], ["y"], pads=[1] * 4)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, *size])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, None, None])],
                              [numpy_helper.from_array(v, n) for n, v in inits.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Geometry(unittest.TestCase):
    def setUp(self):
        self.model = network()
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.run_model = lambda x: session.run(None, {"x": np.ascontiguousarray(x)})[0]

    def test_crops_are_the_whole(self):
        for size in ((61, 84), (64, 97)):
            x = np.random.default_rng(5).normal(0, 1, (1, 2, *size)).astype("f4")
            whole, joined = self.run_model(x), np.zeros_like(x)
            for g in (onnx_tile.geometry(self.model, shapes={"x": x.shape}), onnx_tile.geometry(self.model)):
                for top in range(0, size[0], 20):
                    for left in range(0, size[1], 31):
                        lo, hi = (top, left), (min(top + 20, size[0]), min(left + 31, size[1]))
                        crop = g.crop(lo, hi, size)
                        part = self.run_model(x[(..., *crop.input)])
                        joined[..., lo[0]:hi[0], lo[1]:hi[1]] = part[(..., *crop.result)]
                np.testing.assert_array_equal(joined.view("u4"), whole.view("u4"))

    def test_one_axis(self):
        g = onnx_tile.geometry(self.model)
        self.assertEqual(g.crop(0, 10, 60), g.crop(0, 10, 60, axis=2))
        begin = g.crop(30, 40, 61, axis=3).input.start
        self.assertEqual(begin % g.pair()["axes"][1]["align"], 0)
        self.assertEqual(g.crop(30, 40, 61).result, slice(30 - begin, 40 - begin))
        self.assertIn("align 2", str(g))
        self.assertIn("0 nodes in the way", repr(g))
        self.assertEqual(g.bioimage["inputs"][0]["axes"][0]["step"], 2)

    def test_depth_is_what_overlapping_chunks_need(self):
        """What map_overlap does: chunks with so many rows more, less at the border, and as many cut off again."""
        x = np.random.default_rng(6).normal(0, 1, (1, 2, 83, 40)).astype("f4")
        whole, chunk = self.run_model(x), 16
        depth = onnx_tile.geometry(self.model).depth(x.shape[2:])
        front, behind = depth[2]
        for lo in range(0, 83, chunk):
            hi = min(lo + chunk, 83)
            begin, end = max(0, lo - front), min(83, hi + behind)
            part = self.run_model(x[:, :, begin:end])[:, :, lo - begin:hi - begin]
            np.testing.assert_array_equal(part.view("u4"), np.ascontiguousarray(whole[:, :, lo:hi]).view("u4"))

    def test_paths_and_failures(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            with open(path, "wb") as f:
                f.write(network((60, 90)).SerializeToString())
            g = onnx_tile.geometry(path)
            self.assertEqual(g.pair("y", "x")["axes"][1]["extent"], 90)
            with self.assertRaisesRegex(onnx_tile.UsageError, "an extent of 61 is not 0 modulo 2"):
                g.crop(0, 10, 61)
            for bad in ((5, 5, 60), (-1, 5, 60), (50, 61, 60)):
                with self.assertRaises(onnx_tile.UsageError):
                    g.crop(*bad)
            for bad in (lambda: g.crop((0,), (5,), (60,)), lambda: g.crop(0, 5, 60, axis=1), lambda: g.pair("z"), lambda: g.depth([60])):
                with self.assertRaises(onnx_tile.UsageError):
                    bad()
            with self.assertRaises(onnx_tile.UsageError):
                onnx_tile.geometry(path, shapes={"z": (1, 2, 3)})
        with self.assertRaises(onnx_tile.ModelError):
            onnx_tile.geometry(b"no model")

    def test_what_is_in_the_way(self):
        model = network()
        model.graph.node[-1].output[0] = "z"
        model.graph.node.append(helper.make_node("GlobalAveragePool", ["z"], ["y"], name="all"))
        g = onnx_tile.geometry(model)
        self.assertEqual({(b["node"], b["kind"]) for b in g.barriers}, {("all", "reduce")})
        with self.assertRaisesRegex(onnx_tile.UsageError, "node 'all' .GlobalAveragePool., reduce"):
            g.crop(0, 5, 60)


if __name__ == "__main__":
    unittest.main()
