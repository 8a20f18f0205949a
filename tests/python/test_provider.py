"""The engine as an execution provider of ONNX Runtime: models as they are, in each release that has the interface."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import networks
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onnx_tile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples", "provider")
RUNTIME = glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.so.*"))
VERSION = tuple(int(x) for x in onnxruntime.__version__.split(".")[:2])
MIXES = onnxruntime.__version__ != "1.23.0"  # 1.23.0 gives all of a graph to the provider, or nothing
BY_NAME = (1, 25)  # releases that take the provider by its name


def processor(model, options=None):
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def provided(model, options=None, **more):
    """A session on the provider, that fails where ONNX Runtime would go on without it."""
    options = options or onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model if isinstance(model, (str, bytes)) else model.SerializeToString(),
                                           onnx_tile.add_ep(options, **{"threads": 1, **more}), enable_fallback=0)
    if session.get_providers()[0] != "OnnxTile":
        raise AssertionError("ONNX Runtime went on without the provider")
    return session


def taken(model, folder, feeds=None):
    """Operators of the graph that ONNX Runtime runs, in order; the provider's parts as "part"."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(folder, "profile")
    session = provided(model, options)
    session.run(None, feeds)
    with open(session.end_profiling(), encoding="utf-8") as f:
        events = json.load(f)
    kinds = [e["args"]["op_name"] for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    return ["part" if k.startswith("OnnxTile") else k for k in kinds]


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-4, atol=1e-5)


