"""The model as workers run it: of free extents where crops differ, tiled inside where that takes less memory."""
import hashlib
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._errors import ModelError, SystemFailure, UsageError
from .._model import is_path, is_proto
from ._packages import need

if TYPE_CHECKING:
    from .._model import Model


class Input(NamedTuple):
    """An input as the model declares it; a dimension that is free or not known is None."""

    name: str
    dims: Optional[List[Optional[int]]]


def proto_of(model: "Model", whole: bool) -> Any:
    """The model as an onnx.ModelProto. whole: with weights that lie in a file beside it."""
    if is_proto(model):
        return model
    onnx = need("onnx")
    try:
        if is_path(model):
            return onnx.load(os.fspath(model), load_external_data=whole)  # type: ignore[arg-type]
        return onnx.load_model_from_string(content_of(model))
    except OSError as why:
        raise ModelError(f"{os.fspath(model)}: {why.strerror}") from None  # type: ignore[arg-type]
    except Exception as why:  # of protobuf's own class
        raise ModelError(f"the model is no ONNX file: {' '.join(str(why).split())}") from None


def inputs_of(model: "Model") -> List[Input]:
    """The inputs that are no weights."""
    graph, found = proto_of(model, whole=False).graph, []
    weights = {w.name for w in graph.initializer} | {w.values.name for w in graph.sparse_initializer}
    for value in graph.input:
        if value.name not in weights:
            shape = value.type.tensor_type
            dims = [int(d.dim_value) if d.HasField("dim_value") else None for d in shape.shape.dim] if shape.HasField("shape") else None
            found.append(Input(value.name, dims))
    return found


def whole_shape(given: Input, shape: Tuple[int, ...], what: str) -> Tuple[int, ...]:
    """The shape of an input for a source of this shape: dimensions that the source lacks come in front and are 1."""
    if given.dims is None:
        return shape
    missing = len(given.dims) - len(shape)
    if missing < 0:
        raise UsageError(f"input '{given.name}' has {len(given.dims)} dimensions, {what} {len(shape)}: {list(shape)}")
    return (1,) * missing + shape


def check_fixed(given: Input, shape: Tuple[int, ...], cut: Sequence[int]) -> None:
    """Dimensions that are fixed in the model and not cut have to be those of the source."""
    for axis, (want, have) in enumerate(zip(given.dims or [], shape)):
        if axis not in cut and want is not None and want != have:
            raise UsageError(f"input '{given.name}' has {want} along axis {axis}, the source {have}")


def content_of(model: "Model", whole: bool = False) -> bytes:
    """A model's bytes. whole: with the weights that lie in a file beside it."""
    if is_path(model):
        path = os.fspath(model)  # type: ignore[arg-type]
        try:
            with open(path, "rb") as f:
                content = f.read()
        except OSError as why:
            raise SystemFailure(f"cannot read '{path}': {why.strerror}") from None
        if whole and b"location" in content:
            content = proto_of(path, whole=True).SerializeToString()
        return content
    return model.SerializeToString() if is_proto(model) else bytes(model)  # type: ignore[union-attr, arg-type]


def hash_of(content: bytes) -> str:
    """What tells models apart."""
    return hashlib.sha256(content).hexdigest()


def freed(model: "Model", cut: Mapping[str, Sequence[int]]) -> "Model":
    """The model for crops of any size: cut axes of inputs that are fixed become free, and sizes that followed from them are left
    out. A model whose axes are free comes back as it is. cut: axes by input."""
    fixed = [i for i in inputs_of(model) for a in cut.get(i.name, ()) if i.dims is not None and i.dims[a] is not None]
    if not fixed:
        return model
    proto = need("onnx").ModelProto()
    proto.CopyFrom(proto_of(model, whole=True))
    for value in proto.graph.input:
        for axis in cut.get(value.name, ()):
            value.type.tensor_type.shape.dim[axis].Clear()
            value.type.tensor_type.shape.dim[axis].dim_param = f"{value.name}_{axis}"
    for value in proto.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del proto.graph.value_info[:]
    content: bytes = proto.SerializeToString()
    return content


def predicted_bytes(data: Dict[str, Any]) -> Tuple[Optional[int], Optional[int]]:
    """Bytes that a process is predicted to take with the model, untiled and tiled; None where that is not known."""
    def of(side: Mapping[str, Any]) -> Optional[int]:
        value = side.get("process_bytes", side.get("growth_bytes"))
        return None if value is None else int(value)
    return of(data["untiled"]), of(data["tiled"])
