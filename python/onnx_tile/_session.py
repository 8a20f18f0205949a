"""Session: a model in the engine, with NumPy arrays in and out."""
import collections.abc
import ctypes
import json
import os
import threading
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import Handle, Tensor, dims_of, path_bytes
from ._model import load
from ._result import format_bytes, format_seconds, html_table
from ._rows import Rows, callback

if TYPE_CHECKING:
    import numpy as np

    from ._model import Model

    # What an input is read from, and what an output is written into.
    Source = Union[np.ndarray, str, "os.PathLike[str]", Rows]
    Place = Union[np.ndarray, str, "os.PathLike[str]", Rows]

# NumPy's names of the types of elements, by ONNX's numbers. bfloat16 has none in NumPy: it comes and goes as uint16.
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
           11: "float64", 12: "uint32", 13: "uint64", 16: "uint16", 17: "uint8", 18: "uint8", 19: "uint8", 20: "uint8", 24: "uint8"}
# Types below a byte, of outputs: values of integers, codes of floats; they cannot be bound.
_BELOW_A_BYTE = {21: "uint8", 22: "int8", 23: "uint8", 25: "uint8", 26: "int8"}


def _number_of(dtype: str) -> int:
    """ONNX's number of a type that NumPy has."""
    for number, name in _DTYPES.items():
        if name == dtype:
            return number
    raise UsageError(f"there is no type '{dtype}' for inputs")


_NOTHING = ctypes.c_int64()  # where arrays without elements lie


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("onnx_tile.Session needs NumPy: pip install numpy") from None
    return numpy


class Value(NamedTuple):
    """An input or output of a model. dtype: NumPy's name, None for what is no tensor of numbers. shape: None where not known, else
    dimensions, of which those that are free are None."""

    name: str
    dtype: Optional[str]
    shape: Optional[Tuple[Optional[int], ...]]


class Profile:
    """Times of the last run by node, and memory. `nodes`: objects of name, op, measured_seconds, in the order in which they ran; then
    those of tiles' bodies, which are part of their loop's."""

    def __init__(self, data: Dict[str, Any]) -> None:
        """data: what the library tells, as parsed JSON."""
        self.data = data

    @property
    def nodes(self) -> List[Dict[str, Any]]:
        """Objects of name, op, measured_seconds."""
        nodes: List[Dict[str, Any]] = self.data["nodes"]
        return nodes

    def _rows(self, most: int) -> List[List[str]]:
        slow = sorted(self.nodes, key=lambda n: -n["measured_seconds"])[:most]
        return [[format_seconds(n["measured_seconds"]), n["op"], n["name"]] for n in slow]

    def _memory(self) -> str:
        return (f"{format_bytes(self.data['peak_bytes'])} of values at the most, {format_bytes(self.data['planned_peak_bytes'])} of "
                f"them planned; weights {format_bytes(self.data['weight_bytes'])}")

    def __str__(self) -> str:
        return "\n".join([self._memory()] + [f"{time:>9}  {op} {name}" for time, op, name in self._rows(30)])

    def _repr_html_(self) -> str:
        return html_table(["time", "operator", "node"], self._rows(30), self._memory())


