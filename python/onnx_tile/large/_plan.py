"""How large the chunks are: as large as the budget allows, by what a process is predicted to take for the crop of one.

    a worker  =  what it holds before the model is loaded   (measured by its probe)
               + the model, loaded and run on a crop        (the tool's prediction; tiled inside where that is less)
               + the crop as it is read and as it is given, the result as it comes and as it is written
"""
import math
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .._errors import BudgetError, UsageError
from .._model import is_path
from .._result import format_bytes
from .._tile import inspect, tile
from ._models import content_of, predicted_bytes

if TYPE_CHECKING:
    from .._model import Model
    from ._pass_windows import PassWindows
    from ._windows import Windows

# Edges that are tried, in rows.
_EDGES = [k * 2 ** n for n in range(4, 12) for k in (2, 3)] + [8192]
# Chunks for each worker, where the output is large enough: the last ones are not waited for long.
_TASKS_A_WORKER = 4
# What a prediction is taken for, of what it says.
_MARGIN = 1.1
# Chunks do not grow beyond where halos are this part of the work and a chunk has so many elements of a map: more memory brings little more.
_HALO_PART, _ELEMENTS_ENOUGH = 0.1, 1 << 20


class Plan(NamedTuple):
    """edges: rows of a chunk along each axis that is cut. content: the tiled model; None: the model as it is. worker_bytes: predicted
    for a worker; None: not known."""

    edges: Tuple[int, ...]
    content: Optional[bytes]
    worker_bytes: Optional[int]


class Planner:
    """Plans for one model on one input."""

    def __init__(self, model: "Model", windows: "Union[Windows, PassWindows]", types: Mapping[str, str], result: Tuple[Tuple[int, ...], str], *,
                 runtime: str, threads: int, tiled: bool, resident_bytes: int, steps: Sequence[int], workers: int,
                 sent: int) -> None:
        """model: of free extents. types: of the elements of each source. result: shape, in which only axes that are not cut count,
        and type. resident_bytes: of a worker before the model is loaded. steps: what edges have to be multiples of. sent: crops
        and results for each worker that this process holds."""
        self._model, self._windows, self._types = model, windows, dict(types)
        self._shape, self._dtype = result[0], np.dtype(result[1])
        self._options: Dict[str, Any] = {"goal": "memory", "threads": threads, "bit_exact": True,
                                         "runtime": None if runtime == "onnxruntime" else runtime}
        self._tiled, self._resident, self._workers = tiled, resident_bytes, workers
        self._sent = sent
        self._steps = [math.lcm(u, s) for u, s in zip(windows.units, steps)]

    def edges(self, edge: int) -> Tuple[int, ...]:
        """Edges of about `edge` rows, so that chunks are about equal, and no larger than the output."""
        equal = [-(-n // -(-n // edge)) for n in self._windows.extents]
        return tuple(min(-(-e // s) * s, n) for e, s, n in zip(equal, self._steps, self._windows.extents))

    def given(self, chunk: Sequence[int]) -> Tuple[int, ...]:
        """Edges that the caller gave, checked."""
        axes = len(self._windows.axes)
        if len(chunk) not in (1, axes):
            raise UsageError(f"chunk: {len(chunk)} numbers, the output is cut along {axes} axes")
        if min(chunk) < 1:
            raise UsageError(f"chunk {min(chunk)}: use 1 or more")
        edges = [min(e, n) for e, n in zip(list(chunk) * (axes // len(chunk)), self._windows.extents)]
        for edge, step, n in zip(edges, self._steps, self._windows.extents):
            unit = math.gcd(step, edge) if edge < n else edge
            if edge < n and unit != step and step // unit and step in self._file_steps():
                raise UsageError(f"chunk {edge}: the target is written in pieces of {step} rows: use a multiple")
        return tuple(edges)

    def _file_steps(self) -> List[int]:
        return [s for s, u in zip(self._steps, self._windows.units) if s != u]

    def _arrays_bytes(self, crops: Mapping[str, Tuple[int, ...]], chunk: Sequence[int]) -> int:
        """Of a crop as it is read and as the model takes it, and of the result, twice."""
        read = sum(math.prod(shape) * (np.dtype(self._types[n]).itemsize + 4) for n, shape in crops.items())
        shape = list(self._shape)
        for axis, rows in zip(self._windows.axes, chunk):
            shape[axis] = rows
        return read + math.prod(shape) * (self._dtype.itemsize * 2 + 4)

    def plan(self, edges: Tuple[int, ...]) -> Plan:
        """The model for chunks of these edges, and what a worker then takes."""
        crops, shapes = self._windows.sizes(edges), self._windows.shapes(edges)
        written = self._windows.stored_bytes(edges)
        content: Optional[bytes] = None
        if self._tiled:
            made, result = tile(self._model if is_path(self._model) else content_of(self._model), shapes=shapes, **self._options)
            untiled, after = predicted_bytes(result.data)
            if result.regions and isinstance(made, bytes):
                content = made
        else:
            untiled, after = predicted_bytes(inspect(self._model, shapes=shapes, **self._options).data)
        model = after if content is not None else untiled
        if model is None:
            return Plan(edges, content, None)
        return Plan(edges, content, self._resident + int(_MARGIN * (model + (1 + self._sent) * self._arrays_bytes(crops, edges) + written)))

    def _is_enough(self, edges: Tuple[int, ...]) -> bool:
        """Whether larger chunks are hardly faster."""
        sizes = self._windows.sizes(edges)
        parts = [math.prod(sizes[n][a["input_axis"]] * a["num"] / (a["den"] * edges[self._windows.axes.index(a["axis"])]) for a in axes)
                 for n, axes in self._windows.pairs.items()]
        return max(parts, default=1) <= 1 + _HALO_PART and math.prod(edges) >= _ELEMENTS_ENOUGH

    def choose(self, worker_budget: int) -> Plan:
        """The largest chunks whose worker stays in the budget, or smaller ones that are as good. Raises BudgetError where the smallest
        does not."""
        tries = sorted({self.edges(e) for e in _EDGES}, key=math.prod)
        enough = next((k for k, e in enumerate(tries) if self._is_enough(e)), len(tries) - 1)
        tries = tries[:enough + 1]
        many = [e for e in tries if math.prod(self._windows.counts(e)) >= _TASKS_A_WORKER * self._workers]
        tries = many or tries[:1]
        low, high, best = 0, len(tries) - 1, None
        while low <= high:
            middle = high if best is None and high == len(tries) - 1 else (low + high) // 2
            plan = self.plan(tries[middle])
            if plan.worker_bytes is None:
                raise UsageError("what this model takes in this runtime is not known: give chunk=")
            if plan.worker_bytes <= worker_budget:
                low, best = middle + 1, plan
            else:
                high = middle - 1
        if best is None:
            least = self.plan(tries[0]).worker_bytes or 0
            raise BudgetError(f"a worker needs {format_bytes(least)} for the smallest chunk, and has {format_bytes(max(worker_budget, 0))}: "
                              "what the budget leaves besides this process, for each worker; use fewer workers or a larger budget")
        return best
