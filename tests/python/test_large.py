"""large: parts of files on workers are the whole, to the bit; runs go on where they were killed; what does not fit is refused."""
import concurrent.futures
import contextlib
import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import onnx_tile
from networks import conv_chain, path_of
from onnx_tile import large
from onnx_tile.large import _command, _manifest, _work
from test_geometry import network
from test_passes import style

try:
    import dask.array as da
    import rasterio
    import tifffile
    import zarr
    from distributed import Client, LocalCluster
except ImportError:
    da = None

with_packages = unittest.skipIf(da is None, "without Dask, Zarr, rasterio and tifffile")


def chain():
    """Four convolutions over maps of any size."""
    return freed(conv_chain())


def freed(model):
    """Rows and columns of the first input and output are free."""
    for v in (model.graph.input[0], model.graph.output[0]):
        for k, name in ((2, "h"), (3, "w")):
            v.type.tensor_type.shape.dim[k].dim_param = name
    return model


def of_nodes(nodes, weights, dims=2, channels=1, out_channels=None):
    """A model of one input x and one output y of free extents."""
    axes = [f"d{k}" for k in range(dims)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, *axes])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, out_channels or channels, *[None] * dims])],
                              [numpy_helper.from_array(v, n) for n, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def strided():
    """Half the rows, a third of the columns; no padding: pixels of the output lie off the input's."""
    w = np.random.default_rng(1).normal(0, 1, (2, 3, 5, 3)).astype("f4")
    return of_nodes([helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 3])], {"w": w}, channels=3, out_channels=2)


def doubled():
    """Twice the rows and columns."""
    w = np.random.default_rng(2).normal(0, 1, (3, 1, 4, 4)).astype("f4")
    return of_nodes([helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])], {"w": w}, channels=3,
                    out_channels=1)


def solid():
    """Two convolutions over a volume, which is padded."""
    rng = np.random.default_rng(3)
    w, v = (rng.normal(0, .3, s).astype("f4") for s in ((4, 1, 3, 3, 3), (1, 4, 3, 3, 3)))
    return of_nodes([helper.make_node("Conv", ["x", "w"], ["t"], pads=[1] * 6), helper.make_node("Relu", ["t"], ["r"]),
                     helper.make_node("Conv", ["r", "v"], ["y"], pads=[1] * 6)], {"w": w, "v": v}, dims=3)


