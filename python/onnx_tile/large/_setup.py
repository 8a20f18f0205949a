"""What is known of a model and its inputs before anything is run."""
import os
import shutil
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .._errors import ModelError, UsageError
from .._geometry import Geometry
from .._model import is_path
from .._passes import passes
from ._models import check_fixed, content_of, freed, hash_of, inputs_of, proto_of, whole_shape
from ._sources import Source, open_source
from ._pass_windows import PassPart, PassWindows
from ._stored import largest_together
from ._turned import TurnedSource, order_of
from ._windows import Part, WholeOutput, Windows, geometry_of
from ._work import ModelFile

if TYPE_CHECKING:
    from .._model import Model

# Elements of a map that the probe computes: a square of 128, a cube of 25.
_PROBE_ROWS = 16384
# Of the room on the disk, what values may take that passes write.
_ROOM_PART = 0.5


def _plan_of(model: "Model", folder: str, shapes: Mapping[str, Tuple[int, ...]], store: str, room: Optional[str]) -> Dict[str, Any]:
    """Write the models of passes. store, room: as of Setup. Raises UsageError naming the node that needs more than passes."""
    try:
        plan = passes(model, folder, shapes=shapes, store=store)
        if store == "auto" and room is not None and largest_together(plan) > shutil.disk_usage(room).free * _ROOM_PART:
            plan = passes(model, folder, shapes=shapes)
    except ModelError as why:
        raise UsageError(f"the output {why}") from None
    return plan


def _pooled(plan: Mapping[str, Any], found: Geometry, made: Sequence[str], output: Optional[str]) -> Optional[str]:
    """The output, where it follows no axis of an input, but is computed of what passes hand out."""
    follow = [p["name"] for p in found.data["outputs"] if p["axes"]]
    name = output if output is not None else next(iter(follow), made[0])
    return name if name in made and name not in follow and plan["statistics"] else None


def _of_outputs(facts: Mapping[str, Any], made: Sequence[str]) -> Geometry:
    """Of a plan, or what it has of the whole: the geometry of the model's outputs, and not of values in between."""
    return Geometry({"inputs": facts["inputs"], "outputs": [p for p in facts["outputs"] if p["name"] in made]}, "", {})


