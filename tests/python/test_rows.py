"""Session: arrays that are files, np.memmap, or functions of rows."""
import os
import tempfile
import unittest

import networks
import numpy as np

import onnx_tile

SHAPE = (1, 3, 600, 400)


class LargeArrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.x = np.random.default_rng(1).random(SHAPE, np.float32)
        cls.tiled, result = onnx_tile.tile(networks.conv_chain(*SHAPE[2:]), runtime="engine", fast_memory="256K", threads=1)
        assert len(result.regions) > 0
        cls.session = onnx_tile.Session(cls.tiled, threads=2)
        cls.y, = cls.session.run({"x": cls.x})

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        np.save(self.at("x.npy"), self.x)
        self.x.tofile(self.at("x.raw"))

    def at(self, name):
        return os.path.join(self.folder, name)

    def test_files(self):
        for source, target in (("x.npy", "y.npy"), ("x.raw", "y.raw")):
            got = self.session.run({"x": self.at(source)}, into={"y": self.at(target)})
            self.assertEqual(got, [self.at(target)])
            y = np.load(self.at(target)) if target.endswith("npy") else np.fromfile(self.at(target), np.float32)
            self.assertEqual(y.tobytes(), self.y.tobytes())

    def test_arrays_are_written_in_place(self):
        place = np.lib.format.open_memmap(self.at("y.npy"), "w+", np.float32, SHAPE)
        got, = self.session.run([np.load(self.at("x.npy"), mmap_mode="r")], into={"y": place})
        self.assertIs(got, place)
        self.assertEqual(place.tobytes(), self.y.tobytes())

    def test_rows(self):
        read, written = np.zeros(SHAPE[2], int), []
        y = np.zeros(SHAPE, np.float32)

        def reader(first, end):
            read[first:end] += 1
            return self.x[:, :, first:end]

        def writer(first, rows):
            written.append((first, first + rows.shape[2]))
            self.assertFalse(rows.flags.writeable)
            y[:, :, first:first + rows.shape[2]] = rows
        for shape in (None, SHAPE):
            written.clear()
            read[:] = 0
            self.session.run({"x": onnx_tile.Rows(reader, shape, axis=2)}, into={"y": onnx_tile.Rows(writer, axis=2)})
            self.assertEqual(y.tobytes(), self.y.tobytes())
            self.assertEqual(written, sorted(written))
            self.assertEqual([end for _, end in written], [first for first, _ in written[1:]] + [SHAPE[2]])
            self.assertTrue((read >= 1).all() and read.sum() < 1.2 * SHAPE[2])

    def test_bytes_are_converted(self):
        pixels = np.random.default_rng(2).integers(0, 256, SHAPE, np.uint8)
        want, = self.session.run({"x": pixels.astype("f4") * np.float32(1 / 255)})
        with onnx_tile.Session(self.tiled, threads=2, input_types={"x": ("uint8", 1 / 255)}) as session:
            self.assertEqual(session.inputs[0].dtype, "uint8")
            self.assertEqual(session.run({"x": pixels})[0].tobytes(), want.tobytes())
            rows = onnx_tile.Rows(lambda first, end: pixels[:, :, first:end], axis=2)
            self.assertEqual(session.run({"x": rows})[0].tobytes(), want.tobytes())
            more = session.profile().data["peak_bytes"] - self.session.profile().data["peak_bytes"]
            self.assertLess(more, pixels.size, "they are floats all at once")
        for form, line in (("text", "no type 'text'"), (("uint8", 0), "other than 0")):
            with self.assertRaisesRegex(onnx_tile.UsageError, line):
                onnx_tile.Session(self.tiled, input_types={"x": form})
        with self.assertRaisesRegex(onnx_tile.UsageError, "no input 'z'"):
            onnx_tile.Session(self.tiled, input_types={"z": "uint8"})
        with self.assertRaisesRegex(onnx_tile.ModelError, "cannot come as bool"):
            onnx_tile.Session(self.tiled, input_types={"x": "bool"})

    def test_what_functions_raise_comes_out(self):
        def reader(first, end):
            raise KeyError(first)
        with self.assertRaises(KeyError):
            self.session.run({"x": onnx_tile.Rows(reader, axis=2)})
        with self.assertRaises(ZeroDivisionError):
            self.session.run({"x": self.x}, into={"y": onnx_tile.Rows(lambda first, rows: 1 // 0, axis=2)})
        with self.assertRaisesRegex(onnx_tile.UsageError, r"are float64 \(1, 3, \d+, 400\), not float32"):
            self.session.run({"x": onnx_tile.Rows(lambda first, end: self.x[:, :, first:end].astype("f8"), axis=2)})
        self.assertEqual(self.session.run({"x": self.x})[0].tobytes(), self.y.tobytes())  # and goes on

    def test_refusals(self):
        readonly = np.zeros(SHAPE, np.float32)
        readonly.flags.writeable = False
        cases = [("has 4 dimensions", {"x": onnx_tile.Rows(None, axis=4)}, {}), ("no output 'z'", {"x": self.x}, {"z": self.at("z.npy")}),
                 ("can be written", {"x": self.x}, {"y": readonly}), ("its place float64", {"x": self.x}, {"y": np.zeros(SHAPE)}),
                 ("one file", {"x": self.at("x.npy")}, {"y": self.at("x.npy")})]
        for line, feeds, into in cases:
            with self.assertRaisesRegex(onnx_tile.UsageError, line):
                self.session.run(feeds, into=into)
        with self.assertRaisesRegex(onnx_tile.ModelError, "cannot read"):
            self.session.run({"x": self.at("none.npy")})
        os.truncate(self.at("x.npy"), 100000)
        with self.assertRaisesRegex(onnx_tile.ModelError, "fewer elements"):
            self.session.run({"x": self.at("x.npy")}, into={"y": self.at("y.npy")})
        with self.assertRaises(onnx_tile.SystemFailure):
            self.session.run({"x": self.x}, into={"y": self.at("none/y.npy")})
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.npy", "x.raw"])


if __name__ == "__main__":
    unittest.main()
