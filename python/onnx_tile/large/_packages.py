"""Packages that only some files and schedulers need."""
import importlib
from typing import Any


def need(name: str) -> Any:
    """The package, or an ImportError that says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError:
        root = name.split(".")[0]
        raise ImportError(f"onnx_tile.large needs {root} for this: "
                          f"pip install 'onnx_tile[large]', or {root}") from None