def whole(model, x):
    """What ONNX Runtime makes of all of it, as apply does with one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def picture(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype("u1")


def as_input(x):
    return (x.astype("f4") * np.float32(1 / 255))[None]


def die_once(x):
    """As `prepare`: the process that comes first dies at a file that is not there yet."""
    if x.shape[-1] > 160:  # not the probe
        try:
            os.close(os.open(os.environ["TEST_LARGE_DEAD"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return x
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def die_always(x):
    if x.shape[-1] > 160:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def slowly(x):
    time.sleep(.2 if x.shape[-1] > 160 else 0)
    return x


def labels(y):
    return y.argmax(1, keepdims=True).astype("u1")


def without_axis(y):
    return y.argmax(1)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def same(self, a, b):
        self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
        np.testing.assert_array_equal(np.ascontiguousarray(a).view("u1"), np.ascontiguousarray(b).view("u1"))


class Arrays(Folder):
    def test_kinds_of_networks_by_odd_chunks(self):
        for model, channels, size in ((network(), 2, (133, 170)), (strided(), 3, (131, 172)), (doubled(), 3, (61, 90)), (chain(), 3, (97, 201))):
            x = np.random.default_rng(5).normal(0, 1, (channels, *size)).astype("f4")
            want = whole(model, x[None])[0]
            for chunk in (37, (50, 16), 1000):
                done = large.apply(model, x, workers=0, chunk=chunk, tiled=False)
                self.same(done.target, want)
            self.same(large.apply(model, x[None], workers=0, chunk=40).target, want[None])

    def test_volume_and_given_target(self):
        x = np.random.default_rng(6).normal(0, 1, (23, 40, 31)).astype("f4")
        y = np.zeros_like(x)
        self.assertIs(large.apply(solid(), x, y, workers=0, chunk=(9, 17, 20)).target, y)
        self.same(y, whole(solid(), x[None, None])[0, 0])

    def test_fixed_extents_of_the_file(self):
        x = picture(3, 300, 411)
        done = large.apply(path_of(conv_chain(64, 64), ".", "m"), x, workers=0, chunk=150, scale=1 / 255)
        self.same(done.target, whole(chain(), as_input(x))[0])

    def test_axes_in_another_order(self):
        x = np.random.default_rng(12).normal(0, 1, (3, 90, 101)).astype("f4")
        want = whole(chain(), x[None])[0]
        turned = np.ascontiguousarray(x.transpose(1, 2, 0))
        self.same(large.apply(chain(), turned, workers=0, chunk=40, axes="YXC").target, want.transpose(1, 2, 0))
        self.same(large.apply(chain(), turned[:, :, None], workers=0, chunk=40, axes=(2, 3, 0, 1)).target, want.transpose(1, 2, 0)[:, :, None])
        np.save("x.npy", turned)
        large.apply(chain(), "x.npy", "y.npy", workers=2, chunk=(30, 64), axes="YXC")
        self.same(np.load("y.npy"), want.transpose(1, 2, 0))
        with self.assertRaisesRegex(onnx_tile.UsageError, "begun with another"):
            large.apply(chain(), "x.npy", "y.npy", workers=0, axes="XYC")
        volume = np.random.default_rng(6).normal(0, 1, (23, 40, 31)).astype("f4")
        y = np.zeros((31, 23, 40), "f4")
        large.apply(solid(), np.ascontiguousarray(volume.transpose(2, 0, 1)), y, workers=0, chunk=(9, 17, 20), axes="XZY")
        self.same(y, whole(solid(), volume[None, None])[0, 0].transpose(2, 0, 1))
        maps = np.random.default_rng(13).normal(0, 1, (1, 1, 60, 70)).astype("f4")
        w = np.random.default_rng(14).normal(0, 1, (4, 1, 3, 3)).astype("f4")
        model = of_nodes([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)], {"w": w}, out_channels=4)
        self.same(large.apply(model, maps[0, 0].T.copy(), workers=0, chunk=33, axes="XY").target, whole(model, maps)[0].transpose(0, 2, 1))
        for axes, pattern in (("YXQ", "axes 'YXQ': use each axis of input 'x', which has 4, once: NCYX"), ("YYC", "axes 'YYC'"),
                              ((2, 3, 4), "axes .2, 3, 4."), ("YX", "axes: 2 axes, the source has 3 dimensions")):
            with self.subTest(axes), self.assertRaisesRegex(onnx_tile.UsageError, pattern):
                large.apply(chain(), turned, workers=0, axes=axes)

    def test_batches_and_several_inputs(self):
        model = chain()
        for value in (model.graph.input[0], model.graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_param = "n"
        x = np.random.default_rng(10).normal(0, 1, (2, 3, 90, 101)).astype("f4")
        self.same(onnx_tile.large.apply(model, x, workers=0, chunk=40).target, whole(model, x))
        nodes = [helper.make_node("Conv", ["x", "w"], ["t"], pads=[1] * 4), helper.make_node("Mul", ["t", "mask"], ["y"])]
        model = of_nodes(nodes, {"w": np.random.default_rng(11).normal(0, 1, (1, 1, 3, 3)).astype("f4")})
        model.graph.input.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, [1, 1, "d0", "d1"]))
        mask = picture(90, 101).astype("f4")
        x = x[0, 0]
        want = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x[None, None], "mask": mask[None, None]})[0][0, 0]
        self.same(large.apply(model, {"x": x, "mask": mask}, workers=0, chunk=40).target, want)
        with self.assertRaisesRegex(onnx_tile.UsageError, "the model has the inputs 'x', 'mask': give"):
            large.apply(model, x, workers=0)

    def test_elements(self):
        x = picture(3, 150, 170)
        want = whole(chain(), as_input(x))
        y = large.apply(chain(), x, workers=0, chunk=64, scale=1 / 255, out_scale=255, dtype="uint8").target
        self.same(y, np.clip(np.rint(want[0] * np.float32(255)), 0, 255).astype("u1"))
        self.same(large.apply(chain(), x, workers=0, chunk=64, scale=1 / 255, finish=labels).target, labels(want)[0])
        with self.assertRaisesRegex(onnx_tile.UsageError, "finish= made 3 dimensions of 4"):
            large.apply(chain(), x, workers=0, chunk=64, finish=without_axis)

    def test_engine(self):
        x = np.random.default_rng(7).normal(0, 1, (3, 120, 140)).astype("f4")
        done = large.apply(chain(), x, workers=0, chunk=50, runtime="engine")
        session = onnx_tile.Session(chain(), threads=1)
        np.testing.assert_allclose(done.target, session.run({"x": x[None]})[0][0], rtol=0, atol=1e-5)

    def test_tiled_models_that_round_otherwise_are_not_run(self):
        """Its Resize, cut along channels, rounds otherwise in ONNX Runtime."""
        x = np.random.default_rng(8).normal(0, 1, (2, 600, 700)).astype("f4")
        self.same(large.apply(network(), x, workers=0, chunk=256).target, whole(network(), x[None])[0])


class Processes(Folder):
    def test_npy_by_the_budget(self):
        x = picture(3, 900, 1001)
        np.save("x.npy", x)
        seen = []
        done = large.apply(path_of(chain(), ".", "m"), "x.npy", "y.npy", workers=2, scale=1 / 255, budget="900MB", progress=seen.append)
        self.same(np.load("y.npy"), whole(chain(), as_input(x))[0])
        self.assertTrue(done.tiled)
        self.assertEqual([p.chunks for p in seen], list(range(1, done.chunks + 1)))
        self.assertGreaterEqual(done.chunks, 4)
        self.assertLessEqual(max(done.peak_bytes.values()), done.predicted_bytes)
        self.assertLessEqual(done.predicted_bytes, 450 << 20)
        self.assertEqual(os.listdir("y.npy.onnx-tile"), ["manifest.jsonl"])
        again = large.apply("m.onnx", "x.npy", "y.npy", workers=2, scale=1 / 255)
        self.assertEqual((again.done_before, again.peak_bytes), (done.chunks, {}))

    def test_smaller_budget_smaller_chunks(self):
        x = np.zeros((3, 3000, 3000), "u1")
        np.save("x.npy", x)
        sizes = []
        for budget in ("400MB", "4GB"):
            with self.subTest(budget), self.assertRaisesRegex(RuntimeError, "enough"):
                large.apply(chain(), "x.npy", "y.npy", workers=1, budget=budget, tiled=False, progress=self.stop)
            with open("y.npy.onnx-tile/manifest.jsonl", encoding="ascii") as f:
                sizes.append(json.loads(f.readline())["edges"])
            shutil.rmtree("y.npy.onnx-tile")
        self.assertLess(sizes[0][0] * sizes[0][1], sizes[1][0] * sizes[1][1])
        with self.assertRaisesRegex(onnx_tile.BudgetError, "a worker needs .* for the smallest chunk"):
            large.apply(chain(), "x.npy", "y.npy", workers=1, budget="64MB")
        self.assertEqual(os.listdir("."), ["x.npy"])

    @staticmethod
    def stop(_progress):
        raise RuntimeError("enough")

    def test_worker_that_dies(self):
        x = picture(3, 500, 500)
        os.environ["TEST_LARGE_DEAD"] = os.path.abspath("dead")
        self.addCleanup(os.environ.pop, "TEST_LARGE_DEAD")
        done = large.apply(chain(), x, workers=2, chunk=200, prepare=die_once, scale=1 / 255, tiled=False)
        self.assertTrue(os.path.exists("dead"))
        self.assertGreaterEqual(done.retried, 1)
        self.same(done.target, whole(chain(), as_input(x))[0])
        with self.assertRaisesRegex(onnx_tile.SystemFailure, "chunk .: its worker died 2 times"):
            large.apply(chain(), x, workers=1, chunk=250, prepare=die_always, retries=1, tiled=False)

    def test_any_executor(self):
        x = picture(3, 300, 300)
        want = whole(chain(), as_input(x))[0]
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            self.same(large.apply(chain(), x, executor=threads, chunk=100, scale=1 / 255).target, want)
        with self.assertRaisesRegex(onnx_tile.UsageError, "an executor has submit"):
            large.apply(chain(), x, executor=3)

    def test_processes_of_the_caller(self):
        x = picture(3, 300, 300)
        want = whole(chain(), as_input(x))[0]
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
            self.same(large.apply(chain(), x, executor=pool, chunk=60, scale=1 / 255).target, want)
        os.environ["TEST_LARGE_DEAD"] = os.path.abspath("dead")
        self.addCleanup(os.environ.pop, "TEST_LARGE_DEAD")
        x = picture(3, 500, 500)

        def make():
            return concurrent.futures.ProcessPoolExecutor(2, mp_context=context)
        done = large.apply(chain(), x, executor=make, workers=2, chunk=200, prepare=die_once, scale=1 / 255, tiled=False)
        self.assertGreaterEqual(done.retried, 1)
        self.same(done.target, whole(chain(), as_input(x))[0])

    def test_processors_that_compute_other_bits(self):
        class Mixed(concurrent.futures.ThreadPoolExecutor):
            """Its second part is done by a worker whose probe is not the first one's."""

            def submit(self, function, job, *more):
                if function is _work.work and more[0].number == 1:
                    job = replace(job, expected="0" * 64)
                return super().submit(function, job, *more)
        x = picture(3, 200, 200)
        with Mixed(1) as pool:
            with self.assertRaisesRegex(onnx_tile.SystemFailure, "computes other bits than the first worker"):
                large.apply(chain(), x, executor=pool, chunk=100)
            self.assertEqual(large.apply(chain(), x, executor=pool, chunk=100, other_bits="tell").chunks, 4)


