"""onnx-tile: chains of operators of an ONNX model run tile by tile. Same results, a fraction of the memory.

    import onnx_tile

    model, result = onnx_tile.tile("model.onnx", "tiled.onnx", goal="memory")
    print(result)                                              # a table; notebooks show it as HTML
    print(onnx_tile.check("model.onnx", "tiled.onnx"))         # both in the installed ONNX Runtime or OpenVINO

Everything goes through the C library of the package; docs/python.md has the rest.
"""
from typing import Any

from ._check import Comparison, check
from ._context import Value
from ._ep import add_ep, register_ep
from ._errors import BudgetError, Cancelled, Error, ModelError, ModelNotFound, OutOfMemory, SystemFailure, TimedOut, UsageError
from ._geometry import Crop, Geometry, geometry
from ._library import version as __version__
from ._onnxruntime import session
from ._ort import ort_library
from ._passes import passes
from ._plan_memory import MemoryPlan, plan_memory
from ._result import Explanation, Result
from ._rows import Rows
from ._session import Profile, Session
from ._step import Stepper, step
from ._tile import explain, inspect, tile

__all__ = ["tile", "inspect", "explain", "geometry", "step", "passes", "plan_memory", "check", "session", "ort_library", "register_ep", "add_ep", "Session", "Rows", "Stepper", "Result", "Explanation", "Geometry", "Crop", "MemoryPlan",
           "Comparison", "Profile", "Value", "Error", "ModelError", "ModelNotFound", "UsageError", "BudgetError", "SystemFailure", "OutOfMemory",
           "Cancelled", "TimedOut", "__version__"]


def __getattr__(name: str) -> Any:
    """onnx_tile.large is loaded when it is asked for: it needs NumPy."""
    if name == "large":
        import importlib
        return importlib.import_module(".large", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