class Setup:
    """The sources, the geometry on them, the model of free extents."""

    def __init__(self, model: "Model", src: Any, output: Optional[str], folder: Optional[str] = None, store: str = "never",
                 room: Optional[str] = None, axes: Any = None) -> None:
        """src: a source, or {input: source}; output: its name, None: the first. folder: for the models of passes, where the model
        needs some; None: it may not need any. store: whether passes write values ("auto": where that costs less, and the disk of
        the folder `room` has room; None: it has). axes: of the source's dimensions, or {input: axes}. Raises UsageError where they do not go together."""
        declared = inputs_of(model)
        given = src if isinstance(src, Mapping) else {declared[0].name: src} if len(declared) == 1 else None
        if given is None or set(given) != {i.name for i in declared}:
            names = ", ".join(f"'{i.name}'" for i in declared)
            raise UsageError(f"the model has the inputs {names or '(none)'}: give {{input: source}} for all of them")
        self.sources: Dict[str, Source] = {i.name: open_source(given[i.name]) for i in declared}
        turned = axes if isinstance(axes, Mapping) or axes is None else {i.name: axes for i in declared}
        self.orders: Dict[str, Tuple[int, ...]] = {}
        for i in declared:
            if turned is not None and i.name in turned:
                if i.dims is None:
                    raise UsageError(f"axes: the model does not say how many dimensions input '{i.name}' has")
                self.orders[i.name] = order_of(turned[i.name], i.name, len(i.dims))
                self.sources[i.name] = TurnedSource(self.sources[i.name], self.orders[i.name], len(i.dims))
        self.shapes = shapes = {i.name: whole_shape(i, self.sources[i.name].shape, "its source") for i in declared}
        found = geometry_of(model, shapes)
        self.plan: Optional[Dict[str, Any]] = None
        self._folder = folder
        made: List[str] = []
        if folder is not None and any(b["kind"] == "reduce" for b in found.barriers):
            self.plan = _plan_of(model, folder, shapes, store, room)
            made = [o.name for o in proto_of(model, whole=False).graph.output]
            shapes.update({s["value"]: tuple(s["shape"]) for s in self.plan["stored"]})
            found = _of_outputs(self.plan, made)
        last = shapes if self.plan is None else {n: shapes[n] for n in self.plan["passes"][-1]["inputs"] if n in shapes}
        self.pooled = _pooled(self.plan, found, made, output) if self.plan is not None else None
        self.windows = Windows(model, last, output, found) if self.pooled is None else WholeOutput(last, self.pooled)
        pairs = self.windows.pairs  # of the inputs of the model
        if self.plan is not None and self.pooled is not None:
            whole = self.plan.get("whole", self.plan)["outputs"]
            pairs = {p["input"]: p["axes"] for p in whole if p["axes"] and p["input"] in self.sources}
        elif self.plan is not None and self.plan["stored"]:
            pairs = Windows(model, shapes, self.windows.output, _of_outputs(self.plan["whole"], made)).pairs
        cut = {name: [a["input_axis"] for a in axes] for name, axes in pairs.items()}
        for i in declared:
            check_fixed(i, shapes[i.name], cut.get(i.name, []))
        self.first = next(iter(pairs))  # the input that places the output on the earth,
        self.placing = pairs[self.first] if self.pooled is None else []  # and how
        self.added = min(len(shapes[n]) - len(self.sources[n].shape) for n in pairs)
        self.model = freed(model, cut) if self.plan is None else self._written(len(self.plan["passes"]))
        self.sha256 = hash_of(content_of(model))
        self.types = {n: s.dtype.str for n, s in self.sources.items()}
        if self.plan is not None:
            self.types.update({s["value"]: np.dtype(s["type"]).str for s in self.plan["stored"]})

    def _written(self, number: int) -> bytes:
        """The model of a pass, from 1 on, or the last one."""
        assert self.plan is not None and self._folder is not None
        return content_of(os.path.join(self._folder, self.plan["passes"][number - 1]["model"]), whole=True)

    @property
    def passes(self) -> int:
        """How many there are before the model that makes the output."""
        return len(self.plan["passes"]) - 1 if self.plan is not None else 0

    def pass_windows(self, number: int) -> PassWindows:
        """Chunks of a pass, from 1 on."""
        assert self.plan is not None
        return PassWindows(self.plan, number, self.shapes)

    def pass_model(self, number: int) -> bytes:
        """Its model."""
        return self._written(number)

    def pass_probe(self, windows: PassWindows) -> PassPart:
        """A small part of a pass."""
        edge = max(1, round(_PROBE_ROWS ** (1 / len(windows.axes))))
        part = windows.part(-1, [0] * len(windows.axes), [min(edge, n) for n in windows.extents])
        assert part is not None
        return part

    def pass_chunk(self, chunk: "Union[None, int, Sequence[int]]", windows: PassWindows) -> Optional[List[int]]:
        """The chunk that a caller gave, in rows of the first input."""
        if chunk is None:
            return None
        given = [chunk] * len(windows.axes) if isinstance(chunk, int) else list(chunk)
        axes = len(windows.axes) if self.pooled is not None else len(self.placing)
        if len(given) == 1:
            given *= axes
        if len(given) != axes or len(given) != len(windows.axes):
            raise UsageError(f"chunk: {len(given)} numbers, the output is cut along {axes} axes")
        if min(given) < 1:
            raise UsageError(f"chunk {min(given)}: use 1 or more")
        if self.pooled is not None:
            return given
        if windows.first == self.first:
            return [max(1, rows * a["den"] // a["num"]) for rows, a in zip(given, self.placing)]
        return [max(1, rows * n // a["output_extent"]) for rows, n, a in zip(given, windows.extents, self.placing)]

    def probe_part(self) -> Part:
        """A small part. The rank of the output is not known: what it says of that ends with the last axis that is cut."""
        windows = self.windows
        if self.pooled is not None:
            return windows.part(-1, [], [], 0)
        edge = max(1, round(_PROBE_ROWS ** (1 / len(windows.axes))))
        hi = [min(edge, n) for n in windows.extents]
        part = windows.part(-1, [0] * len(hi), hi, windows.axes[-1] + 1)
        return part

    def samples(self, sizes: Mapping[str, Tuple[int, ...]], rank: int) -> List[Part]:
        """Small parts at the beginning, in the middle and at the end of a crop, as if that were the whole input."""
        windows = Windows(self.model, sizes, self.windows.output)
        edge = max(1, round((_PROBE_ROWS / 16) ** (1 / len(windows.axes))))
        parts = []
        for where in (0.0, 0.5, 1.0):
            lo = [int(where * max(0, n - edge)) for n in windows.extents]
            parts.append(windows.part(-1, lo, [min(a + edge, n) for a, n in zip(lo, windows.extents)], rank))
        return parts

    def model_file(self, folder: str, content: Optional[bytes], name: Optional[str] = None) -> ModelFile:
        """The model that workers run: the given file, or one in the folder, of that name."""
        if content is None and is_path(self.model):
            return ModelFile(os.path.abspath(os.fspath(self.model)), self.sha256)  # type: ignore[arg-type]
        path = os.path.join(folder, name or ("model.onnx" if content is None else "tiled.onnx"))
        content = content_of(self.model) if content is None else content
        with open(path + ".new", "wb") as f:
            f.write(content)
        os.replace(path + ".new", path)
        return ModelFile(path, hash_of(content))

    def dropped(self, shape: Tuple[int, ...], wanted: int) -> int:
        """How many dimensions in front of a result of this shape are left out: `wanted` where they are 1 and not cut."""
        most = next((k for k, n in enumerate(shape) if n != 1 or k in self.windows.axes), len(shape))
        return max(0, min(wanted, most))
