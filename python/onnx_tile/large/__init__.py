"""Pictures, volumes and recordings that are larger than memory: exact parts of a file, by any number of workers.

    from onnx_tile import large

    report = large.apply("model.onnx", "slide.tif", "labels.zarr", budget="2GB", workers=2)
    y = large.map_array("model.onnx", x)                       # x is a dask.array; y is one, too, and lazy

Every part is what the model gives on the whole, to the bit; docs/large.md has the rest. Needs NumPy and ONNX Runtime, and for
files what reads them: pip install 'onnx_tile[large]'.
"""
from ._apply import Applied, Progress, apply
from ._dask_array import map_array

__all__ = ["apply", "map_array", "Applied", "Progress"]
