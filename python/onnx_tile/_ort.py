"""The engine as an operator of ONNX Runtime: where its library lies."""
import os
from typing import Optional

from ._errors import UsageError
from ._library import path as library_path


def find_library() -> Optional[str]:
    """Its path; None: this build has none."""
    path = os.path.join(os.path.dirname(os.path.abspath(library_path)), "libonnxtile_ort.so")
    return path if os.path.exists(path) else None


def ort_library() -> str:
    """Path of the library for SessionOptions.register_custom_ops_library; with it ONNX Runtime (1.16 or newer) runs models that
    `tile(..., runtime="ort-engine")` writes.

        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(onnx_tile.ort_library())
        session = onnxruntime.InferenceSession("tiled.onnx", options)

    The engine works on ONNX Runtime's threads. Session config entry "onnx_tile.threads", added before registering, gives it as many
    of its own; ONNX Runtime 1.16, whose operators cannot use its threads, is given as many as the machine has.

    Raises UsageError where the package was built without the engine.
    """
    path = find_library()
    if path is None:
        raise UsageError("this build has no library for ONNX Runtime: libonnxtile_ort.so is not there")
    return path
