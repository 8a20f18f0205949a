"""passes: models for passes over crops, where a model needs numbers of a whole axis."""
import json
import os
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Union

from ._errors import UsageError
from ._library import Handle, dims_of, items_of, path_bytes
from ._model import load

if TYPE_CHECKING:
    from ._model import Model

    Path = Union[str, "os.PathLike[str]"]


# Of onnx_tile_set_store, by name.
STORE = {"never": 0, "auto": 1, "always": 2}


def passes(model: "Model", folder: "Path", *, shapes: "Optional[Mapping[str, Sequence[int]]]" = None,
           store: str = "never", data_dir: "Optional[Path]" = None) -> Dict[str, Any]:
    """Write the models of a model that needs a mean, a normalisation or a global pool of a whole axis, for passes over crops.

    folder: pass_1.onnx, ..., final.onnx and plan.json are written there (docs/large.md, "Passes"). shapes: {input: dimensions}, of
    the whole input. store: "never", "auto" or "always": whether passes also write values that later ones read, where that costs less
    than computing them again ("auto") or wherever it can be done; for the size of shapes. Returns what is in plan.json. `large.apply` does all of it. Raises ModelError with the node that needs more than
    that, UsageError where no axis can be cut.
    """
    if store not in STORE:
        raise UsageError(f"store {store!r}: use 'never', 'auto' or 'always'")
    with Handle() as handle:
        handle.call("set_store", STORE[store])
        for name, dims in items_of(shapes, "shapes"):
            handle.call("bind_shape", name.encode(), dims_of(dims), len(dims))
        load(handle, model, data_dir)
        handle.call("passes", path_bytes(folder))
    with open(os.path.join(os.fspath(folder), "plan.json"), encoding="utf-8") as f:
        plan: Dict[str, Any] = json.load(f)
    return plan
