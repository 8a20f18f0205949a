"""Sessions of ONNX Runtime in processes that hold little.

Loading a model frees copies of its weights. Where the C library took them from its heap, their pages stay in the process; where it mapped
them, they go back to the system. glibc maps pieces of 128 KiB and more until one of them is freed, and from then on only larger ones:

    loading    copy of w 1   copy of w 2    ...   packed w 1, w 2, ...
    heap       [..free..]    [..free..]           [........live......]      free pages stay below what is live
    mapped                                        [........live......]

`session` keeps that limit where it is, and gives back what is free. A pattern of the tensors of a run, which later runs take in one block
beside what the first run took, is not kept.
"""
import ctypes
import os
import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from ._errors import UsageError
from ._model import bytes_of, is_path

if TYPE_CHECKING:
    from ._model import Model

_MMAP_THRESHOLD = -3  # of mallopt: M_MMAP_THRESHOLD
_MAPPED_FROM = 128 << 10  # bytes: where glibc begins


def for_onnxruntime(model: Any) -> "Union[str, bytes]":
    """model, a path, bytes or an onnx.ModelProto, as onnxruntime.InferenceSession takes it. UsageError where it is none."""
    return os.fspath(model) if is_path(model) else bytes_of(model)


def _glibc() -> "Optional[ctypes.CDLL]":
    """The C library, where its heap is glibc's."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") and hasattr(library, "malloc_trim") else None


def session(model: "Model", *, threads: int = 0, options: Any = None, providers: "Optional[Sequence[Any]]" = None) -> Any:
    """An onnxruntime.InferenceSession of a model, tiled or not, whose process holds as little as loading allows.

    model: a path (weights in a file beside it are found there), bytes or an onnx.ModelProto. threads: of each operator; 0: as ONNX
    Runtime has it. options: an onnxruntime.SessionOptions, which is changed: no memory pattern is kept. providers: those of
    ONNX Runtime, the CPU's by default.

    With glibc, and for the whole process from then on, pieces of 128 KiB and more are mapped: what is freed of them goes back to the
    system. ImportError without ONNX Runtime; its own exceptions where it does not load the model.
    """
    if threads < 0:
        raise UsageError(f"threads={threads}: from 0 on")
    import onnxruntime  # type: ignore[import-untyped]
    options = onnxruntime.SessionOptions() if options is None else options
    options.enable_mem_pattern = False
    if threads:
        options.intra_op_num_threads = threads
    heap = _glibc()
    if heap is not None:
        heap.mallopt(_MMAP_THRESHOLD, _MAPPED_FROM)
    loaded = onnxruntime.InferenceSession(for_onnxruntime(model), options, providers=list(providers or ["CPUExecutionProvider"]))
    if heap is not None:
        heap.malloc_trim(ctypes.c_size_t(0))
    return loaded
