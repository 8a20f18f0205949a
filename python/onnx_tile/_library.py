"""The C library as ctypes sees it: include/onnx_tile.h, declared once. ctypes gives up the interpreter's lock while a call runs."""
import collections.abc
import ctypes
import operator
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._errors import UsageError, error_of

HERE = os.path.dirname(os.path.abspath(__file__))
RANK_MAX = 16

# Numbers of onnx_tile_text.
TABLE, JSON, EXPLAIN, EXPLAIN_JSON, HTML, XML, CSV = range(7)


class Tensor(ctypes.Structure):
    """onnx_tile_tensor: name, type and shape of an input or output; -1: not known."""

    _fields_ = [("name", c_char_p), ("type", c_int32), ("rank", c_int32), ("dims", c_int64 * RANK_MAX)]


# Functions by what they return, and the types of their arguments: h is the handle.
_STATUS: Dict[str, List[Any]] = {
    "create": [POINTER(c_void_p)],
    "parse_size": [c_char_p, POINTER(c_int64)],
    "set_target": ["h", c_char_p],
    "set_runtime": ["h", c_char_p],
    "set_ort_operators": ["h", c_char_p],
    "set_l2": ["h", c_int64],
    "set_threads": ["h", c_uint32],
    "set_goal": ["h", c_int],
    "set_memory_budget": ["h", c_int64],
    "set_best_effort": ["h", c_int],
    "set_max_tensor": ["h", c_int64],
    "set_max_slowdown": ["h", c_double],
    "set_force": ["h", c_int],
    "set_bit_exact": ["h", c_int],
    "set_data_file": ["h", c_int],
    "keep_report": ["h", c_int],
    "bind_shape": ["h", c_char_p, POINTER(c_int64), c_uint32],
    "design_shape": ["h", c_char_p, POINTER(c_int64), c_uint32],
    "range_shape": ["h", c_char_p, POINTER(c_int64), POINTER(c_int64), POINTER(c_int64), c_uint32],
    "set_verify": ["h", c_int],
    "load_file": ["h", c_char_p],
    "load_memory": ["h", c_char_p, c_size_t, c_char_p],
    "input": ["h", c_uint32, POINTER(Tensor)],
    "geometry": ["h", c_int, POINTER(c_void_p)],
    "passes": ["h", c_char_p],
    "set_store": ["h", c_int],
    "step": ["h", c_char_p, c_uint32, c_int64],
    "set_timeout": ["h", c_double],
    "set_progress": ["h", c_void_p, c_void_p],
    "optimise": ["h"],
    "inspect": ["h"],
    "save_file": ["h", c_char_p],
    "save_memory": ["h", POINTER(c_void_p), POINTER(c_size_t)],
    "results_text": ["h", c_int, POINTER(c_void_p)],
    "save_report": ["h", c_char_p],
    "session_create": [POINTER(c_void_p)],
    "session_set_threads": ["h", c_uint32],
    "session_bind_shape": ["h", c_char_p, POINTER(c_int64), c_uint32],
    "session_set_plan": ["h", c_int32],
    "session_set_input_type": ["h", c_char_p, c_int32, c_double],
    "session_load_file": ["h", c_char_p],
    "session_load_memory": ["h", c_char_p, c_size_t, c_char_p],
    "session_input": ["h", c_uint32, POINTER(Tensor)],
    "session_output": ["h", c_uint32, POINTER(Tensor)],
    "session_bind_input": ["h", c_uint32, c_void_p, POINTER(c_int64), c_uint32],
    "session_bind_output": ["h", c_uint32, c_void_p, c_size_t],
    "session_map_input": ["h", c_uint32, c_char_p, POINTER(c_int64), c_uint32],
    "session_map_output": ["h", c_uint32, c_char_p],
    "session_read_input": ["h", c_uint32, POINTER(c_int64), c_uint32, c_uint32, c_void_p, c_void_p],
    "session_write_output": ["h", c_uint32, c_uint32, c_void_p, c_void_p],
    "session_share": ["h", POINTER(c_void_p)],
    "session_set_timeout": ["h", c_double],
    "session_set_progress": ["h", c_void_p, c_void_p],
    "session_run": ["h"],
    "session_result": ["h", c_uint32, POINTER(Tensor), POINTER(c_void_p)],
    "session_profile": ["h", POINTER(c_void_p)],
}
_OTHERS: Dict[str, Tuple[Any, List[Any]]] = {
    "version": (c_char_p, []),
    "free": (None, ["h"]),
    "error": (c_char_p, ["h"]),
    "free_bytes": (None, [c_void_p]),
    "session_free": (None, ["h"]),
    "cancel": (None, ["h"]),
    "session_cancel": (None, ["h"]),
    "session_notice": (c_char_p, ["h"]),
    "session_error": (c_char_p, ["h"]),
    "input_count": (c_uint32, ["h"]),
    "session_input_count": (c_uint32, ["h"]),
    "session_output_count": (c_uint32, ["h"]),
}


path: str = os.environ.get("ONNX_TILE_LIBRARY") or os.path.join(HERE, "lib", "libonnxtile.so")


def _load() -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"cannot load the library of onnx-tile: {why}") from None
    for name, (result, arguments) in {**{n: (c_int, a) for n, a in _STATUS.items()}, **_OTHERS}.items():
        function = getattr(lib, "onnx_tile_" + name)
        function.restype = result
        function.argtypes = [c_void_p if a == "h" else a for a in arguments]
    return lib


