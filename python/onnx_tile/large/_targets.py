"""Where parts of the output are written to. A file is made under another name and gets its own when all of it is there."""
import os
import shutil
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from .._errors import SystemFailure, UsageError
from ._packages import need
from ._sources import RasterSource, Source, is_zarr, quiet

if TYPE_CHECKING:
    from ._sources import Array, Window

# Rows and columns of the blocks of a GeoTIFF.
BLOCK = 512


class Target:
    """An array that is written by windows that are no two the same."""

    # Whether any process can write it; else the caller does, with what workers send.
    shared = True
    # The packages that writing needs.
    packages: Tuple[str, ...] = ()

    def __init__(self) -> None:
        """shape, dtype and chunk are known once it is created."""
        self.shape: Tuple[int, ...] = ()
        self.dtype = np.dtype("f4")
        self.chunk: Tuple[int, ...] = ()

    def step(self, rank: int) -> Tuple[int, ...]:
        """Chunks have to begin at multiples of these, lest two workers write one piece of the file."""
        return (1,) * rank

    def set(self, shape: Tuple[int, ...], dtype: Any, chunk: Tuple[int, ...]) -> None:
        """What it will hold."""
        self.shape, self.dtype, self.chunk = tuple(shape), np.dtype(dtype), tuple(chunk)

    def create(self) -> None:
        """Make it, with nothing in it."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether what create makes is there, to be written on."""
        return False

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """Write chunk `number`, which lies at this window."""
        raise NotImplementedError

    def finish(self, windows: Iterable[Tuple[int, "Window"]]) -> None:
        """All chunks, these, are written."""


class ArrayTarget(Target):
    """An array in the caller's memory: the given one, or a new one."""

    shared = False

    def __init__(self, array: "Optional[Array]" = None) -> None:
        """array: to be written into."""
        super().__init__()
        self.array = array

    def create(self) -> None:
        """See Target."""
        if self.array is None:
            self.array = np.empty(self.shape, self.dtype)
        elif self.array.shape != self.shape:
            raise UsageError(f"the target has the shape {self.array.shape}, the result {self.shape}")
        elif self.array.dtype != self.dtype:
            raise UsageError(f"the target is {self.array.dtype}, the result {self.dtype}: give dtype=")

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        assert self.array is not None
        self.array[window] = part


class FileTarget(Target):
    """A file, or a folder, that is made as `made` and moved to `path`."""

    def __init__(self, path: str, made: str, options: Mapping[str, Any]) -> None:
        """options: for whoever makes the file."""
        super().__init__()
        self.path, self.made, self.options = os.path.abspath(path), os.path.abspath(made), dict(options)

    def exists(self) -> bool:
        """See Target."""
        return os.path.exists(self.made)

    def finish(self, windows: Iterable[Tuple[int, "Window"]]) -> None:
        """See Target."""
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            shutil.rmtree(self.path)
        os.replace(self.made, self.path)


def reserve(path: str) -> None:
    """Take the room of a file on the disk now: what is mapped and has none ends the process that writes it."""
    try:
        with open(path, "r+b") as f:
            os.posix_fallocate(f.fileno(), 0, max(1, os.path.getsize(path)))
    except OSError as why:
        raise SystemFailure(f"cannot write '{path}': {why.strerror}") from None


class NpyTarget(FileTarget):
    """A .npy file, mapped."""

    def create(self) -> None:
        """See Target."""
        if self.options:
            raise UsageError(f"a .npy file has no option '{next(iter(self.options))}'")
        np.lib.format.open_memmap(self.made, "w+", self.dtype, self.shape)
        reserve(self.made)

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        np.lib.format.open_memmap(self.made, "r+")[window] = part


class StackTarget(FileTarget):
    """A TIFF stack without compression, mapped."""

    packages = ("tifffile",)

    def create(self) -> None:
        """See Target."""
        options = {"bigtiff": True, "photometric": "minisblack", **self.options}
        need("tifffile").memmap(self.made, shape=self.shape, dtype=self.dtype, **options).flush()
        reserve(self.made)

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        whole = need("tifffile").memmap(self.made, mode="r+")
        whole.reshape(self.shape)[window] = part
        whole.flush()


class ZarrTarget(FileTarget):
    """A Zarr array, whose chunks are the chunks of the work."""

    packages = ("zarr",)

    def create(self) -> None:
        """See Target."""
        try:
            need("zarr").create_array(self.made, **{"shape": self.shape, "chunks": self.chunk, "dtype": self.dtype,
                                                    "overwrite": True, **self.options})
        except (TypeError, ValueError) as why:
            raise UsageError(f"Zarr: {' '.join(str(why).split())}") from None

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        need("zarr").open_array(self.made, mode="r+")[window] = part


class ZarrArrayTarget(Target):
    """A zarr.Array of the caller's, in whatever store, written where it is."""

    packages = ("zarr",)

    def __init__(self, array: Any) -> None:
        """The chunks of the work become multiples of its chunks."""
        super().__init__()
        self.array = array

    def step(self, rank: int) -> Tuple[int, ...]:
        """See Target."""
        return tuple(getattr(self.array, "shards", None) or self.array.chunks)

    def create(self) -> None:
        """See Target."""
        if tuple(self.array.shape) != self.shape or self.array.dtype != self.dtype:
            raise UsageError(f"the target is {self.array.dtype}{tuple(self.array.shape)}, the result {self.dtype}{self.shape}")

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        self.array[window] = part


