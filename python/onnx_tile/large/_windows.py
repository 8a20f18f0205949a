"""The output cut into chunks, and for each chunk the windows of the inputs that it needs.

    output    |  chunk 0  |  chunk 1  |  chunk 2  |      what is written, each once
    input     |===========------|                        crop of chunk 0: its rows, a halo, the model's own border in front
                       |---===========---|               crop of chunk 1
                                |------===========|      crop of chunk 2

All crops have one size, that of the largest: the model can be made for it, memory is the same for each, and no crop is so small
that a runtime takes other kernels for it. All sizes that a crop may have are equal modulo the alignment, so that there is one.
"""
import math
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._errors import UsageError
from .._geometry import Geometry, geometry

if TYPE_CHECKING:
    from .._model import Model

    Window = Tuple[slice, ...]

# What to do about a node that is in the way, by the kind that geometry gives it.
_ADVICE = {
    "reduce": "a sum over the whole axis has to be made first, as apply does in passes",
    "attention": "export it with windows of a fixed size, as it was trained",
    "fixed-size": "export it for the size of the parts, or without sizes in it",
    "data-dependent": "only a run on the whole gives its result",
}


class Part(NamedTuple):
    """What one task computes. crops: by input, the window of it along all its axes; cut: of the model's result; window: of the
    output. Slices along axes that are not cut are whole."""

    number: int
    crops: Dict[str, "Window"]
    cut: "Window"
    window: "Window"


def barriers_of(found: Geometry, output: str) -> str:
    """Why the output cannot be made of parts: one line; "": it can."""
    seen: List[Dict[str, Any]] = []
    for pair in found.data["outputs"]:
        if pair["name"] == output:
            seen += [b for b in pair["barriers"] if b not in seen]
    nodes = [f"node '{b['node']}' ({b['op']}), {b['kind']}: {b['why']}; {_ADVICE.get(b['kind'], '')}" for b in seen[:3]]
    more = f"; and {len(seen) - 3} more" if len(seen) > 3 else ""
    return "; ".join(nodes) + more


def geometry_of(model: "Model", shapes: Mapping[str, Tuple[int, ...]]) -> Geometry:
    """The geometry on inputs of these shapes. Raises UsageError where the model does not take them."""
    try:
        return geometry(model, shapes=shapes)
    except UsageError as why:
        sizes = ", ".join(f"'{n}' {list(s)}" for n, s in shapes.items())
        line = str(why).replace("shapes: ", "", 1)
        raise UsageError(f"the model does not take inputs of this shape, {sizes}: {line}") from None


