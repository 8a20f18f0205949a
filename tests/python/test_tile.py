"""tile, inspect and explain: forms of models, results, reports, options, exceptions."""
import os
import pathlib
import tempfile
import unittest
from xml.dom import minidom

import networks
import numpy as np
import onnx
from onnx import helper, numpy_helper

import onnx_tile

OPTIONS = {"fast_memory": "64K", "target": "cpu-generic", "threads": 1, "force": True}


class Tile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = networks.conv_chain()
        cls.path = networks.path_of(cls.model, cls.folder.name, "chain")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_form_gives_the_same_model(self):
        out = pathlib.Path(self.folder.name) / "tiled.onnx"
        given, result = onnx_tile.tile(self.path, out, **OPTIONS)
        self.assertEqual(given, out)
        self.assertGreater(len(result.regions), 0)
        content = self.model.SerializeToString()
        for model in (self.path, content, bytearray(content), memoryview(content)):
            tiled, _ = onnx_tile.tile(model, **OPTIONS)
            self.assertIsInstance(tiled, bytes)
            self.assertEqual(tiled, out.read_bytes())
        proto, _ = onnx_tile.tile(self.model, **OPTIONS)
        self.assertIsInstance(proto, onnx.ModelProto)
        self.assertEqual(proto.SerializeToString(deterministic=True), onnx.load(out).SerializeToString(deterministic=True))
        self.assertEqual(content, self.model.SerializeToString(), "the given model was changed")
        onnx.checker.check_model(proto, full_check=True)

    def test_result_tells_what_the_program_tells(self):
        result = onnx_tile.inspect(self.path, **OPTIONS)
        self.assertIn("peak memory", str(result))
        self.assertIn("r0", str(result))
        self.assertGreater(result.after["macs"], result.before["macs"])  # halos
        self.assertAlmostEqual(result.peak_ratio, result.after["peak_bytes"] / result.before["peak_bytes"])
        self.assertGreater(result.time_ratio, 0)
        self.assertEqual(result.regions[0]["nodes"][0], "conv0")
        self.assertIn("regions", repr(result))
        page = result._repr_html_()
        minidom.parseString(page)  # well formed
        self.assertIn("conv0 .. ", page)

    def test_names_are_escaped_in_notebooks(self):
        model = networks.conv_chain(64, 64)
        model.graph.node[0].name = '<script>"&'
        page = onnx_tile.inspect(model, **OPTIONS)._repr_html_()
        minidom.parseString(page)
        self.assertNotIn("<script>", page)

    def test_nothing_worth_tiling_is_no_failure(self):
        model = networks.conv_chain(8, 8)
        tiled, result = onnx_tile.tile(model)
        self.assertEqual(result.regions, [])
        self.assertEqual([n.op_type for n in tiled.graph.node], [n.op_type for n in model.graph.node])

    def test_page_of_an_explanation(self):
        e = onnx_tile.explain(self.path, target="cpu-generic", fast_memory=65536, threads=1)
        page = e._repr_html_()
        minidom.parseString(page)
        for text in ("alive when most is", e.alive[0]["value"], f"<pre>{e.command.replace('&', '&amp;')}</pre>"):
            self.assertIn(text, page)
        self.assertNotIn("working set", page, "the page of a Result")

    def test_plans_are_those_of_the_file_that_is_written(self):
        """Weights lie beside a file, and what the process holds differs: what was planned and what is written must be one."""
        model = networks.conv_chain(256, 256)
        w = np.ones((512, 1024), np.float32)
        model.graph.initializer.append(numpy_helper.from_array(w, "large"))
        model.graph.node.append(helper.make_node("MatMul", ["vector", "large"], ["product"]))
        model.graph.input.append(helper.make_tensor_value_info("vector", onnx.TensorProto.FLOAT, [1, 512]))
        model.graph.output.append(helper.make_tensor_value_info("product", onnx.TensorProto.FLOAT, [1, 1024]))
        with tempfile.TemporaryDirectory() as folder:
            _, written = onnx_tile.tile(model, os.path.join(folder, "o.onnx"), **OPTIONS)
            _, whole = onnx_tile.tile(model, os.path.join(folder, "p.onnx"), single_file=True, **OPTIONS)
        self.assertNotEqual(written.after["process_bytes"], whole.after["process_bytes"])
        for plan in (onnx_tile.inspect, onnx_tile.explain):
            options = {k: v for k, v in OPTIONS.items() if plan is onnx_tile.inspect or k != "force"}
            if plan is onnx_tile.inspect:
                self.assertEqual(plan(model, **options).after, written.after)
                self.assertEqual(plan(model, single_file=True, **options).after, whole.after)
            else:
                self.assertNotIn("--single-file", plan(model, **options).command or "")

    def test_barriers_that_are_alike_are_one_line(self):
        model = networks.conv_chain(64, 64)
        names = [model.graph.output[0].name, *(f"own{k}" for k in range(8))]
        model.graph.node.extend(helper.make_node("Own", [names[k]], [names[k + 1]], name=f"own{k}", domain="own") for k in range(8))
        model.graph.output[0].name = names[-1]
        model.opset_import.append(helper.make_opsetid("own", 1))
        result = onnx_tile.inspect(model, **OPTIONS)
        kinds = {(b["op"], b["reason"]) for b in result.barriers}
        page = result._repr_html_()
        table = page[page.rindex("<table>"):]
        self.assertLess(len(kinds), len(result.barriers))
        self.assertEqual(table.count("<tr>"), 1 + len(kinds))

    def test_explain(self):
        e = onnx_tile.explain(self.path, target="cpu-generic", fast_memory=65536, threads=1)
        self.assertIn("Untiled, the process grows", str(e))
        self.assertGreater(e.alive[0]["bytes"], 0)
        self.assertIsInstance(e.obstacles, list)
        if e.command is not None:
            self.assertIn("onnx-tile", e.command)

    def test_reports(self):
        names = [os.path.join(self.folder.name, "r" + end) for end in (".html", ".xml", ".json", ".csv")]
        onnx_tile.tile(self.path, report=names, **OPTIONS)
        for name in names:
            self.assertGreater(os.path.getsize(name), 100, name)
        minidom.parse(names[1])
        onnx_tile.inspect(self.path, report=pathlib.Path(names[0]), **OPTIONS)
        with self.assertRaisesRegex(onnx_tile.UsageError, "ends in .html, .xml, .json or .csv"):
            onnx_tile.inspect(self.path, report="r.pdf")

    def test_free_dimensions(self):
        model = networks.conv_chain(rows="height")
        tiled, result = onnx_tile.tile(model, shapes={"x": (1, 3, 512, 256)}, **OPTIONS)
        self.assertEqual(tiled.graph.input[0].type.tensor_type.shape.dim[2].dim_value, 512)
        self.assertGreater(len(result.regions), 0)
        tiled, result = onnx_tile.tile(model, design={"x": [1, 3, 512, 256]}, **OPTIONS)
        self.assertEqual(tiled.graph.input[0].type.tensor_type.shape.dim[2].dim_param, "height")
        self.assertTrue(result.data["dynamic_dims"])

    def test_ranges_are_proved(self):
        model = networks.conv_chain(rows="height")
        result = onnx_tile.inspect(model, ranges={"x": (1, 3, (64, 256, 32), 256)})
        self.assertEqual(result.data["range"]["tiled"]["verdict"], "proved")
        tiled, result = onnx_tile.tile(model, ranges={"x": (1, 3, (64, 255, 64), 256)}, **OPTIONS)
        self.assertEqual(result.data["range"]["untiled"]["peak_at"], "1x3x192x256")   # the largest that the steps reach
        self.assertEqual(tiled.graph.input[0].type.tensor_type.shape.dim[2].dim_param, "height")
        for wrong in ({"x": (1, 3, (64,), 256)}, {"x": (1, 3, (256, 64), 256)}, {"x": (1, 3, (0, 64), 256)}, {"x": 4}, (1, 3)):
            with self.assertRaises(onnx_tile.UsageError):
                onnx_tile.inspect(model, ranges=wrong)
        with self.assertRaises(onnx_tile.BudgetError):
            onnx_tile.inspect(model, ranges={"x": (1, 3, (64, 256), 256)}, budget="1M")

    def test_a_result_is_verified(self):
        _, result = onnx_tile.tile(networks.conv_chain(), verify=True, **OPTIONS)
        self.assertGreater(len(result.regions), 0)
        unknown = networks.conv_chain()
        unknown.graph.node[-1].op_type = "Enigma"
        with self.assertRaisesRegex(onnx_tile.ModelError, "Enigma"):
            onnx_tile.tile(unknown, verify=True)

    def test_a_guessed_size_is_told_by_arguments(self):
        _, result = onnx_tile.tile(networks.conv_chain(rows="height"), **OPTIONS)
        self.assertIn("(design says another, shapes fixes one)", str(result))
        self.assertRegex(repr(result), "^<onnx_tile.Result: [0-9]+ regions?, process .* -> .*>$")


