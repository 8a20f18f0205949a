"""Where parts of the input are read from. A source opens its file for each part and closes it: what is mapped or cached then does
not stay in a worker, and a source can be sent to any process that sees the file."""
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

import numpy as np

from .._errors import Error, ModelError, SystemFailure, UsageError
from ._packages import need

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Window = Tuple[slice, ...]
    PathLike = Union[str, "os.PathLike[str]"]

# What GDAL may keep of a file between reads, in MiB: the budget is for the model.
GDAL_CACHE_MIB = 32


class Source:
    """An array that is read by windows, one slice for each dimension; the order of dimensions is the model's."""

    # Whether any process can read it; else the caller reads and sends what was read.
    shared = True

    def __init__(self, shape: Tuple[int, ...], dtype: Any) -> None:
        """What it holds."""
        self.shape, self.dtype = tuple(int(n) for n in shape), np.dtype(dtype)

    def read(self, window: "Window") -> "Array":
        """The elements of a window, in memory of their own."""
        raise NotImplementedError

    def identity(self) -> Dict[str, Any]:
        """What a manifest says of it: another identity is another input."""
        return {"shape": list(self.shape), "dtype": self.dtype.str}


def stamp(path: str) -> Dict[str, Any]:
    """Path, size and time of a file."""
    try:
        found = os.stat(path)
    except OSError as why:
        raise SystemFailure(f"cannot read '{path}': {why.strerror}") from None
    return {"path": os.path.abspath(path), "size_bytes": found.st_size, "modified_ns": found.st_mtime_ns}


def _unreadable(path: str, why: Exception) -> Error:
    """For a file that cannot be opened, or is not what its name says."""
    kind = SystemFailure if isinstance(why, OSError) and why.errno else ModelError
    return kind(f"cannot read '{path}': {' '.join(str(why).split()) or type(why).__name__}")


