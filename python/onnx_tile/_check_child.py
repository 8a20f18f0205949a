"""A process of `check`: loads one model in a runtime, then runs it each time a line comes in. One JSON object a line comes out.

    in   {"model": path, "runtime": "onnxruntime", ...}        out   {"inputs": [...], "load_seconds": ...}
    in   run                                                    out   {"seconds": ..., "growth_bytes": ..., "process_bytes": ...}, the most so far

The outputs of the first run are written to a file. What fails is {"error": one line}.
"""
import json
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

# Elements by ONNX Runtime's names of types.
_DTYPES = {"float": "f4", "float16": "f2", "double": "f8", "int64": "i8", "int32": "i4", "int16": "i2", "int8": "i1", "uint64": "u8",
           "uint32": "u4", "uint16": "u2", "uint8": "u1", "bool": "?"}
# The same by OpenVINO's.
_OPENVINO = {"f32": "f4", "f16": "f2", "f64": "f8", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u64": "u8", "u32": "u4",
             "u16": "u2", "u8": "u1", "boolean": "?"}


class OnnxRuntime:
    """A session of ONNX Runtime on the CPU."""

    def __init__(self, path: str, threads: int, shapes: Dict[str, List[int]], library: Optional[str], plain: bool) -> None:
        """library: of the engine's operator, for models that do not load without it; None: there is none. plain: nothing is optimised."""
        import onnxruntime  # type: ignore[import-untyped]
        del shapes  # arrays have them
        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if plain:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as why:  # whose class is not the same in all versions
            if library is None or "onnx_tile" not in str(why):
                raise
            options.add_session_config_entry("onnx_tile.threads", str(threads))
            options.register_custom_ops_library(library)
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.name = f"ONNX Runtime {onnxruntime.__version__}"
        self.inputs = [(i.name, _DTYPES.get(i.type[7:-1]), i.shape) for i in self._session.get_inputs()]
        self.outputs = [o.name for o in self._session.get_outputs()]

    def run(self, feeds: Dict[str, np.ndarray]) -> List[Any]:
        """The outputs."""
        outputs: List[Any] = list(self._session.run(None, feeds))
        return outputs


class OpenVino:
    """A compiled model of OpenVINO on the CPU, in float32."""

    def __init__(self, path: str, threads: int, shapes: Dict[str, List[int]], library: Optional[str], plain: bool) -> None:
        import openvino  # type: ignore[import-not-found,unused-ignore]
        del library, plain  # it has no such level
        core = openvino.Core()
        model = core.read_model(path)
        if shapes:
            model.reshape(dict(shapes))
        self._model = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
                                                        "INFERENCE_NUM_THREADS": threads})
        self.name = f"OpenVINO {openvino.__version__.split('-')[0]}"
        self.inputs = [(i.get_any_name(), _OPENVINO.get(i.get_element_type().get_type_name()),
                        [d.get_length() if d.is_static else None for d in i.get_partial_shape()]) for i in self._model.inputs]
        self.outputs = [o.get_any_name() for o in self._model.outputs]

    def run(self, feeds: Dict[str, np.ndarray]) -> List[Any]:
        """The outputs, copied: the next run writes where these lie."""
        results = self._model(feeds)
        return [results[k].copy() for k in range(len(self.outputs))]


def _kilobytes(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key))


def _reset_peak() -> None:
    """The peak resident size starts anew."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def _move(feeds: Dict[str, np.ndarray], seed: int, half: bool) -> None:
    """Floats become one of their neighbours, or what half precision rounds to another (half); seed 0: they stay."""
    rng = np.random.default_rng(seed)
    for name, array in feeds.items():
        if seed and array.dtype in (np.float16, np.float32, np.float64):
            down = rng.random(array.shape) < 0.5
            if half and array.dtype != np.float16:
                feeds[name] = array * np.where(down, 1 - 2**-11, 1 + 2**-11).astype(array.dtype)
            else:
                feeds[name] = np.nextafter(array, np.where(down, -np.inf, np.inf).astype(array.dtype))


def _make_feeds(inputs: List[Tuple[str, Any, Any]], shapes: Dict[str, List[int]], seed: int) -> Dict[str, np.ndarray]:
    """Random arrays, the same for the same names and seed: floats from 0 to 1, bytes from 0 to 255, other integers 0 and 1. shapes: of
    inputs with free dimensions, which are 1 otherwise."""
    rng, feeds = np.random.default_rng(seed), {}
    for name, kind, shape in sorted(inputs, key=lambda i: i[0]):
        if kind is None:
            raise ValueError(f"input '{name}' is no tensor of numbers")
        dims = shapes.get(name, [d if isinstance(d, int) and d > 0 else 1 for d in shape])
        dtype = np.dtype(kind)
        if dtype.kind == "b":
            feeds[name] = np.ones(dims, dtype)
        elif dtype.kind in "iu":
            feeds[name] = rng.integers(0, 256 if kind == "u1" else 2, dims).astype(dtype)
        else:
            feeds[name] = rng.random(dims).astype(dtype)
    return feeds


def _parts(output: Any) -> List[np.ndarray]:
    """The arrays of an output: of a tensor one, of a sequence its tensors; other things as their text."""
    if isinstance(output, np.ndarray) and output.dtype.kind != "O":
        return [output]
    if isinstance(output, list) and all(isinstance(x, np.ndarray) for x in output):
        return output
    return [np.frombuffer(repr(output).encode(), np.uint8)]


def _save(path: str, outputs: List[Any]) -> None:
    """Arrays named OUTPUT.PART. Nothing refers to the outputs after it: they are no memory of the next run."""
    parts: Dict[str, Any] = {f"{n}.{i}": part for n, o in enumerate(outputs) for i, part in enumerate(_parts(o))}
    np.savez(path, **parts)


def _tell(answer: Dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _serve(request: Dict[str, Any]) -> None:
    openvino = request["runtime"] == "openvino"
    before = resident = _kilobytes("VmRSS:")
    start = time.perf_counter()
    model = (OpenVino if openvino else OnnxRuntime)(request["model"], request["threads"], request["shapes"], request["library"],
                                                   request.get("plain", False))
    load_seconds = time.perf_counter() - start
    loaded, process = _kilobytes("VmRSS:"), _kilobytes("VmHWM:") - before
    feeds = _make_feeds(model.inputs, {**request["sizes"], **request["shapes"]}, request["seed"])
    _move(feeds, request.get("move", 0), request.get("half", False))
    _tell({"runtime": model.name, "inputs": sorted(feeds), "output_names": model.outputs, "load_seconds": load_seconds})
    fed = max(0, _kilobytes("VmRSS:") - loaded)  # inputs are the caller's
    if not openvino:
        resident = _kilobytes("VmRSS:")
    growth = 0
    for k, _ in enumerate(sys.stdin):
        _reset_peak()  # of what happens to outputs after a run
        start = time.perf_counter()
        outputs = model.run(feeds)
        seconds = time.perf_counter() - start
        peak = _kilobytes("VmHWM:")
        growth, process = max(growth, peak - resident), max(process, peak - before - fed)
        if k == 0:
            _save(request["outputs"], outputs)
        del outputs
        _tell({"seconds": seconds, "growth_bytes": growth * 1024, "process_bytes": process * 1024})


def main() -> None:
    """Serve one request, which is the first line of stdin."""
    try:
        _serve(json.loads(sys.stdin.readline()))
    except Exception as why:  # whatever a runtime raises is the answer
        _tell({"error": " ".join(str(why).split())[:400] or type(why).__name__})


if __name__ == "__main__":
    main()
