"""A pass for pipelines of onnx_ir: chains of operators run tile by tile.

    import onnx_ir
    from onnx_tile.ir import TilePass

    model = onnx_ir.load("model.onnx")
    model = onnx_ir.passes.Sequential(..., TilePass(goal="memory"))(model).model

It comes last: other passes would work on the bodies of loops.
"""
import importlib
import os
import tempfile
from typing import Any, Optional

from ._errors import UsageError
from ._result import Result
from ._tile import tile

try:
    onnx_ir: Any = importlib.import_module("onnx_ir")
except ImportError:
    raise ImportError("onnx_tile.ir needs onnx_ir: pip install 'onnx_tile[ir]', or onnx-ir") from None

_OWN = ("model", "out", "data_dir", "single_file")


class TilePass(onnx_ir.passes.FunctionalPass):  # type: ignore[misc]
    """Tiles a model as `onnx_tile.tile` does; the model that it is given stays as it is. `result` is what the last call found.

    Weights pass through files of the system's temporary folder, so models of any size do, and are in memory afterwards.
    """

    def __init__(self, **options: Any) -> None:
        """options: those of `tile`, goal="memory" and the others; not where a model comes from or goes to."""
        wrong = [name for name in _OWN if name in options]
        if wrong:
            raise UsageError(f"{wrong[0]!r} is no option of a pass, whose model comes from the one before it")
        super().__init__()
        self.options = options
        self.result: Optional[Result] = None

    def call(self, model: Any) -> Any:
        """The tiled model, and whether anything was tiled. Raises as `tile` does."""
        with tempfile.TemporaryDirectory(prefix="onnx-tile-") as folder:
            before, after = os.path.join(folder, "model.onnx"), os.path.join(folder, "tiled.onnx")
            onnx_ir.save(model, before, external_data="weights.data")
            _, found = tile(before, after, **self.options)
            tiled = onnx_ir.external_data.load_to_model(onnx_ir.load(after))
        name = model.graph.name or "model"  # in place of a file that is gone
        self.result = Result({**found.data, "model": name}, str(found).replace(before, name))
        return onnx_ir.passes.PassResult(tiled, bool(self.result.regions))
