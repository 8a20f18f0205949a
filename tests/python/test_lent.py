"""Constants that stay in memory of the caller's, through the C interface: plans and results are those of a model that holds them."""
import ctypes
import unittest

import networks
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_tile
from onnx_tile import _library

LEAST = 16 << 10  # bytes of what the provider lends


class Lent(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("release", ctypes.c_void_p), ("of", ctypes.c_void_p)]


def lend(model, least=LEAST):
    """The model without the contents of its large constants, and these."""
    copy, pieces = onnx.ModelProto(), []
    copy.CopyFrom(model)
    for t in copy.graph.initializer:
        array = np.array(numpy_helper.to_array(t))
        if array.nbytes < least:
            continue
        bare = TensorProto(name=t.name, data_type=t.data_type, dims=t.dims, data_location=TensorProto.EXTERNAL)
        bare.external_data.add(key="location", value=str(len(pieces)))
        t.CopyFrom(bare)
        pieces.append(array)
    return copy.SerializeToString(), pieces


def table(pieces):
    return (Lent * (len(pieces) + 1))(*[Lent(p.ctypes.data, p.nbytes) for p in pieces])


class Session:
    """A session of bytes and what is lent to them, of the C interface."""

    def __init__(self, data, pieces, count=None):
        self.lib = ctypes.CDLL(_library.path)
        self.lib.onnx_tile_session_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        self.lib.onnx_tile_session_create(ctypes.byref(self.handle))
        self.status = self.lib.onnx_tile_session_load_lent(self.handle, data, ctypes.c_size_t(len(data)), table(pieces),
                                                           ctypes.c_size_t(len(pieces) if count is None else count))

    def error(self):
        return self.lib.onnx_tile_session_error(self.handle).decode()

    def run(self, arrays, shape):
        out = np.empty(shape, np.float32)
        for k, a in enumerate(arrays):
            dims = (ctypes.c_int64 * a.ndim)(*a.shape)
            if self.lib.onnx_tile_session_bind_input(self.handle, k, ctypes.c_void_p(a.ctypes.data), dims, a.ndim):
                raise AssertionError(self.error())
        if self.lib.onnx_tile_session_bind_output(self.handle, 0, ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.nbytes)):
            raise AssertionError(self.error())
        if self.lib.onnx_tile_session_run(self.handle):
            raise AssertionError(self.error())
        return out

    def close(self):
        self.lib.onnx_tile_session_free(self.handle)


def planned(data, pieces, inline=False):
    """That model as it is planned for the engine, without the contents of what is lent; inline: with them."""
    lib = ctypes.CDLL(_library.path)
    lib.onnx_tile_error.restype = ctypes.c_char_p
    t, out, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    lib.onnx_tile_create(ctypes.byref(t))
    save = lib.onnx_tile_save_memory if inline else lib.onnx_tile_save_lent
    failed = (lib.onnx_tile_set_runtime(t, b"engine") or lib.onnx_tile_set_goal(t, 1) or
              lib.onnx_tile_load_lent(t, data, ctypes.c_size_t(len(data)), table(pieces), ctypes.c_size_t(len(pieces))) or
              lib.onnx_tile_optimise(t) or save(t, ctypes.byref(out), ctypes.byref(n)))
    line = lib.onnx_tile_error(t).decode()
    made = ctypes.string_at(out, n.value) if not failed else None
    lib.onnx_tile_free_bytes(out)
    lib.onnx_tile_free(t)
    if failed:
        raise AssertionError(line)
    return made


def constants():
    """Constants that kernels pack, that they read as they are, that tiles read, and both of one."""
    rng = np.random.default_rng(3)

    def weights(name, *dims):
        return numpy_helper.from_array((rng.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))).astype(np.float32), name)

    bytes_ = numpy_helper.from_array(rng.integers(-90, 90, (96, 96, 3, 3)).astype(np.int8), "bytes")
    init = [weights("first", 96, 3, 3, 3), weights("deep", 96, 1, 13, 13), weights("conv", 96, 96, 3, 3), weights("place", 1, 96, 24, 24),
            weights("turned", 96, 96, 2, 2), weights("matrix", 96, 96), weights("pieces", 576, 96), bytes_,
            numpy_helper.from_array(np.float32(0.01), "step"), numpy_helper.from_array(np.arange(0, 576, 2), "rows"),
            numpy_helper.from_array(np.array([1, 96, 576]), "flat")]
    node = helper.make_node
    nodes = [node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
             node("Conv", ["b", "deep"], ["c"], pads=[6, 6, 6, 6], group=96), node("Conv", ["c", "conv"], ["d"], pads=[1, 1, 1, 1]),
             node("Add", ["d", "place"], ["e"]), node("DequantizeLinear", ["bytes", "step"], ["w8"]),
             node("Conv", ["e", "w8"], ["f"], pads=[1, 1, 1, 1]), node("Reshape", ["f", "flat"], ["g"]), node("Transpose", ["g"], ["h"], perm=[0, 2, 1]),
             node("MatMul", ["h", "matrix"], ["i"]), node("Transpose", ["pieces"], ["across"], perm=[1, 0]),
             node("MatMul", ["i", "across"], ["j"]), node("Gather", ["pieces", "rows"], ["k"], axis=0), node("Transpose", ["k"], ["l"], perm=[1, 0]),
             node("MatMul", ["i", "l"], ["m"]), node("ReduceMean", ["m"], ["n"], axes=[2], keepdims=1), node("Mul", ["j", "n"], ["y"])]
    graph = helper.make_graph(nodes, "constants", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 24, 24])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 576, 576])], init)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class LentConstants(unittest.TestCase):
    def check(self, model, x, least=LEAST):
        """The plan, whole and with constants outside; then what was lent is overwritten before the first run."""
        data, pieces = lend(model, least)
        self.assertGreater(len(pieces), 0)
        bare = planned(data, pieces)
        whole = planned(data, pieces, inline=True)
        self.assertEqual(whole, planned(model.SerializeToString(), []))
        self.assertLess(len(bare), len(whole) - sum(p.nbytes for p in pieces) // 2)
        for there, outside in ((whole, bare), (model.SerializeToString(), data)):
            want, = onnx_tile.Session(there, threads=1).run({"x": x})
            own = [p.copy() for p in pieces]
            session = Session(outside, own)
            self.assertEqual(session.status, 0, session.error())
            for p in own:
                p.view(np.uint8)[...] = 0xff
            for _ in range(2):
                self.assertTrue(np.array_equal(session.run([x], want.shape), want))
            session.close()

    def test_packed_and_read_as_they_are(self):
        self.check(constants(), np.random.default_rng(4).random((1, 3, 24, 24), np.float32))

    def test_read_by_tiles(self):
        self.check(networks.conv_chain(256, 256, channels=32), np.random.default_rng(4).random((1, 3, 256, 256), np.float32))

    def test_refused(self):
        data, pieces = lend(networks.conv_chain(64, 64, channels=32))
        for count, line in ((0, "external data is none of the pieces of memory that are lent: '0'"), (1, "lent: '1'")):
            session = Session(data, pieces, count)
            self.assertEqual(session.status, 1)
            self.assertIn(line, session.error())
            session.close()
        session = Session(data, [p[:1] for p in pieces])
        self.assertIn("passes the end", session.error())
        session.close()
        with self.assertRaisesRegex(onnx_tile.ModelError, "needs the model's folder"):
            onnx_tile.Session(data)


if __name__ == "__main__":
    unittest.main()
