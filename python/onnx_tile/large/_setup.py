"""What is known of a model and its inputs before anything is run."""
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from .._errors import UsageError
from .._model import is_path
from ._models import check_fixed, content_of, freed, hash_of, inputs_of, whole_shape
from ._sources import Source, open_source
from ._windows import Part, Windows
from ._work import ModelFile

if TYPE_CHECKING:
    from .._model import Model

# Elements of a map that the probe computes: a square of 128, a cube of 25.
_PROBE_ROWS = 16384


class Setup:
    """The sources, the geometry on them, the model of free extents."""

    def __init__(self, model: "Model", src: Any, output: Optional[str]) -> None:
        """src: a source, or {input: source}; output: its name, None: the first. Raises UsageError where they do not go together."""
        declared = inputs_of(model)
        given = src if isinstance(src, Mapping) else {declared[0].name: src} if len(declared) == 1 else None
        if given is None or set(given) != {i.name for i in declared}:
            names = ", ".join(f"'{i.name}'" for i in declared)
            raise UsageError(f"the model has the inputs {names or '(none)'}: give {{input: source}} for all of them")
        self.sources: Dict[str, Source] = {i.name: open_source(given[i.name]) for i in declared}
        self.shapes = shapes = {i.name: whole_shape(i, self.sources[i.name].shape, "its source") for i in declared}
        self.windows = Windows(model, shapes, output)
        cut = {name: [a["input_axis"] for a in axes] for name, axes in self.windows.pairs.items()}
        for i in declared:
            check_fixed(i, shapes[i.name], cut.get(i.name, []))
        self.first = next(iter(self.windows.pairs))  # the input that places the output on the earth
        self.added = min(len(shapes[n]) - len(self.sources[n].shape) for n in self.windows.pairs)
        self.model = freed(model, cut)
        self.sha256 = hash_of(content_of(model))
        self.types = {n: s.dtype.str for n, s in self.sources.items()}

    def probe_part(self) -> Part:
        """A small part. The rank of the output is not known: what it says of that ends with the last axis that is cut."""
        windows = self.windows
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

    def model_file(self, folder: str, content: Optional[bytes]) -> ModelFile:
        """The model that workers run: the given file, or one in the folder."""
        if content is None and is_path(self.model):
            return ModelFile(os.path.abspath(os.fspath(self.model)), self.sha256)  # type: ignore[arg-type]
        path = os.path.join(folder, "model.onnx" if content is None else "tiled.onnx")
        content = content_of(self.model) if content is None else content
        with open(path + ".new", "wb") as f:
            f.write(content)
        os.replace(path + ".new", path)
        return ModelFile(path, hash_of(content))

    def dropped(self, shape: Tuple[int, ...], wanted: int) -> int:
        """How many dimensions in front of a result of this shape are left out: `wanted` where they are 1 and not cut."""
        most = next((k for k, n in enumerate(shape) if n != 1 or k in self.windows.axes), len(shape))
        return max(0, min(wanted, most))