lib = _load()
version: str = lib.onnx_tile_version().decode()


def int64_of(value: Any, what: str) -> int:
    """A whole number that the library can take: ctypes would cut one of more than 64 bits down without a word."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or not -2**63 <= number < 2**63:
        raise UsageError(f"{value!r} is no {what}: use a whole number below 2**63")
    return number


def number_of(value: Any, what: str, least: float, most: float) -> float:
    """A number from least to most; UsageError else."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or not least <= float(value) <= most:
        raise UsageError(f"{what} {value!r}: a number from {least:g} to {most:g}")
    return float(value)


def text_of(value: Any, what: str) -> bytes:
    """A text as the library takes it."""
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is no {what}: use a text")
    return value.encode()


def dims_of(shape: Sequence[Any]) -> "ctypes.Array[c_int64]":
    """A shape as the library takes it."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__len__") or not hasattr(shape, "__getitem__"):
        raise UsageError(f"{shape!r} is no shape: use a sequence of whole numbers")
    return (c_int64 * len(shape))(*(int64_of(d, "dimension") for d in shape))


def items_of(given: Any, what: str) -> "List[Tuple[Any, Any]]":
    """What a mapping by names of inputs has; None: nothing. UsageError for anything else."""
    if given is None:
        return []
    if not isinstance(given, collections.abc.Mapping):
        raise UsageError(f"{what} {given!r}: use a dict of inputs, such as {{'input': (1, 3, 224, 224)}}")
    return list(given.items())


def ranges_of(sizes: Sequence[Any]) -> "Tuple[ctypes.Array[c_int64], ctypes.Array[c_int64], ctypes.Array[c_int64]]":
    """Sizes of an input as the library takes them: for each dimension a number, (first, last) or (first, last, step)."""
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__len__") or not hasattr(sizes, "__getitem__"):
        raise UsageError(f"{sizes!r} are no sizes: use a sequence of whole numbers and ranges")
    rows: List[List[int]] = []
    for d in sizes:
        row = [int64_of(n, "dimension") for n in d] if isinstance(d, (tuple, list)) else [int64_of(d, "dimension")] * 2
        if len(row) not in (2, 3):
            raise UsageError(f"{d!r} is no range of sizes: use (first, last) or (first, last, step)")
        rows.append([*row, 1][:3])
    lo, hi, step = ((c_int64 * len(rows))(*(r[k] for r in rows)) for k in range(3))
    return lo, hi, step


def path_bytes(path: "Union[str, bytes, os.PathLike[Any]]") -> bytes:
    """A path as the library takes it; a text with a 0 in it is no path."""
    raw = os.fsencode(path)
    if b"\0" in raw:
        raise UsageError("a path holds a 0 character")
    return raw


def size_of(value: Any) -> int:
    """Bytes: a number, or a text as the program's options take it ("200M", "1.5GB"; K is 1024)."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return int64_of(value, "size")
    out = c_int64()
    if not isinstance(value, str) or lib.onnx_tile_parse_size(value.encode(), byref(out)) != 0:
        raise UsageError(f"{value!r} is no size: use bytes, or a text such as '200M' or '1.5GB'")
    return out.value


class Handle:
    """A handle of the library, freed with the object; calls that fail raise the exception of their status."""

    def __init__(self, prefix: str = "", of: "Optional[Handle]" = None) -> None:
        """prefix: "" for a model to tile, "session_" for one to run. of: the session that this one shares the model of."""
        self._prefix = prefix
        self._handle: Optional[c_void_p] = None
        handle = c_void_p()
        if of is not None:
            of.call("share", byref(handle))
            self._handle = handle
            return
        status = getattr(lib, f"onnx_tile_{prefix}create")(byref(handle))
        if status:
            raise error_of(status, "out of memory")
        self._handle = handle

    def call(self, name: str, *arguments: Any) -> None:
        """Call onnx_tile_PREFIXname(handle, ...); raises with the line that the library has for a failure."""
        if self._handle is None:
            raise UsageError("the session is closed")
        status = getattr(lib, f"onnx_tile_{self._prefix}{name}")(self._handle, *arguments)
        if status:
            line = getattr(lib, f"onnx_tile_{self._prefix}error")(self._handle) or b""
            raise error_of(status, line.decode("utf-8", "replace"))

    def count(self, name: str) -> int:
        """Call a function that returns a number."""
        number: int = getattr(lib, f"onnx_tile_{self._prefix}{name}")(self._handle)
        return number

    def cancel(self) -> None:
        """End a long call that another thread is in; by any thread, also where the handle is closed."""
        if self._handle is not None:
            getattr(lib, f"onnx_tile_{self._prefix}cancel")(self._handle)

    def words(self, name: str) -> str:
        """Call a function that returns a text of the library's."""
        raw: Optional[bytes] = getattr(lib, f"onnx_tile_{self._prefix}{name}")(self._handle)
        return (raw or b"").decode("utf-8", "replace")

    def text(self, name: str, *arguments: Any) -> str:
        """Call a function whose last argument receives a text that is the caller's."""
        out = c_void_p()
        self.call(name, *arguments, byref(out))
        try:
            return ctypes.string_at(out).decode("utf-8", "replace")
        finally:
            lib.onnx_tile_free_bytes(out)

    def close(self) -> None:
        """Free what the library holds; may be called again."""
        handle, self._handle = self._handle, None
        if handle is not None:
            getattr(lib, f"onnx_tile_{self._prefix}free")(handle)

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and lib is not None:
            self.close()
