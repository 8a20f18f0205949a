"""geometry: which part of its inputs a model needs for a part of an output, so that the model as it is runs on crops, exactly."""
import json
import operator
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import Handle, dims_of, items_of
from ._model import load

if TYPE_CHECKING:
    import os

    from ._model import Model

    Path = Union[str, "os.PathLike[str]"]
    Rows = Union[int, Sequence[int]]

_TABLE, _JSON, _BIOIMAGE = range(3)


class Crop(NamedTuple):
    """Rows of the input to run the model on, and which rows of its result then are the wanted ones; of several axes a tuple each."""

    input: Union[slice, Tuple[slice, ...]]
    result: Union[slice, Tuple[slice, ...]]


def _axis_crop(axis: Mapping[str, int], lo: int, hi: int, extent: int) -> Tuple[slice, slice]:
    num, den, align, offset = axis["num"], axis["den"], axis["align"], axis["offset"]
    if not 0 <= lo < hi:
        raise UsageError(f"rows {lo}:{hi} are none: use 0 <= lo < hi")
    if not axis["any_extent"] and (extent - axis["extent"]) % align:
        raise UsageError(f"an extent of {extent} is not {axis['extent'] % align} modulo {align}, as that of this geometry: "
                         "give the size to geometry(model, shapes=...)")
    rows = axis["output_extent"] + (extent - axis["extent"]) // align * align * num // den
    if (extent - axis["extent"]) % align == 0 and hi > rows:
        raise UsageError(f"rows {lo}:{hi} are not in the {rows} rows of the output")
    least = min(axis["least"], extent)
    begin = max(0, lo * den // num - offset - axis["halo_lo"])
    begin = min(begin, extent - least) // align * align
    end = max(min(extent, -(-hi * den // num) - offset + axis["halo_hi"]), begin + least)
    end = min(extent, end + (extent - end) % align)
    first = lo - begin * num // den
    return slice(begin, end), slice(first, first + hi - lo)


class Geometry:
    """What `onnx-tile geometry` says (docs/json.md: `data`); str() is its table.

    Where an output is given by no name, it is the first; an input likewise.
    """

    def __init__(self, data: Dict[str, Any], table: str, bioimage: Dict[str, Any]) -> None:
        """data: the parsed JSON; table: the text; bioimage: the parsed fields of bioimage.io."""
        self.data, self.bioimage, self._table = data, bioimage, table

    def pair(self, output: Optional[str] = None, input: Optional[str] = None) -> Dict[str, Any]:
        """What is said of an output and an input: its `axes` and `barriers`."""
        for p in self.data["outputs"]:
            if output in (None, p["name"]) and input in (None, p["input"]):
                found: Dict[str, Any] = p
                return found
        raise UsageError(f"no output {output or ''!r} follows an axis of input {input or ''!r}")

    @property
    def barriers(self) -> List[Dict[str, Any]]:
        """The nodes that keep an axis from being cropped: node, op, kind, why, input_axis; each once."""
        found: List[Dict[str, Any]] = []
        for p in self.data["outputs"]:
            found += [b for b in p["barriers"] if b not in found]
        return found

    def _axes(self, output: Optional[str], input: Optional[str]) -> List[Dict[str, int]]:
        p = self.pair(output, input)
        if p["barriers"] or not p["axes"]:
            why = "; ".join(f"node '{b['node']}' ({b['op']}), {b['kind']}: {b['why']}" for b in p["barriers"])
            raise UsageError(f"output '{p['name']}' cannot be made of crops: {why or 'it follows no axis'}")
        axes: List[Dict[str, int]] = p["axes"]
        return axes

    def crop(self, lo: "Rows", hi: "Rows", extent: "Rows", *, axis: Optional[int] = None, output: Optional[str] = None,
             input: Optional[str] = None) -> Crop:
        """The crop for rows [lo, hi) of the output, where the whole input has `extent` rows.

        Numbers: of one axis, `axis` of the output or the first. Sequences: one for each of the axes, in their order. The model
        runs on input[crop.input], and result[crop.result] is what the whole input gives there, to the bit. Raises UsageError where
        a node is in the way, rows are not there, or the extent is another modulo the alignment than the one that was asked for.
        """
        axes = self._axes(output, input)
        if hasattr(lo, "__len__"):
            if not len(lo) == len(hi) == len(extent) == len(axes):  # type: ignore[arg-type]
                raise UsageError(f"the output follows {len(axes)} axes: use as many rows and extents")
            crops = [_axis_crop(a, *map(operator.index, three)) for a, *three in zip(axes, lo, hi, extent)]  # type: ignore[arg-type]
            return Crop(tuple(c[0] for c in crops), tuple(c[1] for c in crops))
        chosen = [a for a in axes if axis in (None, a["axis"])]
        if not chosen:
            raise UsageError(f"axis {axis} of the output follows none of the input's")
        return Crop(*_axis_crop(chosen[0], *map(operator.index, (lo, hi, extent))))  # type: ignore[arg-type]

    def depth(self, extent: "Optional[Sequence[int]]" = None, *, output: Optional[str] = None,
              input: Optional[str] = None) -> Dict[int, Tuple[int, int]]:
        """{axis of the input: (rows in front, rows behind)} for dask.array.map_overlap with boundary="none".

        Chunks have to be multiples of the alignment, but the last ones, and at least as long as the depth and `least`. extent: of the
        whole array along each of these axes; not given: of the geometry. Raises UsageError where the output has other rows than
        the input: map_overlap cuts off as much as it has added.
        """
        axes = self._axes(output, input)
        extents = [a["extent"] for a in axes] if extent is None else list(extent)
        if len(extents) != len(axes):
            raise UsageError(f"the output follows {len(axes)} axes: use as many extents")
        depth = {}
        for a, whole in zip(axes, extents):
            if (a["num"], a["den"], a["output_extent"]) != (1, 1, a["extent"]) or a["axis"] != a["input_axis"]:
                raise UsageError("the output has not the rows of the input: use crop")
            front, behind = max(0, a["halo_lo"] + a["offset"]), max(0, a["halo_hi"] - a["offset"])
            depth[a["input_axis"]] = (-(-front // a["align"]) * a["align"], behind + (whole - behind) % a["align"])
        return depth

    def __str__(self) -> str:
        return self._table

    def __repr__(self) -> str:
        n = len(self.barriers)
        return f"<onnx_tile.Geometry: {len(self.data['outputs'])} pairs of output and input, {n} nodes in the way>"


def geometry(model: "Model", *, shapes: Optional[Mapping[str, Sequence[int]]] = None, data_dir: "Optional[Path]" = None) -> Geometry:
    """The geometry of a model: halo, alignment and scale of each axis, and what is in the way of crops.

    model: a path, bytes or an onnx.ModelProto; it is not changed. shapes: {input: dimensions}, also in place of those that the file
    fixes; the geometry is that of inputs of this size, and of others with as many rows modulo the alignment. data_dir: folder of
    external data of a model in memory. Raises ModelError, UsageError, SystemFailure or OutOfMemory with the program's line.
    """
    with Handle() as handle:
        for name, dims in items_of(shapes, "shapes"):
            handle.call("bind_shape", name.encode(), dims_of(dims), len(dims))
        load(handle, model, data_dir)
        return Geometry(json.loads(handle.text("geometry", _JSON)), handle.text("geometry", _TABLE),
                        json.loads(handle.text("geometry", _BIOIMAGE)))