class Scripts(Folder):
    def test_bare_call(self):
        """Workers read the script: a call that stands bare in it is named, once a worker, without their stacks."""
        np.save("x.npy", picture(3, 200, 200))
        path_of(chain(), ".", "m")
        with open("run.py", "w", encoding="ascii") as f:
            f.write("from onnx_tile import large\nlarge.apply('m.onnx', 'x.npy', 'y.npy', workers=1, chunk=100, retries=0)\n")
        run = subprocess.run([sys.executable, "run.py"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("onnx_tile: a worker read the script and met the call of apply: put it under if __name__ == '__main__'\n", run.stderr)
        self.assertIn("has no if __name__ == '__main__'", run.stderr)
        self.assertEqual(run.stderr.count("Traceback"), 1, run.stderr)
        self.assertFalse(os.path.exists("y.npy"))


class Resuming(Folder):
    """A run is killed by force, and gone on with."""

    def begin(self):
        np.save("x.npy", picture(3, 500, 700))
        path_of(chain(), ".", "m")
        code = ("import sys; sys.path.insert(0, sys.argv[1])\nfrom onnx_tile import large\nfrom test_large import slowly\n"
                "if __name__ == '__main__': large.apply('m.onnx', 'x.npy', 'y.npy', workers=2, chunk=170, prepare=slowly)\n")
        with open("run.py", "w", encoding="ascii") as f:
            f.write(code)
        run = subprocess.Popen([sys.executable, "run.py", os.path.dirname(os.path.abspath(__file__))], stderr=subprocess.PIPE)
        for _ in range(600):
            with contextlib.suppress(OSError), open("y.npy.onnx-tile/manifest.jsonl", encoding="ascii") as f:
                if len(f.readlines()) > 3:
                    break
            time.sleep(.05)
        run.kill()
        run.communicate()
        self.assertFalse(os.path.exists("y.npy"))
        self.want = whole(chain(), np.load("x.npy").astype("f4")[None])[0]

    def resume(self, model="m.onnx", **more):
        for _ in range(100):  # workers of the killed run end by themselves
            try:
                return large.apply(model, "x.npy", "y.npy", **{"workers": 1, "prepare": slowly, **more})
            except onnx_tile.SystemFailure as why:
                if "another run" not in str(why):
                    raise
                time.sleep(.1)
        self.fail("the killed run does not end")

    def test_killed_run(self):
        self.begin()
        with open("y.npy.onnx-tile/manifest.jsonl", "a", encoding="ascii") as f:
            f.write('{"chu')  # the last line may be torn
        done = self.resume()
        self.assertGreaterEqual(done.done_before, 3)
        self.assertLess(done.done_before, done.chunks)
        self.same(np.load("y.npy"), self.want)
        with open("y.npy.onnx-tile/manifest.jsonl", encoding="ascii") as f:
            numbers = [json.loads(line)["chunk"] for line in f.readlines()[1:]]
        self.assertEqual(sorted(numbers), list(range(done.chunks)))

    def test_what_is_refused(self):
        self.begin()
        other = chain()
        other.graph.node[0].name = "other"
        for pattern, model, more in (("begun with another model", other, {}), ("another conversion of elements", "m.onnx", {"scale": 2.0}),
                                     ("another runtime", "m.onnx", {"runtime": "engine"})):
            with self.subTest(pattern), self.assertRaisesRegex(onnx_tile.UsageError, pattern) as caught:
                self.resume(model, **more)
            self.assertNotIn("\n", str(caught.exception))
        os.utime("x.npy", ns=(0, 0))
        with self.assertRaisesRegex(onnx_tile.UsageError, "begun with another source"):
            self.resume()
        done = self.resume(other, resume=False)
        self.assertEqual(done.done_before, 0)
        self.same(np.load("y.npy"), self.want)

    def test_processor_of_the_first_run(self):
        self.begin()
        path = "y.npy.onnx-tile/manifest.jsonl"
        with open(path, encoding="ascii") as f:
            head, *lines = f.readlines()
        with open(path, "w", encoding="ascii") as f:
            f.writelines([json.dumps({**json.loads(head), "probe": "0" * 64}) + "\n", *lines])
        with self.assertRaisesRegex(onnx_tile.SystemFailure, "begun on a processor that computes other bits"):
            self.resume()
        self.resume(other_bits="tell")
        self.same(np.load("y.npy"), self.want)

    def test_targets_that_are_there(self):
        np.save("x.npy", picture(3, 100, 100))
        np.save("y.npy", np.zeros(1))
        with self.assertRaisesRegex(onnx_tile.UsageError, "is there and was not made by apply"):
            large.apply(chain(), "x.npy", "y.npy", workers=0)
        self.assertEqual(np.load("y.npy").shape, (1,))
        self.assertFalse(os.path.exists("y.npy.onnx-tile"))
        held = _manifest.Manifest("z.npy")
        with self.assertRaisesRegex(onnx_tile.SystemFailure, "another run is writing"):
            large.apply(chain(), "x.npy", "z.npy", workers=0)
        held.close()
        large.apply(chain(), "x.npy", "y.npy", workers=0, resume=False)
        self.assertEqual(np.load("y.npy").shape, (3, 100, 100))


@with_packages
class Files(Folder):
    def test_zarr(self):
        x = picture(3, 300, 421)
        want = whole(chain(), as_input(x))[0]
        for form in (2, 3):
            zarr.create_array(f"x{form}.zarr", shape=x.shape, chunks=(3, 100, 64), dtype="u1", zarr_format=form)[:] = x
            large.apply(chain(), f"x{form}.zarr", f"y{form}.zarr", workers=0, chunk=130, scale=1 / 255, target_options={"zarr_format": form})
            made = zarr.open_array(f"y{form}.zarr", mode="r")
            self.assertEqual((made.metadata.zarr_format, made.chunks), (form, (3, 130, 130)))
            self.same(made[:], want)

    def test_levels_and_arrays_of_the_caller(self):
        x = picture(3, 300, 421)
        group = zarr.create_group("x.zarr", attributes={"ome": {"multiscales": [{"datasets": [{"path": "s0"}, {"path": "s1"}]}]}})
        group.create_array("s0", shape=x.shape, chunks=(3, 100, 64), dtype="u1")[:] = x
        group.create_array("s1", shape=(3, 150, 210), dtype="u1", chunks=(3, 50, 50))[:] = x[:, ::2, :-1:2]
        own = zarr.create_array("own.zarr", shape=x.shape, chunks=(1, 50, 50), dtype="f4")
        done = large.apply(chain(), "x.zarr", own, workers=0, scale=1 / 255)
        self.assertEqual([n % 50 for n, e in zip(done.chunk, (300, 421)) if n < e], [0] * sum(n < e for n, e in zip(done.chunk, (300, 421))))
        self.same(own[:], whole(chain(), as_input(x))[0])
        with self.assertRaisesRegex(onnx_tile.UsageError, "written in pieces of 50 rows"):
            large.apply(chain(), "x.zarr", own, workers=0, chunk=75, scale=1 / 255)
        self.assertEqual(large.apply(chain(), "x.zarr/s1", workers=0, chunk=100).target.shape, (3, 150, 210))

    def raster(self, x):
        transform = rasterio.transform.from_origin(5e5, 5e6, .5, .25)
        with rasterio.open("x.tif", "w", driver="GTiff", count=x.shape[0], height=x.shape[1], width=x.shape[2], dtype="uint8", tiled=True,
                           crs="EPSG:32633", transform=transform) as f:
            f.write(x)
        return transform

    def test_geotiff(self):
        x = picture(3, 310, 401)
        at = self.raster(x)
        a, _, left, _, e, top = at[:6]
        # row o of the strided one is made of rows 2 * o to 2 * o + 4, in whose middle it lies; columns are 3 that are next to each other
        for model, expected in ((chain(), at[:6]), (strided(), (3 * a, 0, left, 0, 2 * e, top + 1.5 * e)), (doubled(), (a / 2, 0, left, 0, e / 2, top))):
            large.apply(model, "x.tif", "y.tif", workers=2, chunk=100, scale=1 / 255, resume=False)
            with rasterio.open("y.tif") as f:
                self.same(f.read(), whole(model, as_input(x))[0])
                self.assertEqual(f.crs.to_epsg(), 32633)
                np.testing.assert_allclose(f.transform[:6], expected, rtol=1e-12)
        large.apply(chain(), "x.tif", "c.tif", workers=0, dtype="uint8", chunk=200, target_options={"driver": "COG", "compress": "deflate"})
        with rasterio.open("c.tif") as f:
            self.assertEqual(f.tags(ns="IMAGE_STRUCTURE")["LAYOUT"], "COG")
            self.assertEqual(f.dtypes[0], "uint8")
        self.assertEqual(os.listdir("c.tif.onnx-tile"), ["manifest.jsonl"])

    def test_stacks(self):
        x = np.random.default_rng(9).normal(0, 1, (20, 45, 60)).astype("f4")
        want = whole(solid(), x[None, None])[0, 0]
        tifffile.imwrite("plain.tif", x, photometric="minisblack")
        tifffile.imwrite("packed.tif", x, photometric="minisblack", compression="zlib")
        for name in ("plain.tif", "packed.tif"):
            large.apply(solid(), name, "out_" + name, workers=2, chunk=(9, 20, 60))
            self.same(tifffile.imread("out_" + name), want)

    def test_dask(self):
        x = picture(3, 300, 421)
        want = whole(chain(), as_input(x))[0]
        np.save("x.npy", x)
        os.environ["TEST_LARGE_DEAD"] = os.path.abspath("dead")  # the workers have it, also those that come in place of dead ones
        self.addCleanup(os.environ.pop, "TEST_LARGE_DEAD")
        with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            done = large.apply(chain(), "x.npy", "y.zarr", executor=client, chunk=60, scale=1 / 255)
            self.same(zarr.open_array("y.zarr")[:], want)
            self.assertEqual(len(done.peak_bytes), 3)
            np.save("even.npy", x[..., :420])
            stored = large.apply(style(), "even.npy", "p.npy", executor=client, chunk=100, scale=1 / 255, store="always")
            self.assertGreater(stored.stored_bytes, 0)
            self.same(np.load("p.npy"), large.apply(style(), "even.npy", workers=0, chunk=100, scale=1 / 255, store="never").target)
            done = large.apply(chain(), "x.npy", "z.npy", executor=client, chunk=200, scale=1 / 255, prepare=die_once, tiled=False)
            self.assertTrue(os.path.exists("dead"))
            self.same(np.load("z.npy"), want)
            y = large.map_array(chain(), da.from_array(x, chunks=(3, 128, 200)), scale=1 / 255)
            self.same(y.compute(), want)

    def test_overlaps_of_dask(self):
        """Stock map_overlap, told the depth, on chunks of odd sizes."""
        for model, size, chunks in ((chain(), (97, 201), ((20, 33, 44), (67, 50, 84))), (network(), (132, 170), ((50, 40, 42), (64, 106)))):
            x = np.random.default_rng(5).normal(0, 1, (1, model.graph.input[0].type.tensor_type.shape.dim[1].dim_value, *size)).astype("f4")
            depth = onnx_tile.geometry(model, shapes={"x": x.shape}).depth(size)
            lazy = da.from_array(x, chunks=((1,), (x.shape[1],), *chunks))
            y = da.map_overlap(lambda part, model=model: whole(model, part), lazy, depth={0: 0, 1: 0, **depth}, boundary="none", dtype="f4",
                               meta=np.empty((0,) * 4, "f4"))
            self.same(y.compute(scheduler="threads"), whole(model, x))

    def test_lazily(self):
        for model, channels in ((chain(), 3), (strided(), 3), (doubled(), 3)):
            x = picture(channels, 200, 231)
            reads = []

            def read(block_info=None, x=x, reads=reads):
                (a, b), (c, d), (e, f) = block_info[None]["array-location"]
                reads.append(1)
                return x[a:b, c:d, e:f]
            lazy = da.map_blocks(read, chunks=da.core.normalize_chunks((3, 60, 100), x.shape), dtype="u1", meta=np.empty((0,) * 3, "u1"))
            y = large.map_array(model, lazy, scale=1 / 255)
            self.assertEqual(reads, [])
            want = whole(model, as_input(x))[0]
            self.assertEqual((y.shape, y.dtype), (want.shape, want.dtype))
            self.same(y.compute(scheduler="threads"), want)
            self.same(large.map_array(model, lazy, chunk=(33, 80), scale=1 / 255)[:, 20:50, 30:70].compute(), want[:, 20:50, 30:70])
        with self.assertRaisesRegex(onnx_tile.UsageError, "map_array takes an array of Dask"):
            large.map_array(chain(), x)


class Refusals(Folder):
    def test_nodes_in_the_way(self):
        x = np.zeros((1, 64, 64), "f4")
        mean = of_nodes([helper.make_node("GlobalAveragePool", ["x"], ["m"], name="all"), helper.make_node("Sub", ["x", "m"], ["y"])], {})
        if da is not None:
            with self.assertRaisesRegex(onnx_tile.UsageError, "node 'all' .GlobalAveragePool., reduce: .*; a sum over the whole axis has to be"):
                large.map_array(mean, da.from_array(x))
        corners = of_nodes([helper.make_node("Resize", ["x", "", "s"], ["y"], name="grown", mode="linear", coordinate_transformation_mode="align_corners")],
                           {"s": np.array([1, 1, 2, 2], "f4")})
        with self.assertRaisesRegex(onnx_tile.UsageError, "node 'grown' .Resize., fixed-size: .*; export it for the size of the parts"):
            large.apply(corners, x, "y.npy", workers=0)
        self.assertEqual(os.listdir("."), [])

    def test_arguments(self):
        x = np.zeros((3, 64, 64), "f4")
        for pattern, arguments in (("does not take inputs of this shape, .x. .1, 4, 64, 64.: node .conv0.", {"src": np.zeros((4, 64, 64), "f4")}), ("has 4 dimensions, its source 5", {"src": np.zeros((1,) * 5)}),
                                   ("name has to end in", {"src": "x.png"}), ("runtime 'none'", {"runtime": "none"}),
                                   ("has no output 'z'", {"output": "z"}), ("chunk: 3 numbers", {"chunk": (1, 2, 3)}), ("chunk 0", {"chunk": 0}),
                                   ("workers -1", {"workers": -1}), ("threads 0", {"threads": 0}), ("no size", {"budget": "many"}),
                                   ("the target has the shape", {"dst": np.zeros((3, 64, 63), "f4")}), ("the target is float64", {"dst": np.zeros((3, 64, 64))}),
                                   ("other_bits 'x'", {"other_bits": "x"}), ("name has to end in", {"dst": "y.png"})):
            with open("x.png", "wb"):
                pass
            with self.subTest(pattern), self.assertRaisesRegex(onnx_tile.UsageError, pattern):
                large.apply(chain(), **{"src": x, "workers": 0, "chunk": 64, **arguments})
        with self.assertRaisesRegex(onnx_tile.SystemFailure, "cannot read 'none.npy'"):
            large.apply(chain(), "none.npy", workers=0)
        with self.assertRaisesRegex(onnx_tile.SystemFailure, "none/y.npy.onnx-tile/manifest.jsonl'"):
            large.apply(chain(), x, "none/y.npy", workers=0)
        self.assertEqual(os.listdir("."), ["x.png"])

    def test_files_that_are_not_what_they_say(self):
        for name in ("x.npy", "x.tif", "x.zarr"):
            if da is None and name != "x.npy":
                continue
            with open(name, "wb") as f:
                f.write(b"nothing of the kind, for more than some bytes")
            with self.subTest(name), self.assertRaisesRegex(onnx_tile.Error, f"^cannot read '{name}': [^\n]*$"):
                large.apply(chain(), name, "y.npy", workers=0)
        with self.assertRaisesRegex(onnx_tile.ModelError, "the model is no ONNX file"):
            large.apply(b"none", np.zeros((3, 64, 64), "f4"), workers=0)
        self.assertFalse(os.path.exists("y.npy.onnx-tile"))

    def test_other_arrays(self):
        """A run that begins with an array in memory goes on with the same one only."""
        x = np.random.default_rng(12).normal(0, 1, (3, 200, 200)).astype("f4")

        def stop(_progress):
            raise RuntimeError("enough")
        with self.assertRaisesRegex(RuntimeError, "enough"):
            large.apply(chain(), x, "y.npy", workers=0, chunk=90, progress=stop)
        with self.assertRaisesRegex(onnx_tile.UsageError, "begun with another source"):
            large.apply(chain(), x + 1, "y.npy", workers=0)
        self.assertEqual(large.apply(chain(), x, "y.npy", workers=0).done_before, 1)
        self.same(np.load("y.npy"), whole(chain(), x[None])[0])


class Seams(Folder):
    def test_what_the_picture_of_the_documents_shows(self):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
        self.addCleanup(sys.path.pop, 0)
        import large_pictures
        import seams
        seams.SIZE, seams.TILE = 384, 128
        model = large_pictures.unet(width=4, depth=4)
        x = large_pictures.picture(3, seams.SIZE, seams.SIZE)[None].astype("f4") / np.float32(255)
        run = large_pictures.session(model)
        want = run(x)
        self.same(seams.by_geometry(model, x), want)
        for wrong in (seams.cut_by_hand(run, x), seams.blended(run, x)):
            self.assertEqual(wrong.shape, want.shape)
            self.assertGreater(np.abs(wrong - want).max(), np.ptp(want) / 255)
        large_pictures.write_png("p.png", np.zeros((3, 5, 3), "u1"))
        with open("p.png", "rb") as f:
            self.assertEqual(f.read()[:24], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\5\0\0\0\3")


class Command(Folder):
    def run_command(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = _command.main(list(arguments))
            except SystemExit as why:
                status = why.code
        return status, out.getvalue(), err.getvalue()

    def test_command(self):
        x = picture(3, 200, 210)
        np.save("x.npy", x)
        path_of(chain(), ".", "m")
        status, out, err = self.run_command("m.onnx", "x.npy", "y.npy", "--workers", "2", "--chunk", "100,64", "--scale", "1/255")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, "^8 chunks of 100 x 64; .* peak of workers")
        self.same(np.load("y.npy"), whole(chain(), as_input(x))[0])
        for status, pattern, arguments in ((2, "begun with another conversion", ["m.onnx", "x.npy", "y.npy"]), (1, "none.onnx", ["none.onnx", "x.npy", "z.npy"]),
                                           (3, "smallest chunk", ["m.onnx", "x.npy", "z.npy", "--budget", "10M"]),
                                           (4, "cannot read 'n.npy'", ["m.onnx", "n.npy", "z.npy"])):
            found, out, err = self.run_command(*arguments, "--workers", "0")
            self.assertEqual((found, out), (status, ""), err)
            self.assertRegex(err, f"^onnx-tile-apply: error: [^\n]*{pattern}[^\n]*\n$")
        for bad in (["--scale", "1/0"], ["--chunk", "a"], ["--option", "x"], ["--workers", "1", "--scheduler", "tcp://x:1"]):
            self.assertEqual(self.run_command("m.onnx", "x.npy", "z.npy", *bad)[0], 2)


if __name__ == "__main__":
    unittest.main()