class Windows:
    """The geometry of one output over whole inputs of known shapes."""

    def __init__(self, model: "Model", shapes: Mapping[str, Tuple[int, ...]], output: Optional[str],
                 found: Optional[Geometry] = None) -> None:
        """shapes: of all inputs, whole. output: its name; None: the first. found: the model's geometry, where it is known. Raises
        UsageError naming the nodes that are in the way."""
        found = geometry_of(model, shapes) if found is None else found
        names = [p["name"] for p in found.data["outputs"]]
        if not names:
            raise UsageError("no output of the model follows an axis of an input")
        self.output = output if output is not None else names[0]
        if self.output not in names:
            raise UsageError(f"the model has no output '{self.output}' that follows an axis of an input")
        nodes = barriers_of(found, self.output)
        if nodes:
            raise UsageError(f"output '{self.output}' cannot be made of parts: {nodes}")
        self._geometry, self._shapes = found, dict(shapes)
        self.pairs = {p["input"]: p["axes"] for p in found.data["outputs"] if p["name"] == self.output and p["axes"]}
        if not self.pairs:
            raise UsageError(f"output '{self.output}' follows no axis of an input")
        by_axis = {a["axis"]: a for axes in self.pairs.values() for a in axes}
        self.axes: List[int] = sorted(by_axis)
        self.extents: List[int] = [by_axis[k]["output_extent"] for k in self.axes]
        # rows of the output for which a crop begins without rows in front that only the alignment asks for
        self.units: List[int] = [max(math.lcm(a["align"], a["den"]) * a["num"] // a["den"] for axes in self.pairs.values()
                                     for a in axes if a["axis"] == k) for k in self.axes]

    def facts(self) -> Dict[str, Any]:
        """What a manifest says of it."""
        return {"output": self.output, "axes": self.pairs, "shapes": {k: list(v) for k, v in self._shapes.items()}}

    def part(self, number: int, lo: Sequence[int], hi: Sequence[int], rank: int,
             sizes: "Optional[Mapping[str, Tuple[int, ...]]]" = None) -> Part:
        """The part for rows [lo, hi) of the axes that are cut; rank: of the output. sizes: of the crops; None: as small as can be."""
        crops, result = {}, [slice(None)] * rank
        begins: Dict[int, slice] = {}
        for name, shape in self._shapes.items():
            window = [slice(0, n) for n in shape]
            for a in self.pairs.get(name, []):
                k = self.axes.index(a["axis"])
                crop = self._geometry.crop(lo[k], hi[k], shape[a["input_axis"]], axis=a["axis"], output=self.output, input=name)
                assert isinstance(crop.input, slice)
                begin, end = crop.input.start, crop.input.stop
                if sizes is not None:
                    begin = min(begin, shape[a["input_axis"]] - sizes[name][a["input_axis"]])
                    end = begin + sizes[name][a["input_axis"]]
                window[a["input_axis"]] = slice(begin, end)
                first = lo[k] - begin * a["num"] // a["den"]
                result[a["axis"]] = slice(first, first + hi[k] - lo[k])
                if begins.setdefault(a["axis"], result[a["axis"]]) != result[a["axis"]]:
                    raise UsageError(f"inputs of '{self.output}' need parts that do not begin at the same row of it")
            crops[name] = tuple(window)
        place = [slice(None)] * rank
        for k, a in enumerate(self.axes):
            place[a] = slice(lo[k], hi[k])
        return Part(number, crops, tuple(result), tuple(place))

    def counts(self, edges: Sequence[int]) -> List[int]:
        """Chunks along each axis."""
        return [-(-n // e) for n, e in zip(self.extents, edges)]

    def parts(self, edges: Sequence[int], rank: int, one_size: bool = True) -> "Parts":
        """All parts, with chunks of so many rows along each axis; the last of an axis has what is left. one_size: of all crops."""
        return Parts(self, edges, rank, self.sizes(edges) if one_size else None)

    def shapes(self, edges: Sequence[int]) -> Dict[str, Tuple[int, ...]]:
        """Of all inputs of the model that are free."""
        return self.sizes(edges)

    def stored_bytes(self, edges: Sequence[int]) -> int:
        """Of what is written beside the target: nothing."""
        return 0

    def sizes(self, edges: Sequence[int]) -> Dict[str, Tuple[int, ...]]:
        """The shape of the largest crop of each input."""
        most = {name: list(shape) for name, shape in self._shapes.items()}
        for name, axes in self.pairs.items():
            for a in axes:
                k, e = self.axes.index(a["axis"]), a["input_axis"]
                extent = self._shapes[name][e]
                sizes = [self._geometry.crop(lo, min(lo + edges[k], self.extents[k]), extent, axis=a["axis"],
                                             output=self.output, input=name).input
                         for lo in range(0, self.extents[k], edges[k])]
                most[name][e] = max(s.stop - s.start for s in sizes if isinstance(s, slice))
        return {n: tuple(s) for n, s in most.items()}


class WholeOutput(Windows):
    """One part: an output that follows no axis of an input, computed of what passes have handed out."""

    def __init__(self, shapes: Mapping[str, Tuple[int, ...]], output: str) -> None:
        """shapes: of inputs that are read whole."""
        self.output, self._shapes, self.pairs = output, dict(shapes), {}
        self.axes, self.extents, self.units = [], [], []


class Parts(Sequence[Part]):
    """The parts in the order of memory, made when they are asked for: there may be very many."""

    def __init__(self, windows: Windows, edges: Sequence[int], rank: int, sizes: "Optional[Dict[str, Tuple[int, ...]]]") -> None:
        """See Windows.parts."""
        self._windows, self._edges, self._rank, self._sizes = windows, list(edges), rank, sizes
        self._counts = windows.counts(edges)

    def __len__(self) -> int:
        return math.prod(self._counts)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        lo: List[int] = []
        left = number
        for count in reversed(self._counts):
            left, at = divmod(left, count)
            lo.insert(0, at)
        lo = [at * e for at, e in zip(lo, self._edges)]
        hi = [min(a + e, n) for a, e, n in zip(lo, self._edges, self._windows.extents)]
        return self._windows.part(number, lo, hi, self._rank, self._sizes)