class Session:
    """A model that is ready to run in the engine, which needs no other runtime.

        session = onnx_tile.Session("tiled.onnx", threads=4)
        y, = session.run({"x": pixels})

    Inputs are read where they lie when they are contiguous and of the right type; nothing is converted but the layout. Outputs of
    fixed shape are computed in the arrays that come back. Arrays larger than memory are files (.npy, .raw), np.memmap, or `Rows`:

        session.run({"x": "slide.npy"}, into={"y": "mask.npy"})

    Several threads may have sessions of their own at the same time; those
    that share one wait for each other.
    """

    def __init__(self, model: "Model", *, threads: Optional[int] = None, shapes: Optional[Mapping[str, Sequence[int]]] = None,
                 data_dir: "Optional[Union[str, os.PathLike[str]]]" = None,
                 input_types: Optional[Mapping[str, Union[str, Tuple[str, float]]]] = None) -> None:
        """model: a path, bytes or an onnx.ModelProto, tiled or not. threads: that share the work; None: one for each processor that
        this process may use. shapes: {input: dimensions} that are bound: what is fixed throughout runs in memory that was planned.
        data_dir: folder of external data of a model in memory. input_types: {input: type} or {input: (type, scale)} of what is given
        in place of the model's type, as NumPy names it: converted and multiplied tile by tile ({"x": ("uint8", 1 / 255)}). Raises ModelError naming node and operator when the engine cannot
        run it, UsageError when the library was built without the engine."""
        self._np = _numpy()
        self._lock = threading.RLock()
        self._handle = Handle("session_")
        self._bound: Dict[int, Any] = {}
        self._kept: List[Any] = []  # functions of the run
        handle = self._handle
        count = len(os.sched_getaffinity(0)) if threads is None else threads
        if not 1 <= count <= 4096:
            raise UsageError(f"threads {count!r}: from 1 to 4096")
        handle.call("set_threads", count)
        for name, dims in (shapes or {}).items():
            handle.call("bind_shape", name.encode(), dims_of(dims), len(dims))
        for name, form in (input_types or {}).items():
            kind, scale = (form, 1.0) if isinstance(form, str) else form
            handle.call("set_input_type", name.encode(), _number_of(kind), float(scale))
        load(handle, model, data_dir)
        self._inputs = [self._value("input", k) for k in range(handle.count("input_count"))]
        self._outputs = [self._value("output", k) for k in range(handle.count("output_count"))]

    def _value(self, kind: str, k: int) -> Value:
        t = Tensor()
        self._handle.call(kind, k, byref(t))
        shape = None if t.rank < 0 else tuple(None if d < 0 else d for d in t.dims[:t.rank])
        return Value((t.name or b"").decode("utf-8", "replace"), _DTYPES.get(t.type), shape)

    @property
    def inputs(self) -> List[Value]:
        """Inputs that `run` needs, in the model's order."""
        return list(self._inputs)

    @property
    def outputs(self) -> List[Value]:
        """Outputs, in the model's order."""
        return list(self._outputs)

    def _bind_rows(self, k: int, rows: Rows, raised: List[BaseException], writes: bool) -> None:
        value = (self._outputs if writes else self._inputs)[k]
        shape = value.shape if rows.shape is None else rows.shape
        known = [d for d in shape or () if d is not None]
        if shape is None or len(known) < len(shape) or value.dtype is None:
            raise UsageError(f"'{value.name}' has free dimensions: give its shape" + (" to Session(shapes=...)" if writes else ""))
        if not 0 <= rows.axis < len(shape):
            raise UsageError(f"'{value.name}' has {len(shape)} dimensions: it has no rows along axis {rows.axis}")
        function = callback(self._np, rows, known, value.dtype, writes, raised)
        address = ctypes.cast(function, c_void_p)
        if writes:
            self._handle.call("write_output", k, rows.axis, address, None)
        else:
            self._handle.call("read_input", k, dims_of(shape), len(shape), rows.axis, address, None)
        self._kept.append(function)

    def _bind_source(self, k: int, source: Any, raised: List[BaseException]) -> None:
        """What the input is: an array, a file, rows."""
        if isinstance(source, Rows):
            self._bind_rows(k, source, raised, writes=False)
        elif isinstance(source, (str, os.PathLike)):
            shape = self._inputs[k].shape
            bound = shape is not None and None not in shape
            self._handle.call("map_input", k, path_bytes(source), dims_of(shape) if shape and bound else None, len(shape) if shape and bound else 0)
        else:
            self._bind_input(k, source)

    def _bind_place(self, k: int, place: Any, raised: List[BaseException]) -> Any:
        """Where the output goes, which is what the run returns of it; None where the session has it."""
        value, np = self._outputs[k], self._np
        if place is None:
            return self._bind_output(k)
        if isinstance(place, Rows):
            self._bind_rows(k, place, raised, writes=True)
        elif isinstance(place, (str, os.PathLike)):
            self._handle.call("map_output", k, path_bytes(place))
        else:
            if not isinstance(place, np.ndarray) or not place.flags.c_contiguous or not place.flags.writeable:
                raise UsageError(f"the place of output '{value.name}' is no contiguous array that can be written")
            if value.dtype is None or place.dtype != np.dtype(value.dtype) or place.shape != value.shape:
                raise UsageError(f"output '{value.name}' is {value.dtype} {value.shape}, and its place {place.dtype} {place.shape}")
            self._handle.call("bind_output", k, place.ctypes.data if place.size else ctypes.addressof(_NOTHING), place.nbytes)
        return place

    def _bind_input(self, k: int, array: Any) -> None:
        np, value = self._np, self._inputs[k]
        if value.dtype is None:
            raise UsageError(f"input '{value.name}' is no tensor of a type that can be given")
        array = np.asarray(array)
        if array.dtype != np.dtype(value.dtype):
            raise UsageError(f"input '{value.name}' is {value.dtype}, not {array.dtype}")
        array = np.require(array, requirements=["C", "A"])
        if array.ndim > 16:
            raise UsageError(f"input '{value.name}' has {array.ndim} dimensions, 16 are the most")
        place = array.ctypes.data if array.size else ctypes.addressof(_NOTHING)
        self._handle.call("bind_input", k, place, dims_of(array.shape), array.ndim)
        self._bound[k] = array  # the library reads it in each run

    def _bind_output(self, k: int) -> Any:
        """An array for an output of fixed shape, which the run writes into; None where the shape is free."""
        value = self._outputs[k]
        if value.dtype is None or value.shape is None or None in value.shape or 0 in value.shape:
            return None
        array = self._np.empty(value.shape, value.dtype)
        self._handle.call("bind_output", k, array.ctypes.data, array.nbytes)
        return array

    def _read_output(self, k: int) -> Any:
        """A copy of an output that lies in the session's memory."""
        t, data = Tensor(), c_void_p()
        self._handle.call("result", k, byref(t), byref(data))
        dtype = _DTYPES.get(t.type) or _BELOW_A_BYTE.get(t.type)
        if dtype is None:
            raise UsageError(f"output '{self._outputs[k].name}' is no tensor of a type that can be read")
        shape = tuple(t.dims[:t.rank])
        array = self._np.empty(shape, dtype)
        ctypes.memmove(array.ctypes.data, data, array.nbytes)
        return array

    def run(self, feeds: "Union[Mapping[str, Source], Sequence[Source]]", outputs: Optional[Sequence[str]] = None, *,
            into: "Optional[Mapping[str, Place]]" = None) -> "List[Any]":
        """Compute the outputs, all of them or those that are named, in that order. feeds: {input: array, path of a file or Rows}, or a
        list of these in the order of the inputs. into: {output: array, path or Rows} that it is written into, and that comes back in its
        place; its dimensions are fixed. A file appears whole or not at all. Raises UsageError for what is missing or of another type,
        ModelError for a shape that the model does not take and files that are not what they have to be. Waits while another thread
        runs the session."""
        with self._lock:
            return self._run(feeds, outputs, into or {})

    def _run(self, feeds: "Union[Mapping[str, Source], Sequence[Source]]", outputs: Optional[Sequence[str]],
             into: "Mapping[str, Place]") -> "List[Any]":
        if not isinstance(feeds, collections.abc.Mapping):
            feeds = {v.name: a for v, a in zip(self._inputs, feeds)} if len(feeds) == len(self._inputs) else {}
            if not feeds and self._inputs:
                raise UsageError(f"the model has {len(self._inputs)} inputs")
        names = [v.name for v in self._inputs]
        for name in feeds:
            if name not in names:
                raise UsageError(f"the model has no input '{name}'")
        for name in (*(outputs or ()), *into):
            if name not in (v.name for v in self._outputs):
                raise UsageError(f"the model has no output '{name}'")
        for name in names:
            if name not in feeds:
                raise UsageError(f"input '{name}' is not given")
        known = [v.name for v in self._outputs]
        wanted = range(len(known)) if outputs is None else [known.index(n) for n in outputs]
        raised: List[BaseException] = []
        bound: List[int] = []
        try:
            for k, name in enumerate(names):
                self._bind_source(k, feeds[name], raised)
            places = {}
            for k in dict.fromkeys([*wanted, *map(known.index, into)]):
                bound.append(k)
                places[k] = self._bind_place(k, into.get(known[k]), raised)
            self._handle.call("run")
            return [self._read_output(k) if places[k] is None else places[k] for k in wanted]
        except Exception:
            if raised:
                raise raised[0]
            raise
        finally:  # nothing of the caller's, and no array that it has, is written or read later
            for k in bound:
                self._handle.call("bind_output", k, None, 0)
            self._kept.clear()

    def profile(self) -> Profile:
        """Times of the last run by node, and what memory the runs took."""
        with self._lock:
            return Profile(json.loads(self._handle.text("profile")))

    def close(self) -> None:
        """Free what the session holds, when a run in another thread has ended; it cannot be used afterwards."""
        with self._lock:
            self._handle.close()
            self._bound.clear()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<onnx_tile.Session: {', '.join(v.name for v in self._inputs)} -> {', '.join(v.name for v in self._outputs)}>"
