"""Context: what one thread needs to run a model in the engine: arrays that are bound, and memory for values."""
import collections.abc
import ctypes
import os
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import Handle, Tensor, dims_of, path_bytes
from ._long_call import LongCalls
from ._rows import Rows, callback

if TYPE_CHECKING:
    import numpy as np

    from ._long_call import Progress

    # What an input is read from, and what an output is written into.
    Source = Union[np.ndarray, str, "os.PathLike[str]", Rows]
    Place = Union[np.ndarray, str, "os.PathLike[str]", Rows]

# NumPy's names of the types of elements, by ONNX's numbers. bfloat16 has none in NumPy: it comes and goes as uint16.
DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
           11: "float64", 12: "uint32", 13: "uint64", 16: "uint16", 17: "uint8", 18: "uint8", 19: "uint8", 20: "uint8", 24: "uint8"}
# Types below a byte, of outputs: values of integers, codes of floats; they cannot be bound.
_BELOW_A_BYTE = {21: "uint8", 22: "int8", 23: "uint8", 25: "uint8", 26: "int8"}

_NOTHING = ctypes.c_int64()  # where arrays without elements lie


def _listed(names: "List[str]") -> str:
    """"'a', 'b' and 3 more"."""
    shown = ", ".join(f"'{n}'" for n in names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown or "none"


class Value(NamedTuple):
    """An input or output of a model. dtype: NumPy's name, None for what is no tensor of numbers. shape: None where not known, else
    dimensions, of which those that are free are None."""

    name: str
    dtype: Optional[str]
    shape: Optional[Tuple[Optional[int], ...]]


class Context:
    """One handle of the library. One thread at a time."""

    def __init__(self, numpy: Any, handle: Handle) -> None:
        """handle: with a loaded model."""
        self._np = numpy
        self.handle = handle
        self._calls = LongCalls(handle)
        self._bound: Dict[int, Any] = {}
        self._kept: List[Any] = []  # functions of the run
        self.inputs = [self._value("input", k) for k in range(handle.count("input_count"))]
        self.outputs = [self._value("output", k) for k in range(handle.count("output_count"))]

    def _value(self, kind: str, k: int) -> Value:
        t = Tensor()
        self.handle.call(kind, k, byref(t))
        shape = None if t.rank < 0 else tuple(None if d < 0 else d for d in t.dims[:t.rank])
        return Value((t.name or b"").decode("utf-8", "replace"), DTYPES.get(t.type), shape)

    def _bind_rows(self, k: int, rows: Rows, raised: List[BaseException], writes: bool) -> None:
        value = (self.outputs if writes else self.inputs)[k]
        shape = value.shape if rows.shape is None else rows.shape
        known = [d for d in shape or () if d is not None]
        if shape is None or len(known) < len(shape) or value.dtype is None:
            raise UsageError(f"'{value.name}' has free dimensions: give its shape" + (" to Session(shapes=...)" if writes else ""))
        if not 0 <= rows.axis < len(shape):
            raise UsageError(f"'{value.name}' has {len(shape)} dimensions: it has no rows along axis {rows.axis}")
        function = callback(self._np, rows, known, value.dtype, writes, raised)
        address = ctypes.cast(function, c_void_p)
        if writes:
            self.handle.call("write_output", k, rows.axis, address, None)
        else:
            self.handle.call("read_input", k, dims_of(shape), len(shape), rows.axis, address, None)
        self._kept.append(function)

    def _bind_source(self, k: int, source: Any, raised: List[BaseException]) -> None:
        """What the input is: an array, a file, rows."""
        if isinstance(source, Rows):
            self._bind_rows(k, source, raised, writes=False)
        elif isinstance(source, (str, os.PathLike)):
            shape = self.inputs[k].shape
            bound = shape is not None and None not in shape
            self.handle.call("map_input", k, path_bytes(source), dims_of(shape) if shape and bound else None, len(shape) if shape and bound else 0)
        else:
            self._bind_input(k, source)

    def _bind_place(self, k: int, place: Any, raised: List[BaseException]) -> Any:
        """Where the output goes, which is what the run returns of it; None where the session has it."""
        value, np = self.outputs[k], self._np
        if place is None:
            return self._bind_output(k)
        if isinstance(place, Rows):
            self._bind_rows(k, place, raised, writes=True)
        elif isinstance(place, (str, os.PathLike)):
            self.handle.call("map_output", k, path_bytes(place))
        else:
            if not isinstance(place, np.ndarray) or not place.flags.c_contiguous or not place.flags.writeable:
                raise UsageError(f"the place of output '{value.name}' is no contiguous array that can be written")
            if value.dtype is None or place.dtype != np.dtype(value.dtype) or place.shape != value.shape:
                raise UsageError(f"output '{value.name}' is {value.dtype} {value.shape}, and its place {place.dtype} {place.shape}")
            self.handle.call("bind_output", k, place.ctypes.data if place.size else ctypes.addressof(_NOTHING), place.nbytes)
        return place

    def _bind_input(self, k: int, array: Any) -> None:
        np, value = self._np, self.inputs[k]
        if value.dtype is None:
            raise UsageError(f"input '{value.name}' is no tensor of a type that can be given")
        array = np.asarray(array)
        if array.dtype != np.dtype(value.dtype):
            raise UsageError(f"input '{value.name}' is {value.dtype}, not {array.dtype}")
        array = np.require(array, requirements=["C", "A"])
        if array.ndim > 16:
            raise UsageError(f"input '{value.name}' has {array.ndim} dimensions, 16 are the most")
        place = array.ctypes.data if array.size else ctypes.addressof(_NOTHING)
        self.handle.call("bind_input", k, place, dims_of(array.shape), array.ndim)
        self._bound[k] = array  # the library reads it in each run

    def _bind_output(self, k: int) -> Any:
        """An array for an output of fixed shape, which the run writes into; None where the shape is free."""
        value = self.outputs[k]
        if value.dtype is None or value.shape is None or None in value.shape or 0 in value.shape:
            return None
        array = self._np.empty(value.shape, value.dtype)
        self.handle.call("bind_output", k, array.ctypes.data, array.nbytes)
        return array

    def _read_output(self, k: int) -> Any:
        """A copy of an output that lies in the session's memory."""
        t, data = Tensor(), c_void_p()
        self.handle.call("result", k, byref(t), byref(data))
        dtype = DTYPES.get(t.type) or _BELOW_A_BYTE.get(t.type)
        if dtype is None:
            raise UsageError(f"output '{self.outputs[k].name}' is no tensor of a type that can be read")
        shape = tuple(t.dims[:t.rank])
        array = self._np.empty(shape, dtype)
        ctypes.memmove(array.ctypes.data, data, array.nbytes)
        return array

    def run(self, feeds: "Union[Mapping[str, Source], Sequence[Source]]", outputs: Optional[Sequence[str]], into: "Mapping[str, Place]",
            timeout: Optional[float], progress: "Optional[Progress]") -> "List[Any]":
        """As Session.run."""
        if not isinstance(feeds, collections.abc.Mapping):
            if isinstance(feeds, (str, bytes)) or not hasattr(feeds, "__len__") or not hasattr(feeds, "__getitem__"):
                raise UsageError(f"feeds is a dict of inputs, or a list of arrays in their order, not {type(feeds).__name__}")
            feeds = {v.name: a for v, a in zip(self.inputs, feeds)} if len(feeds) == len(self.inputs) else {}
            if not feeds and self.inputs:
                raise UsageError(f"the model has {len(self.inputs)} input{'' if len(self.inputs) == 1 else 's'}")
        names = [v.name for v in self.inputs]
        for name in feeds:
            if name not in names:
                raise UsageError(f"the model has no input '{name}'; it has {_listed(names)}")
        for name in (*(outputs or ()), *into):
            if name not in (v.name for v in self.outputs):
                raise UsageError(f"the model has no output '{name}'; it has {_listed([v.name for v in self.outputs])}")
        for name in names:
            if name not in feeds:
                raise UsageError(f"input '{name}' is not given")
        known = [v.name for v in self.outputs]
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
            self._calls.call("run", timeout, progress)
            return [self._read_output(k) if places[k] is None else places[k] for k in wanted]
        except Exception:
            if raised:
                raise raised[0]
            raise
        finally:  # nothing of the caller's, and no array that it has, is written or read later
            for k in bound:
                self.handle.call("bind_output", k, None, 0)
            self._kept.clear()

    def close(self) -> None:
        """Free what it holds."""
        self.handle.close()
        self._bound.clear()