class Errors(unittest.TestCase):
    def raises(self, kind, code, line, call):
        with self.assertRaisesRegex(kind, line) as caught:
            call()
        self.assertEqual(caught.exception.exit_code, code)
        self.assertIsInstance(caught.exception, onnx_tile.Error)
        self.assertNotIn("\n", str(caught.exception))

    def test_each_exit_code_has_its_exception(self):
        small = networks.conv_chain(16, 16)
        with tempfile.TemporaryDirectory() as folder:
            self.raises(onnx_tile.ModelError, 1, "conv0", lambda: onnx_tile.tile(networks.broken()))
            self.raises(onnx_tile.ModelNotFound, 1, "absent.onnx", lambda: onnx_tile.tile(folder + "/absent.onnx"))
            self.raises(onnx_tile.ModelNotFound, 1, "absent.onnx", lambda: onnx_tile.Session(folder + "/absent.onnx"))
            for wrong in ({"max_slowdown": "much"}, {"threads": "all"}, {"threads": 1.5}, {"runtime": 5}, {"shapes": {"x": "1,3"}}, {"shapes": {"x": 4}},
                          {"shapes": {5: [1]}}, {"budget": [1]}, {"budget": True}):
                self.raises(onnx_tile.UsageError, 2, "", lambda: onnx_tile.tile(small, **wrong))
            self.raises(onnx_tile.UsageError, 2, "^shapes z:", lambda: onnx_tile.tile(small, shapes={"z": [1]}))
            self.raises(onnx_tile.ModelError, 1, "", lambda: onnx_tile.inspect(b"no model at all"))
            self.raises(onnx_tile.UsageError, 2, "no target|nope", lambda: onnx_tile.tile(small, target="nope"))
            self.raises(onnx_tile.UsageError, 2, "no runtime 'nope'", lambda: onnx_tile.tile(small, runtime="nope"))
            self.raises(onnx_tile.UsageError, 2, "goal", lambda: onnx_tile.tile(small, goal="fun"))
            self.raises(onnx_tile.UsageError, 2, "slowdown", lambda: onnx_tile.tile(small, max_slowdown=-1))
            self.raises(onnx_tile.UsageError, 2, "no size", lambda: onnx_tile.tile(small, budget="much"))
            self.raises(onnx_tile.UsageError, 2, "z: the model has no input", lambda: onnx_tile.tile(small, shapes={"z": [1]}))
            self.raises(onnx_tile.UsageError, 2, "not int", lambda: onnx_tile.tile(5))
            self.raises(onnx_tile.BudgetError, 3, "required", lambda: onnx_tile.tile(small, budget=1000))
            for wrong in ((1, 3, 16, 16), "x=1,3,16,16"):
                for call in (onnx_tile.tile, onnx_tile.geometry, onnx_tile.Session):
                    self.raises(onnx_tile.UsageError, 2, "^shapes .*: use a dict", lambda: call(small, shapes=wrong))
            for size in (2**63, -2**63 - 1, 10**30):
                self.raises(onnx_tile.UsageError, 2, "below 2\\*\\*63", lambda: onnx_tile.tile(small, budget=size))
                self.raises(onnx_tile.UsageError, 2, "below 2\\*\\*63", lambda: onnx_tile.tile(small, shapes={"x": [size]}))
            free, unranked = networks.conv_chain(rows="height"), networks.conv_chain(32, 32)
            unranked.graph.input[0].type.tensor_type.ClearField("shape")
            self.raises(onnx_tile.BudgetError, 3, "required", lambda: onnx_tile.tile(free, budget="1M"))
            self.raises(onnx_tile.BudgetError, 3, "input 'x'", lambda: onnx_tile.tile(unranked, budget="100G"))
            self.assertIn("input 'x'", onnx_tile.tile(unranked, budget="100G", best_effort=True)[1].data["missed"])
            self.raises(onnx_tile.SystemFailure, 4, "nowhere", lambda: onnx_tile.tile(small, folder + "/nowhere/x.onnx"))
            self.assertEqual(os.listdir(folder), [])

    def test_they_are_what_python_expects(self):
        self.assertTrue(issubclass(onnx_tile.UsageError, ValueError))
        self.assertTrue(issubclass(onnx_tile.ModelNotFound, FileNotFoundError))
        self.assertTrue(issubclass(onnx_tile.SystemFailure, OSError))
        self.assertTrue(issubclass(onnx_tile.OutOfMemory, MemoryError))


if __name__ == "__main__":
    unittest.main()