@unittest.skipIf(VERSION < (1, 23), "no interface for providers in libraries")
class Provider(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = networks.conv_chain(64, 48)
        self.x = np.random.default_rng(1).random((1, 3, 64, 48), np.float32)
        self.y, = processor(self.model).run(None, {"x": self.x})

    def test_runs_the_original_model(self):
        for more in ({}, {"goal": "time"}, {"goal": "memory", "threads": 2}, {"budget": "512M"}, {"max_slowdown": 0.5}):
            session = provided(self.model, **more)
            for k in range(3):
                want, = processor(self.model).run(None, {"x": self.x * k})
                self.assertTrue(same(session.run(None, {"x": self.x * k})[0], want), more)

    def test_all_of_it_is_one_part(self):
        self.assertEqual(taken(self.model, self.folder, {"x": self.x}), ["part"])

    @unittest.skipIf(VERSION < BY_NAME, "this release does not take it by name")
    def test_by_name(self):
        self.assertEqual(onnx_tile.register_ep(), "OnnxTile")
        onnx_tile.register_ep()
        session = onnxruntime.InferenceSession(self.model.SerializeToString(),
                                               providers=[("OnnxTile", {"goal": "time"}), "CPUExecutionProvider"])
        self.assertEqual(session.get_providers(), ["OnnxTile", "CPUExecutionProvider"])
        self.assertTrue(same(session.run(None, {"x": self.x})[0], self.y))

    def test_what_the_engine_lacks_stays(self):
        model = networks.in_two()
        kinds = taken(model, self.folder, {"x": self.x})
        self.assertEqual([k for k in kinds if k in ("part", "SampleOp")], ["part", "SampleOp", "part"] if MIXES else ["SampleOp"])
        self.assertEqual(len(kinds) == 3, MIXES)
        want, = processor(model).run(None, {"x": self.x})
        self.assertTrue(same(provided(model).run(None, {"x": self.x})[0], want))

    def test_nothing_to_take(self):
        model = networks.gathered()
        ids = np.array([3, 0, 2], np.int64)
        self.assertNotIn("part", taken(model, self.folder, {"ids": ids}))
        for y, want in zip(provided(model).run(None, {"ids": ids}), processor(model).run(None, {"ids": ids})):
            self.assertTrue(same(y, want))

    def test_slow_operators_stay(self):
        model = networks.conv_chain(64, 64)
        model.graph.node.append(helper.make_node("LpPool", ["y"], ["t"], "slow", kernel_shape=[1, 1]))
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 3, 64, 64]))
        self.assertIn("LpPool", onnx_tile.inspect(model, runtime="engine").data["slow_nodes"])  # another one, where it has become fast
        x = np.random.default_rng(1).random((1, 3, 64, 64), np.float32)
        self.assertTrue(same(provided(model).run(None, {"x": x})[0], processor(model).run(None, {"x": x})[0]))
        kinds = taken(model, self.folder, {"x": x})
        self.assertEqual((kinds[0] == "part", kinds[-1], "part" in kinds[1:]), (MIXES, "LpPool", False))

    def test_graphs_inside_of_nodes_stay(self):
        model = networks.conv_chain(16, 16)
        body = helper.make_graph([helper.make_node("Add", ["y", "one"], ["then_out"])], "then", [],
                                 [helper.make_tensor_value_info("then_out", TensorProto.FLOAT, None)])
        other = helper.make_graph([helper.make_node("Identity", ["y"], ["else_out"])], "else", [],
                                  [helper.make_tensor_value_info("else_out", TensorProto.FLOAT, None)])
        model.graph.initializer.append(numpy_helper.from_array(np.float32([1.5]), "one"))
        model.graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
        model.graph.node.append(helper.make_node("If", ["flag"], ["z"], "choice", then_branch=body, else_branch=other))
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 3, 16, 16]))
        x = self.x[..., :16, :16].copy()
        for flag in (True, False):
            feeds = {"x": x, "flag": np.array(flag)}
            self.assertTrue(same(provided(model).run(None, feeds)[0], processor(model).run(None, feeds)[0]))

    def test_free_sizes(self):
        model = networks.conv_chain(64, 48, rows="rows")
        session = provided(model, sizes=2)
        for rows in (64, 80, 64, 33, 80, 64):
            x = np.random.default_rng(rows).random((1, 3, rows, 48), np.float32)
            for k in (1, 2):
                self.assertTrue(same(session.run(None, {"x": x * k})[0], processor(model).run(None, {"x": x * k})[0]), rows)

    def test_attributes_and_operands_of_every_kind(self):
        """Ints, floats, strings, tensors; operands that are left out; constants that may be overridden; results of several types."""
        rng = np.random.default_rng(3)
        weights = [numpy_helper.from_array(rng.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5, "w"),
                   numpy_helper.from_array(np.float32([1, 1, 2, 2]), "scales"), numpy_helper.from_array(np.float32(6), "six"),
                   numpy_helper.from_array(rng.standard_normal(8).astype(np.float32), "b")]
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1], auto_pad="NOTSET"),
                 helper.make_node("Clip", ["c", "", "six"], ["k"], "clip"),
                 helper.make_node("LeakyRelu", ["k"], ["l"], "leaky", alpha=0.25),
                 helper.make_node("Resize", ["l", "", "scales"], ["r"], "resize", mode="nearest", nearest_mode="floor",
                                  coordinate_transformation_mode="asymmetric"),
                 helper.make_node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32([0.5]), "h")),
                 helper.make_node("Mul", ["r", "half"], ["y"], "mul"),
                 helper.make_node("ArgMax", ["y"], ["most"], "most", axis=1, keepdims=0)]
        graph = helper.make_graph(nodes, "kinds", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 20, 24]),
                                                   helper.make_tensor_value_info("b", TensorProto.FLOAT, [8])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 40, 48]),
                                   helper.make_tensor_value_info("most", TensorProto.INT64, [1, 40, 48])], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        x = rng.random((1, 3, 20, 24), np.float32)
        for feeds in ({"x": x}, {"x": x, "b": np.arange(8, dtype=np.float32) - 4}):
            got, want = provided(model).run(None, feeds), processor(model).run(None, feeds)
            self.assertTrue(same(got[0], want[0]))
            self.assertTrue(np.array_equal(got[1], want[1]))

    def test_weights_that_may_be_given(self):
        """Files of some exporters list weights among the inputs."""
        model = networks.conv_chain(64, 48)
        for t in model.graph.initializer:
            model.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session, alone = provided(model), processor(model, options)
        w = numpy_helper.to_array(model.graph.initializer[1])
        for feeds in ({}, {"w1": w * 2}, {"w1": w}, {"w1": w * 2}, {"w1": w * 3, "w2": w * 0}, {}):
            feeds = {"x": self.x, **feeds}
            self.assertTrue(same(session.run(None, feeds)[0], alone.run(None, feeds)[0]), sorted(feeds))

    def test_weights_in_a_file_of_their_own(self):
        path = os.path.join(self.folder, "outside.onnx")
        onnx.save_model(self.model, path, save_as_external_data=True, location="outside.data", size_threshold=0)
        self.assertTrue(same(provided(path).run(None, {"x": self.x})[0], self.y))

    def wide(self, free, outside=False):
        """A file of 64 MiB of weights, which a part packs; its path."""
        rng = np.random.default_rng(2)
        weights = [numpy_helper.from_array(rng.standard_normal((1024, 1024), np.float32) / 32, f"w{k}") for k in range(16)]
        nodes = [helper.make_node("MatMul", [f"v{k}" if k else "x", f"w{k}"], [f"v{k + 1}" if k < 15 else "y"]) for k in range(16)]
        shape = ["n" if free else 64, 1024]
        graph = helper.make_graph(nodes, "wide", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
        path = os.path.join(self.folder, "wide.onnx")
        onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path,
                        **({"save_as_external_data": True, "location": "wide.data"} if outside else {}))
        return path

    def test_weights_are_held_once(self):
        child = ("import sys, numpy as np, onnxruntime, onnx_tile\n"
                 "def most(): return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')) / 1024\n"
                 "options = onnx_tile.add_ep(onnxruntime.SessionOptions(), threads=1)\n"
                 "before = most()\n"
                 "session = onnxruntime.InferenceSession(sys.argv[1], options, enable_fallback=0)\n"
                 "session.run(None, {'x': np.ones((64, 1024), np.float32)})\n"
                 "print(most() - before)\n")
        for free, outside in ((False, False), (False, True), (True, False), (True, True)):
            path = self.wide(free, outside)
            told = subprocess.run([sys.executable, "-c", child, path], check=True, capture_output=True, text=True).stdout
            # 64 MiB of weights: one copy (twice: 128), and what planning takes
            self.assertLess(float(told), 110, (free, outside))

    def test_a_file_that_is_written_to(self):
        path, x = self.wide(True), np.ones((64, 1024), np.float32)
        alone, = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
        session = provided(path)
        os.rename(path, path + ".old")  # the session has it open
        self.assertTrue(same(session.run(None, {"x": x})[0], alone))
        with open(path + ".old", "r+b") as f:
            f.truncate(1 << 20)
        self.assertTrue(same(session.run(None, {"x": x})[0], alone))  # it needs no weights any more
        with self.assertRaisesRegex(Exception, "wide.onnx' was written to since the session was made, or is cut off"):
            session.run(None, {"x": x[:5]})
        self.assertTrue(same(session.run(None, {"x": x})[0], alone))

    def test_without_onnx_runtime_s_own_passes(self):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.assertTrue(same(provided(self.model, options).run(None, {"x": self.x})[0], self.y))

    def test_onnx_runtime_s_threads(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == onnx_tile.register_ep()]
        options.add_provider_for_devices(devices, {})
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), options)
        self.assertTrue(same(session.run(None, {"x": self.x})[0], self.y))

    def test_outputs_in_memory_of_the_caller(self):
        session, out = provided(self.model), np.empty_like(self.y)
        binding = session.io_binding()
        binding.bind_cpu_input("x", self.x)
        binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
        session.run_with_iobinding(binding)
        self.assertTrue(same(out, self.y))

    def test_callers_at_the_same_time(self):
        session, wrong = provided(networks.conv_chain(64, 48, rows="rows")), []

        def caller(k):
            x = np.random.default_rng(k).random((1, 3, 40 + k % 2, 48), np.float32)
            want, = processor(networks.conv_chain(64, 48, rows="rows")).run(None, {"x": x})
            for _ in range(5):
                if not same(session.run(None, {"x": x})[0], want):
                    wrong.append(k)

        callers = [threading.Thread(target=caller, args=(k,)) for k in range(4)]
        for c in callers:
            c.start()
        for c in callers:
            c.join()
        self.assertEqual(wrong, [])

    def test_failures_are_lines(self):
        for more, line in (({"goal": "size"}, "option 'goal' is time or memory, not 'size'"), ({"budget": "much"}, "'budget' is a size"),
                           ({"sizes": 0}, "'sizes' is from 1 to 64, not '0'"), ({"max_slowdown": -1.0}, "'max_slowdown' is from 0 to 1000"),
                           ({"budget": "1K"}, "onnx_tile: OnnxTile: .*budget")):
            with self.assertRaisesRegex(Exception, line):
                provided(self.model, **more)
        devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "OnnxTile"]
        options = onnxruntime.SessionOptions()
        options.add_provider_for_devices(devices, {"speed": "1"})
        with self.assertRaisesRegex(Exception, "'speed' is none of budget, goal, max_slowdown, sizes, threads"):
            onnxruntime.InferenceSession(self.model.SerializeToString(), options, enable_fallback=0)

    def test_example_in_python(self):
        path = networks.path_of(self.model, self.folder, "chain")
        told = subprocess.run([sys.executable, os.path.join(EXAMPLES, "run_provider.py"), path], check=True, capture_output=True, text=True).stdout
        self.assertRegex(told, r"y: \[1, 3, 64, 48\], at most \S+e-0[6-9] apart")

    @unittest.skipUnless(RUNTIME and shutil.which("gcc"), "no compiler, or no library of ONNX Runtime in its wheel")
    def test_example_in_c(self):
        path, program = networks.path_of(self.model, self.folder, "chain"), os.path.join(self.folder, "run_provider")
        os.symlink(RUNTIME[0], os.path.join(self.folder, "libonnxruntime.so.1"))
        for shared in glob.glob(os.path.join(os.path.dirname(RUNTIME[0]), "libonnxruntime_providers_shared.so")):
            os.symlink(shared, os.path.join(self.folder, os.path.basename(shared)))
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(HERE, "header"), os.path.join(EXAMPLES, "run_provider.c"), "-o", program,
                        RUNTIME[0], "-lm"], check=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=self.folder)
        ran = subprocess.run([program, onnx_tile.ort_library(), path], capture_output=True, text=True, env=environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("on the provider", ran.stdout)
        ran = subprocess.run([program, onnx_tile.ort_library(), path, "size"], capture_output=True, text=True, env=environment)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("onnx_tile: OnnxTile: option 'goal' is time or memory, not 'size'", ran.stderr)

    def test_sessions_come_and_go(self):
        for _ in range(10):
            self.assertTrue(same(provided(self.model).run(None, {"x": self.x})[0], self.y))


class TooOld(unittest.TestCase):
    @unittest.skipIf(VERSION >= (1, 23), "new enough")
    def test_is_told(self):
        with self.assertRaisesRegex(onnx_tile.UsageError, "is too old: 1.23 or newer is needed"):
            onnx_tile.register_ep()


if __name__ == "__main__":
    unittest.main()
