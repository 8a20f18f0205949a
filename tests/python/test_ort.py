"""The engine as an operator of ONNX Runtime: what tile(runtime="ort-engine") writes, run with the package's library."""
import os
import threading
import unittest

import networks
import numpy as np
import onnx
import onnxruntime

import onnx_tile


VERSION = tuple(int(x) for x in onnxruntime.__version__.split(".")[:2])


def processor_time(task):
    """Seconds that a thread of this process has run."""
    with open(f"/proc/self/task/{task}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) * 1e-9


def open_session(model, options=None, **config):
    options = options or onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for key, value in config.items():
        options.add_session_config_entry("onnx_tile." + key, value)
    options.register_custom_ops_library(onnx_tile.ort_library())
    return onnxruntime.InferenceSession(model if isinstance(model, bytes) else model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def plain(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def within(model, **more):
    return onnx_tile.tile(model, runtime="ort-engine", fast_memory="32K", force=True, threads=1, **more)


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-4, atol=1e-5)


class InOnnxRuntime(unittest.TestCase):
    def setUp(self):
        self.model = networks.conv_chain(64, 48)
        self.x = np.random.default_rng(1).random((1, 3, 64, 48), np.float32)
        self.y, = plain(self.model).run(None, {"x": self.x})

    def test_agrees_with_the_original(self):
        tiled, result = within(self.model)
        self.assertGreater(len(result.regions), 0)
        self.assertEqual([(n.domain, n.op_type) for n in tiled.graph.node], [("onnx_tile", "Engine")])
        session = open_session(tiled)
        self.assertEqual([(v.name, v.type, v.shape) for v in session.get_inputs()], [("x", "tensor(float)", [1, 3, 64, 48])])
        for _ in range(3):
            self.assertTrue(same(session.run(None, {"x": self.x})[0], self.y))
        self.assertTrue(same(session.run(None, {"x": self.x * 2})[0], plain(self.model).run(None, {"x": self.x * 2})[0]))

    def test_threads_do_not_change_bits(self):
        tiled, _ = within(self.model)
        results = [open_session(tiled, threads=n).run(None, {"x": self.x})[0] for n in ("1", "2", "3")]
        for y in results[1:]:
            self.assertTrue(np.array_equal(results[0], y))

    @unittest.skipIf(VERSION < (1, 17), "operators of ONNX Runtime 1.16 cannot use its threads")
    @unittest.skipIf(os.cpu_count() < 2, "one processor")
    def test_onnx_runtime_s_threads_do_the_work(self):
        model = networks.conv_chain(256, 256)
        x = np.random.default_rng(1).random((1, 3, 256, 256), np.float32)
        want, = plain(model).run(None, {"x": x})
        tiled, _ = within(model)
        for n in (1, 2):
            before = set(os.listdir("/proc/self/task"))
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = n
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = open_session(tiled, options)
            workers = set(os.listdir("/proc/self/task")) - before
            self.assertEqual(len(workers), n - 1)
            for _ in range(30):
                self.assertTrue(same(session.run(None, {"x": x})[0], want))
                if all(processor_time(w) > 2e-4 for w in workers):
                    break
            self.assertEqual(set(os.listdir("/proc/self/task")) - before, workers, "no threads but ONNX Runtime's")
            self.assertTrue(all(processor_time(w) > 2e-4 for w in workers), f"{n} threads: some never worked")
            del session

    def test_an_untiled_model_is_one_operator_too(self):
        whole, result = onnx_tile.tile(networks.conv_chain(16, 16), runtime="ort-engine")
        self.assertEqual(len(result.regions), 0)
        self.assertEqual([n.op_type for n in whole.graph.node], ["Engine"])
        x = self.x[..., :16, :16]
        self.assertTrue(same(open_session(whole).run(None, {"x": x})[0], plain(networks.conv_chain(16, 16)).run(None, {"x": x})[0]))

    def test_free_dimensions_and_every_type(self):
        model = networks.typed()
        whole, _ = onnx_tile.tile(model, runtime="ort-engine")
        session = open_session(whole)
        for rows in (1, 5, 0):
            feeds = {v.name: np.arange(rows * 3).reshape(rows, 3).astype(v.name[3:]) for v in model.graph.input}
            for v, y in zip(model.graph.output, session.run(None, feeds)):
                x = feeds["in_" + v.name[4:]]
                self.assertEqual(y.dtype, x.dtype)
                self.assertTrue(np.array_equal(x, y), v.name)

    def test_output_of_another_type(self):
        model = networks.gathered()
        ids = np.array([3, 0, 2], np.int64)
        whole, _ = onnx_tile.tile(model, runtime="ort-engine")
        for y, want in zip(open_session(whole).run(None, {"ids": ids}), plain(model).run(None, {"ids": ids})):
            self.assertTrue(same(y, want))
        del model.graph.node[0], model.graph.output[0], model.graph.input[0]
        with self.assertRaisesRegex(onnx_tile.ModelError, "has no input"):
            onnx_tile.tile(model, runtime="ort-engine")

    def test_inside_a_larger_graph(self):
        tiled, _ = within(self.model)
        for v in tiled.graph.output:
            tiled.graph.value_info.append(v)
        tiled.graph.node.append(onnx.helper.make_node("Neg", ["y"], ["z"]))
        tiled.graph.output[0].name = "z"
        self.assertTrue(same(open_session(tiled).run(None, {"x": self.x})[0], -self.y))

    def test_what_the_engine_lacks_stays_with_onnx_runtime(self):
        model = networks.in_two()
        want, = plain(model).run(None, {"x": self.x})
        with self.assertRaisesRegex(onnx_tile.ModelError, "middle'.*engine does not have.*ort_operators parts"):
            within(model)
        for kind, inner in (("parts", ["Engine", "SampleOp", "Engine"]), ("regions", None)):
            tiled, result = within(model, ort_operators=kind)
            self.assertGreater(len(result.regions), 1)
            kinds = [n.op_type for n in tiled.graph.node]
            self.assertEqual(kinds, inner or kinds)
            self.assertEqual(kinds.count("SampleOp"), 1)
            self.assertGreater(kinds.count("Engine"), 1)
            self.assertEqual([v.name for v in tiled.graph.initializer], [], "constants that operators alone read")
            self.assertTrue(same(open_session(tiled).run(None, {"x": self.x})[0], want), kind)
            with self.assertRaisesRegex(onnx_tile.ModelError, "'middle'"):
                onnx_tile.Session(tiled)

    def test_regions_are_read_as_one_graph(self):
        model = networks.in_two(middle="Softmax")
        form, _ = onnx_tile.tile(model, runtime="engine", fast_memory="32K", force=True, threads=1)
        regions, _ = within(model, ort_operators="regions")
        self.assertEqual([n.op_type for n in regions.graph.node], ["Engine", "Softmax", "Engine"])
        again, _ = onnx_tile.tile(regions, runtime="engine")
        self.assertEqual(sorted(n.name for n in again.graph.node), sorted(n.name for n in form.graph.node))
        self.assertEqual(onnx_tile.inspect(regions).before, onnx_tile.inspect(form).before)
        want, = plain(model).run(None, {"x": self.x})
        self.assertTrue(same(onnx_tile.Session(regions, threads=1).run({"x": self.x})[0], want))
        self.assertTrue(same(open_session(regions).run(None, {"x": self.x})[0], want))
        one, _ = within(model, ort_operators="parts")
        self.assertEqual([n.op_type for n in one.graph.node], ["Engine"])

    def test_operators_are_asked_for_by_words(self):
        with self.assertRaisesRegex(onnx_tile.UsageError, "whole, parts, regions"):
            within(self.model, ort_operators="some")
        with self.assertRaisesRegex(onnx_tile.UsageError, "runtime ort-engine alone"):
            onnx_tile.tile(self.model, ort_operators="parts")

    def test_the_package_reads_it_without_the_library(self):
        tiled, result = within(self.model)
        self.assertTrue(same(onnx_tile.Session(tiled, threads=1).run({"x": self.x})[0], self.y))
        form, _ = onnx_tile.tile(self.model, runtime="engine", fast_memory="32K", force=True, threads=1)
        self.assertEqual(onnx_tile.inspect(tiled).before, onnx_tile.inspect(form).before)
        again, _ = onnx_tile.tile(tiled, runtime="ort-engine")
        self.assertTrue(same(open_session(again).run(None, {"x": self.x})[0], self.y))

    def test_check_runs_it(self):
        found = onnx_tile.check(self.model, within(self.model)[0], rounds=1)
        self.assertTrue(found)
        self.assertIn("ONNX Runtime", found.runtime)

    def test_callers_at_the_same_time(self):
        session = open_session(within(self.model)[0], threads="2")
        wrong = []

        def caller(k):
            x = self.x * k
            want, = plain(self.model).run(None, {"x": x})
            for _ in range(5):
                if not same(session.run(None, {"x": x})[0], want):
                    wrong.append(k)

        callers = [threading.Thread(target=caller, args=(k,)) for k in range(1, 5)]
        for c in callers:
            c.start()
        for c in callers:
            c.join()
        self.assertEqual(wrong, [])

    def test_failures_are_lines(self):
        tiled, _ = within(self.model)
        with self.assertRaisesRegex(Exception, "onnx_tile.threads' is from 1 to 4096, not: none"):
            open_session(tiled, threads="none")
        broken = onnx.ModelProto()
        broken.CopyFrom(tiled)
        broken.graph.node[0].attribute[0].s = b"no model"
        with self.assertRaisesRegex(Exception, "onnx_tile: Engine: "):
            open_session(broken)
        broken.CopyFrom(tiled)
        broken.graph.node[0].input.append("x")
        with self.assertRaisesRegex(Exception, "not as many inputs and outputs as its body"):
            open_session(broken).run(None, {"x": self.x})
        broken.CopyFrom(tiled)
        broken.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
        with self.assertRaisesRegex(Exception, "another type than in the body: x|does not match expected type"):
            open_session(broken).run(None, {"x": self.x.astype(np.float64)})

    def test_sessions_come_and_go(self):
        tiled, _ = within(self.model)
        for _ in range(20):
            self.assertTrue(same(open_session(tiled).run(None, {"x": self.x})[0], self.y))


if __name__ == "__main__":
    unittest.main()
