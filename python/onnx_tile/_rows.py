"""Rows: arrays of a session that a function has, row by row."""
import ctypes
from typing import Any, Callable, List, Optional, Sequence

from ._errors import UsageError


class Rows:
    """An array of which a function has the rows; the session holds those that its tiles need.

        def read(first, end):                     # of an input: rows [first, end) along the axis, all other dimensions whole
            return slide[..., first:end, :]
        def write(first, rows):                   # of an output: in order, each row once; `rows` is the session's memory until it returns
            mask[..., first:first + rows.shape[2], :] = rows
        session.run({"x": onnx_tile.Rows(read, slide.shape, axis=2)}, into={"y": onnx_tile.Rows(write, axis=2)})

    Functions are called by the session's threads, one call at a time for an array; what they raise, `run` raises.
    """

    def __init__(self, function: Callable[..., Any], shape: Optional[Sequence[int]] = None, *, axis: int) -> None:
        """shape: of an input; None: the model's own. axis: along which rows are counted, from 0 on."""
        self.function, self.axis = function, axis
        self.shape = None if shape is None else tuple(shape)


# int (*)(void *of, int64_t first, int64_t end, void *rows)
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def callback(np: Any, rows: Rows, shape: Sequence[int], dtype: Any, writes: bool, raised: List[BaseException]) -> Any:
    """The function as the library calls it; what it raises is appended to `raised`. Must outlive the binding."""
    def view(first: int, end: int, address: int) -> Any:
        part = [end - first if k == rows.axis else n for k, n in enumerate(shape)]
        count = int(np.prod(part, dtype=np.int64)) * np.dtype(dtype).itemsize
        return np.frombuffer((ctypes.c_char * count).from_address(address), dtype).reshape(part)

    def call(_of: Any, first: int, end: int, address: int) -> int:
        try:
            part = view(first, end, address)
            if writes:
                part.flags.writeable = False
                rows.function(first, part)
                return 0
            given = np.asarray(rows.function(first, end))
            if given.dtype != part.dtype or given.shape != part.shape:
                raise UsageError(f"rows [{first}, {end}) are {given.dtype} {given.shape}, not {part.dtype} {part.shape}")
            part[...] = given
            return 0
        except BaseException as why:  # it cannot go through the library
            raised.append(why)
            return 1
    return CALLBACK(call)
