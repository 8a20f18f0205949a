"""Models as they are given: a path, bytes, or an onnx.ModelProto; and back in the same form."""
import ctypes
import os
from ctypes import byref, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Optional, Union

from ._errors import ModelError, ModelNotFound, UsageError
from ._library import Handle, lib, path_bytes

if TYPE_CHECKING:
    import onnx

    Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, onnx.ModelProto]


def is_proto(model: object) -> bool:
    """Whether it is an onnx.ModelProto; onnx itself is not imported for the question."""
    return hasattr(model, "SerializeToString") and hasattr(model, "graph")


def is_path(model: object) -> bool:
    """Whether it is a path."""
    return isinstance(model, (str, os.PathLike))


def bytes_of(model: object) -> bytes:
    """What a file of a model in memory would hold. UsageError where it is none."""
    if is_proto(model):
        content: bytes = model.SerializeToString()  # type: ignore[attr-defined]
        return content
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    raise UsageError(f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")


def load(handle: Handle, model: "Model", data_dir: Optional[Union[str, "os.PathLike[str]"]] = None) -> None:
    """Give a model to a handle. data_dir: folder of external data of a model in memory; without one such data is refused."""
    if isinstance(model, (str, os.PathLike)):
        try:
            handle.call("load_file", path_bytes(model))
        except ModelError as why:
            if os.path.lexists(model):
                raise
            raise ModelNotFound(str(why)) from None
        return
    content = bytes_of(model)
    handle.call("load_memory", content, len(content), path_bytes(data_dir) if data_dir is not None else None)


def take(handle: Handle, like: object) -> "Union[bytes, onnx.ModelProto]":
    """The handle's model: an onnx.ModelProto where `like` is one, else bytes."""
    data, size = c_void_p(), c_size_t()
    handle.call("save_memory", byref(data), byref(size))
    try:
        content = ctypes.string_at(data, size.value)
    finally:
        lib.onnx_tile_free_bytes(data)
    if not is_proto(like):
        return content
    proto: Any = type(like)()
    proto.ParseFromString(content)
    made: "onnx.ModelProto" = proto
    return made


def save(handle: Handle, path: "Union[str, os.PathLike[str]]") -> None:
    """Write the handle's model: whole or not at all."""
    handle.call("save_file", path_bytes(path))
