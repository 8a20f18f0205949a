"""map_array: a model over an array of Dask, lazily. Each chunk of the result asks for the window of the input that it needs."""
import math
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Union

import numpy as np

from .._errors import UsageError
from . import _work as work
from ._models import content_of, hash_of
from ._packages import need
from ._setup import Setup
from ._sources import Source

if TYPE_CHECKING:
    from .._model import Model
    from ._sources import Array, Window
    from ._windows import Part


class _Lazy(Source):
    """Stands for an array of Dask: crops come with the task."""

    shared = False

    def read(self, window: "Window") -> "Array":
        """Never: Dask reads."""
        raise UsageError("an array of Dask is not read here")


def compute_chunk(*crops: "Array", job: work.Job, part: "Part", names: Sequence[str]) -> "Array":
    """One chunk, in whatever worker has the crops, which are those of the inputs `names`."""
    done = work.work(job, part, dict(zip(names, crops)))
    assert done.part is not None
    return done.part


def _edges(setup: Setup, arrays: Dict[str, Any], chunk: "Union[None, int, Sequence[int]]") -> List[int]:
    """Rows of a chunk along each axis that is cut: as given, or as the first input's first chunk makes."""
    windows, edges = setup.windows, []
    given = [chunk] * len(windows.axes) if isinstance(chunk, int) else list(chunk or [])
    if chunk is not None and (len(given) != len(windows.axes) or min(given) < 1):
        raise UsageError(f"chunk {chunk!r}: the output is cut along {len(windows.axes)} axes, give 1 or more for each")
    for k, (axis, extent) in enumerate(zip(windows.axes, windows.extents)):
        name, a = next((n, a) for n, axes in windows.pairs.items() for a in axes if a["axis"] == axis)
        array = arrays[name]
        rows = array.chunks[a["input_axis"] - len(setup.shapes[name])][0]
        edges.append(min(given[k] if given else max(1, rows * a["num"] // a["den"]), extent))
    return edges


def map_array(model: "Model", array: Any, *, chunk: "Union[None, int, Sequence[int]]" = None, runtime: str = "onnxruntime",
              threads: int = 1, output: Optional[str] = None, scale: Optional[float] = None, out_scale: Optional[float] = None,
              dtype: Any = None, prepare: "Optional[Callable[[Array], Array]]" = None,
              finish: "Optional[Callable[[Array], Array]]" = None) -> Any:
    """The model's output on an array of Dask, as an array of Dask: nothing is computed but a small probe, which tells shape and type.

    array: or {input: array}. chunk: rows of the result's chunks, one number or one for each axis that is cut; None: what comes of
    the array's own chunks. The other arguments are those of apply. Each chunk is computed from slices of the array, on any of
    Dask's schedulers, and is what the model gives on the whole, to the bit. Raises UsageError naming the node where a node needs a
    whole axis.
    """
    da, dask = need("dask.array"), need("dask")
    arrays = dict(array) if isinstance(array, dict) else {"": array}
    for a in arrays.values():
        if not isinstance(a, da.Array) or any(math.isnan(n) for n in a.shape):
            raise UsageError("map_array takes an array of Dask whose shape is known: use apply for files and other arrays")
    lazy = {n: _Lazy(a.shape, a.dtype) for n, a in arrays.items()}
    setup = Setup(model, lazy if isinstance(array, dict) else lazy[""], output)
    if not isinstance(array, dict):
        arrays = {next(iter(setup.sources)): array}
    content = content_of(setup.model, whole=True)
    convert = work.Convert(scale, out_scale, None if dtype is None else np.dtype(dtype).str, prepare, finish)
    file = work.ModelFile("", hash_of(content), content)
    job = work.Job(file, file, runtime, threads, setup.windows.output, {}, setup.types, convert,
                   setup.probe_part(), uuid.uuid4().hex)
    found = work.probe(job)
    dropped = setup.dropped(found.shape, setup.added)
    job = replace(job, dropped=dropped, expected=found.digest)
    edges, rank = _edges(setup, arrays, chunk), len(found.shape)
    shared, names, blocks = dask.delayed(job, pure=False), list(arrays), []
    parts = setup.windows.parts(edges, rank, one_size=False)
    for part in (parts[k] for k in range(len(parts))):
        crops = [arrays[n][part.crops[n][-arrays[n].ndim:]].rechunk(-1) for n in names]
        shape = [s.stop - s.start if s.stop is not None else found.shape[k] for k, s in enumerate(part.window)][dropped:]
        blocks.append(da.map_blocks(compute_chunk, *crops, job=shared, part=part, names=names, dtype=found.dtype,
                                    chunks=tuple((n,) for n in shape), meta=np.empty((0,) * len(shape), found.dtype)))
    return da.block(_nested(blocks, setup.windows.counts(edges), [a - dropped for a in setup.windows.axes], rank - dropped))


def _nested(blocks: List[Any], counts: Sequence[int], axes: Sequence[int], rank: int) -> Any:
    """Lists in lists, as da.block takes them: one level for each dimension."""
    by_axis = dict(zip(axes, counts))

    def level(axis: int, of: List[Any]) -> Any:
        if axis == rank:
            return of[0]
        n = by_axis.get(axis, 1)
        size = len(of) // n
        return [level(axis + 1, of[k * size:(k + 1) * size]) for k in range(n)]
    return level(0, blocks)