class ArraySource(Source):
    """An array in the caller's memory."""

    shared = False

    def __init__(self, array: "Array") -> None:
        """The array itself is kept, not a copy."""
        super().__init__(array.shape, array.dtype)
        self._array = array

    def read(self, window: "Window") -> "Array":
        """See Source."""
        return np.array(self._array[window])

    def identity(self) -> Dict[str, Any]:
        """See Source. Of the elements, some 100,000 that are spread over all."""
        most = max(1, round(1e5 ** (1 / max(1, self._array.ndim))))
        sample = self._array[tuple(slice(None, None, max(1, n // most)) for n in self.shape)]
        return {**super().identity(), "sha256": hashlib.sha256(np.ascontiguousarray(sample).tobytes()).hexdigest()}


class MappedSource(Source):
    """A file that holds the array in one piece: .npy, or a TIFF stack without compression."""

    def __init__(self, path: str, shape: Tuple[int, ...], dtype: Any, offset: int, fortran: bool = False) -> None:
        """offset: of the first element in the file."""
        super().__init__(shape, dtype)
        self._path, self._offset, self._fortran = os.path.abspath(path), offset, fortran

    def read(self, window: "Window") -> "Array":
        """See Source."""
        whole = np.memmap(self._path, self.dtype, "r", self._offset, self.shape, "F" if self._fortran else "C")
        return np.array(whole[window])

    def identity(self) -> Dict[str, Any]:
        """See Source."""
        return {**super().identity(), **stamp(self._path)}


class ZarrSource(Source):
    """A Zarr array, v2 or v3."""

    def __init__(self, array: Any) -> None:
        """array: a zarr.Array, which is sent with its store."""
        super().__init__(array.shape, array.dtype)
        self._array = array

    def read(self, window: "Window") -> "Array":
        """See Source."""
        return np.asarray(self._array[window])

    def identity(self) -> Dict[str, Any]:
        """See Source."""
        return {**super().identity(), "path": str(self._array.store_path)}


class RasterSource(Source):
    """All bands of a GeoTIFF, or of another picture that GDAL reads: [bands, rows, columns]."""

    def __init__(self, path: str) -> None:
        """Opens it once for what it holds and where it lies on the earth."""
        rasterio = need("rasterio")
        self._path = os.path.abspath(path)
        try:
            with quiet(rasterio), rasterio.open(self._path) as file:
                self._look(path, file)
        except rasterio.errors.RasterioError as why:
            raise _unreadable(path, why) from None

    def _look(self, path: str, file: Any) -> None:
        super().__init__((file.count, file.height, file.width), file.dtypes[0])
        if len(set(file.dtypes)) > 1:
            raise UsageError(f"'{path}' has bands of several types")
        self.crs: Optional[str] = file.crs.to_wkt() if file.crs else None
        self.transform: Tuple[float, ...] = tuple(file.transform)[:6]

    def read(self, window: "Window") -> "Array":
        """See Source."""
        rasterio = need("rasterio")
        bands, rows, columns = (s.indices(n) for s, n in zip(window, self.shape))
        place = ((rows[0], rows[1]), (columns[0], columns[1]))
        with quiet(rasterio), rasterio.open(self._path) as file:
            return np.asarray(file.read(list(range(bands[0] + 1, bands[1] + 1)), window=place))

    def identity(self) -> Dict[str, Any]:
        """See Source."""
        return {**super().identity(), **stamp(self._path)}


class StackSource(Source):
    """A TIFF with more than pages of one picture, compressed or not in one piece. Samples of a pixel come in front of its row."""

    def __init__(self, path: str, shape: Tuple[int, ...], dtype: Any, samples_last: bool) -> None:
        """shape: as the file has it."""
        self._path, self._last = os.path.abspath(path), samples_last
        super().__init__((*shape[:-3], shape[-1], *shape[-3:-1]) if samples_last else shape, dtype)

    def read(self, window: "Window") -> "Array":
        """See Source."""
        place = (*window[:-3], *window[-2:], window[-3]) if self._last else window
        with need("tifffile").TiffFile(self._path) as file:
            store = file.series[0].aszarr(level=0)
            try:
                found = np.asarray(need("zarr").open_array(store, mode="r")[place])
            finally:
                store.close()
        return np.moveaxis(found, -1, -3) if self._last else found

    def identity(self) -> Dict[str, Any]:
        """See Source."""
        return {**super().identity(), **stamp(self._path)}


def quiet(rasterio: Any) -> Any:
    """GDAL with a small cache. Pictures without a place on the earth are no reason for a warning."""
    import warnings
    warnings.filterwarnings("ignore", category=rasterio.errors.NotGeoreferencedWarning)
    return rasterio.Env(GDAL_CACHEMAX=GDAL_CACHE_MIB)


def _npy(path: str) -> Source:
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as why:  # OSError, ValueError, of a broken header others
        raise _unreadable(path, why) from None
    return MappedSource(path, array.shape, array.dtype, array.offset, not array.flags.c_contiguous)


def is_zarr(path: str) -> bool:
    """Whether a path is a Zarr array or a group, by its name or by what lies there."""
    metadata = ("zarr.json", ".zarray", ".zgroup")
    return any(p.endswith(".zarr") for p in Path(path).parts) or any(os.path.isfile(os.path.join(path, m)) for m in metadata)


def _zarr(path: str) -> Source:
    """An array; of a group of OME-Zarr, the first level."""
    zarr = need("zarr")
    try:
        found = zarr.open(path, mode="r")
    except Exception as why:  # of many classes
        raise _unreadable(path, why) from None
    if hasattr(found, "dtype"):
        return ZarrSource(found)
    attributes = dict(found.attrs)
    scales = attributes.get("multiscales") or dict(attributes.get("ome", {})).get("multiscales")
    if not scales:
        raise UsageError(f"'{path}' is a group of Zarr: give the path of one of its arrays")
    return ZarrSource(found[scales[0]["datasets"][0]["path"]])


def _tiff(path: str) -> Source:
    """A stack where the file has more axes than bands, rows and columns."""
    try:
        with need("tifffile").TiffFile(path) as file:
            series = file.series[0]
            page, axes = series.keyframe, series.axes
            stack = not page.is_geotiff and bool(set(axes) - set("YXSC")) and len(series.shape) > 2
            shape, dtype, offset = tuple(series.shape), series.dtype, series.dataoffset
            native = file.byteorder == ("<" if np.little_endian else ">")
    except ImportError:
        return RasterSource(path)
    except Exception as why:  # of many classes
        raise _unreadable(path, why) from None
    if not stack:
        return RasterSource(path)
    last = axes.endswith("S")
    if offset is not None and native and not last:
        return MappedSource(path, shape, dtype, offset)
    return StackSource(path, shape, dtype, last)


def open_source(given: Any) -> Source:
    """A source of what was given: an array, a zarr.Array, or the path of a file."""
    if isinstance(given, Source):
        return given
    if isinstance(given, np.ndarray):
        return ArraySource(given)
    if type(given).__module__.split(".")[0] == "zarr" and hasattr(given, "dtype"):
        return ZarrSource(given)
    if not isinstance(given, (str, os.PathLike)):
        raise UsageError(f"a source is an array, a zarr.Array or a path, not {type(given).__name__}"
                         + (": use map_array" if type(given).__module__.startswith("dask") else ""))
    path = os.fspath(given)
    if is_zarr(path):
        return _zarr(path)
    stamp(path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".npy":
        return _npy(path)
    if suffix in (".tif", ".tiff"):
        return _tiff(path)
    raise UsageError(f"source '{path}': the name has to end in .npy, .zarr, .tif or .tiff")