class RasterTarget(FileTarget):
    """A GeoTIFF. Workers write chunks to files of their own, since only one process can write the format; `finish` joins them."""

    packages = ("rasterio",)

    def __init__(self, path: str, made: str, options: Mapping[str, Any], place: Dict[str, Any]) -> None:
        """place: crs and transform, or nothing."""
        super().__init__(path, made, options)
        self._parts, self._place = made + ".parts", place

    def create(self) -> None:
        """See Target."""
        need("rasterio")
        shutil.rmtree(self._parts, ignore_errors=True)
        os.makedirs(self._parts)

    def exists(self) -> bool:
        """See Target."""
        return os.path.isdir(self._parts)

    def _part(self, number: int) -> str:
        return os.path.join(self._parts, f"{number}.npy")

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        unnamed = f"{self._part(number)}.{os.getpid()}"
        with open(unnamed, "wb") as f:
            np.save(f, part)
        os.replace(unnamed, self._part(number))

    def finish(self, windows: Iterable[Tuple[int, "Window"]]) -> None:
        """See Target."""
        rasterio = need("rasterio")
        bands, height, width = ((1,) * (3 - len(self.shape)) + self.shape)
        profile = {"driver": "GTiff", "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK, "BIGTIFF": "IF_SAFER",
                   **self._place, **self.options}
        cloud = profile["driver"] == "COG"  # is written from a file that is there
        first = {"driver": "GTiff", "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK, "BIGTIFF": "YES", **self._place} if cloud else profile
        joined = self.made + ".whole" if cloud else self.made
        try:
            with quiet(rasterio):
                with rasterio.open(joined, "w", count=bands, height=height, width=width, dtype=self.dtype.name, **first) as file:
                    for number, window in windows:
                        part = np.load(self._part(number), mmap_mode="r")
                        rows, columns = ((s.start, s.stop) for s in window[-2:])
                        file.write(part.reshape((bands, *part.shape[-2:])), window=(rows, columns))
                if cloud:
                    extra = {k: v for k, v in self.options.items() if k != "driver"}
                    need("rasterio.shutil").copy(joined, self.made, driver="COG", **extra)
                    os.remove(joined)
        except rasterio.errors.RasterioError as why:
            raise SystemFailure(f"cannot write '{self.path}': {' '.join(str(why).split())}") from None
        super().finish(windows)
        joined_parts = os.path.join(os.path.dirname(self.made), "joined")  # of no use from here on, also where only some are removed
        os.replace(self._parts, joined_parts)
        shutil.rmtree(joined_parts)


def _step(axis: Mapping[str, int]) -> Tuple[float, float]:
    """Of an axis of the output: pixels of the input for one of it, and where its first one begins. Outputs that cover the input lie on
    it; those of models without padding lie in the middle of what they are computed from."""
    step = axis["den"] / axis["num"]
    if axis["output_extent"] * axis["den"] == axis["extent"] * axis["num"]:
        return step, 0.0
    end = step - axis["offset"] + axis["halo_hi"]  # of what its first pixel is computed from
    return step, end - axis["receptive_field"] / 2 - step / 2


def _placed(source: Source, axes: List[Mapping[str, int]]) -> Dict[str, Any]:
    """Where the output of a picture on the earth lies."""
    if not isinstance(source, RasterSource):
        return {}
    by_axis = {a["input_axis"]: a for a in axes}
    (down, row), (right, column) = (_step(by_axis[k]) for k in sorted(by_axis)[-2:])
    a, b, c, d, e, f = source.transform
    moved = (a * right, b * down, a * column + b * row + c, d * right, e * down, d * column + e * row + f)
    return {"crs": source.crs, "transform": need("rasterio").Affine(*moved)}


def open_target(given: Any, made: str, options: Mapping[str, Any], source: Source, axes: List[Mapping[str, int]], rank: int) -> Target:
    """A target of what was given: None or an array, a zarr.Array, or a path. rank: of what will be written; axes: that the output follows."""
    if isinstance(given, Target):
        return given
    if given is None or isinstance(given, np.ndarray):
        return ArrayTarget(given)
    if type(given).__module__.split(".")[0] == "zarr" and hasattr(given, "dtype"):
        return ZarrArrayTarget(given)
    if not isinstance(given, (str, os.PathLike)):
        raise UsageError(f"a target is an array, a zarr.Array or a path, not {type(given).__name__}")
    path = os.fspath(given)
    if is_zarr(path):
        return ZarrTarget(path, made, options)
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".npy":
        return NpyTarget(path, made, options)
    if suffix not in (".tif", ".tiff"):
        raise UsageError(f"target '{path}': the name has to end in .npy, .zarr, .tif or .tiff")
    if rank < 2:
        raise UsageError(f"target '{path}': a TIFF has rows and columns, the result {rank} dimension{'' if rank == 1 else 's'}")
    if isinstance(source, RasterSource) or (rank <= 3 and len(axes) == 2):
        if rank > 3 or len(axes) != 2:
            raise UsageError(f"target '{path}': a GeoTIFF has bands, rows and columns, the result {rank} dimensions")
        return RasterTarget(path, made, options, _placed(source, axes))
    return StackTarget(path, made, options)
