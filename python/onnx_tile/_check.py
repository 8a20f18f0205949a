"""check: is the tiled model the same function, and what does it take? Both run in the installed runtime, each in a process of its own.

    parent                               child before          child after
      both load                      -->   ready                 ready
      one run each, outputs kept     -->   outputs.npz           outputs.npz     compared
      rounds, in turns               -->   seconds, bytes        seconds, bytes  the least seconds, the last bytes count

The smallest time of the rounds counts. Memory is what the process's peak resident size is over its resident size with the model loaded
(OpenVINO: before loading, because it takes memory for loops when it compiles).
"""
import errno
import json
import os
import subprocess
import sys
import tempfile
from ctypes import byref
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ._errors import Error, ModelError, ModelNotFound, SystemFailure, UsageError
from ._half import computes_half
from ._library import Handle, Tensor, int64_of, items_of
from ._model import bytes_of, load
from ._ort import find_library
from ._result import format_bytes, format_seconds, html_table, ratio

if TYPE_CHECKING:
    from ._compare import Difference
    from ._model import Model


# A file of its own, run as one: it loads the runtime and nothing of this package.
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_check_child.py")

# Operators that average whole maps: float32 sums of millions of elements, in any order, are this far from exact ones.
_NORMALISE = (b"InstanceNormalization", b"GroupNormalization", b"MeanVarianceNormalization")


class Measured(NamedTuple):
    """One of the two models: seconds is the least of the rounds, growth_bytes of the process while it runs, load_seconds; process_bytes: the most
    that it holds, from before it loads the runtime to the last run, without the inputs."""

    seconds: float
    growth_bytes: int
    load_seconds: float
    process_bytes: int


class Output(NamedTuple):
    """One output compared. nmse: squared error over the squared values; max_error: over the largest value. why: "" where the same.
    own_noise: the same, since it is no further apart than `before` is from itself by rounding."""

    name: str
    same: bool
    nmse: float
    max_error: float
    why: str
    own_noise: bool = False


class Comparison:
    """What `check` found; str() is a table, and it is true when all outputs are the same."""

    def __init__(self, runtime: str, before: Measured, after: Measured, outputs: List[Output]) -> None:
        """runtime: its name and version."""
        self.runtime, self.before, self.after, self.outputs = runtime, before, after, outputs

    @property
    def same(self) -> bool:
        """Whether every output is the same within rounding."""
        return all(o.same for o in self.outputs)

    @property
    def time_ratio(self) -> Optional[float]:
        """After / before."""
        return ratio(self.before.seconds, self.after.seconds)

    @property
    def process_ratio(self) -> Optional[float]:
        """After / before, of the whole process."""
        return ratio(self.before.process_bytes, self.after.process_bytes)

    @property
    def memory_ratio(self) -> Optional[float]:
        """After / before, of the resident growth."""
        return ratio(self.before.growth_bytes, self.after.growth_bytes)

    def __bool__(self) -> bool:
        return self.same

    def _rows(self) -> List[List[str]]:
        def times(r: Optional[float]) -> str:
            return "" if r is None else f"x{r:.2f}"
        return [["whole process", format_bytes(self.before.process_bytes), format_bytes(self.after.process_bytes), times(self.process_ratio)],
                ["resident growth", format_bytes(self.before.growth_bytes), format_bytes(self.after.growth_bytes), times(self.memory_ratio)],
                ["time", format_seconds(self.before.seconds), format_seconds(self.after.seconds), times(self.time_ratio)]]

    def _verdict(self) -> str:
        if self.same:
            worst = max((o.nmse for o in self.outputs), default=0.0)
            noisy = ", within the model's own rounding" if any(o.own_noise for o in self.outputs) else ""
            return f"outputs: the same ({len(self.outputs)}, NMSE at most {worst:.1e}{noisy})"
        return "outputs: " + "; ".join(f"'{o.name}' {o.why}" for o in self.outputs if not o.same)

    def __str__(self) -> str:
        lines = [f"{self.runtime:24}{'before':>12}{'after':>12}"]
        lines += [f"{name:24}{before:>12}{after:>12}   {r}" for name, before, after, r in self._rows()]
        return "\n".join(lines + [self._verdict()])

    def __repr__(self) -> str:
        figures = [f", {name} x{r:.2f}" for name, r in (("process", self.process_ratio), ("time", self.time_ratio)) if r is not None]
        return f"<onnx_tile.Comparison: {'same' if self.same else 'different'}{''.join(figures)}>"

    def _repr_html_(self) -> str:
        return html_table([self.runtime, "before", "after", ""], self._rows() + [[self._verdict(), "", "", ""]])


class _Child:
    """A process that has loaded one model and runs it when it is told to."""

    def __init__(self, request: Dict[str, Any], seconds: float) -> None:
        self._name, self._seconds = request["name"], seconds
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
        self._process = subprocess.Popen([sys.executable, _CHILD], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        self.told = self._ask(json.dumps(request))

    def _ask(self, line: str) -> Dict[str, Any]:
        try:
            self._questions.write(line + "\n")
            self._questions.flush()
            answer = self._answers.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise SystemFailure(f"the process that runs {self._name} ended with status {self._process.wait()}")
        told: Dict[str, Any] = json.loads(answer)
        if "error" in told:
            raise ModelError(f"{self._name}: {told['error']}")
        return told

    def run(self) -> Dict[str, Any]:
        """One run: seconds; growth_bytes and process_bytes, the most so far."""
        return self._ask("run")

    def close(self) -> None:
        """End the process."""
        try:
            self._questions.close()
        except OSError:
            pass
        try:
            self._process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()


def _file_of(model: "Model", name: str, folder: str) -> str:
    """The path of a model; one in memory is written into the folder first."""
    if isinstance(model, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(model))
        if not os.path.exists(path):
            raise ModelNotFound(f"cannot open {os.fspath(model)!r}: {os.strerror(errno.ENOENT)}")
        return path
    path = os.path.join(folder, name + ".onnx")
    with open(path, "wb") as f:
        f.write(bytes_of(model))
    return path


def _normalises(path: str) -> bool:
    """Whether the model's file names such an operator."""
    with open(path, "rb") as f:
        content = f.read()
    return any(word in content for word in _NORMALISE)


def _sizes_of(model: "Model") -> Dict[str, List[int]]:
    """Sizes of the inputs whose dimensions are free, as `tile` plans for where nobody gives one; of a model that it cannot read none."""
    sizes = {}
    try:
        with Handle() as handle:
            load(handle, model)
            for k in range(handle.count("input_count")):
                tensor = Tensor()
                handle.call("input", k, byref(tensor))
                dims = list(tensor.dims[:max(tensor.rank, 0)])
                if dims and min(dims) >= 0:
                    sizes[tensor.name.decode("utf-8", "surrogateescape")] = dims
    except Error:
        return {}
    return sizes


# Runs of `before` that change nothing but rounding: without optimisations, and with inputs one step of what it computes with aside.
_SAME_BUT_ROUNDING: Tuple[Dict[str, Any], ...] = ({"plain": True}, {"move": 1}, {"move": 2})


def _own_noise(request: Dict[str, Any], folder: str, n: int, loose: bool, half: bool) -> Dict[int, "Difference"]:
    """How far `before`, of this request, is from itself."""
    from ._compare import add_noise, compare_files
    noise: "Dict[int, Difference]" = {}
    for changed in _SAME_BUT_ROUNDING:
        file = os.path.join(folder, "noise.npz")
        child = _Child({**request, **changed, "half": half, "outputs": file}, 20)
        try:
            child.run()
            add_noise(noise, compare_files(request["outputs"], file, n, loose, half))
        finally:
            child.close()
    return noise


def _compared(names: List[str], requests: Dict[str, Dict[str, Any]], folder: str) -> List[Output]:
    """Every output: within the tolerance, or within the noise, which is looked for where the tolerance alone would say that it differs."""
    from ._compare import compare_files, within_noise
    before = requests["before"]
    loose, half = _normalises(before["model"]), computes_half(before["model"])
    found = compare_files(before["outputs"], requests["after"]["outputs"], len(names), loose, half)
    differ = any(not d.same and d.kind for d in found)
    noise = _own_noise(before, folder, len(names), loose, half) if differ else {}
    outputs = []
    for k, (name, d) in enumerate(zip(names, found)):
        noisy = not d.same and within_noise(d, noise.get(k))
        outputs.append(Output(name, d.same or noisy, d.nmse, d.max_error, "" if noisy else d.why, noisy))
    return outputs


def _pick_runtime(name: Optional[str]) -> str:
    import importlib.util
    known = ("onnxruntime", "openvino")
    if name is not None and name not in known:
        raise UsageError(f"runtime {name!r}: use 'onnxruntime' or 'openvino'")
    for candidate in known if name is None else (name,):
        if importlib.util.find_spec(candidate) is None:
            continue
        if importlib.util.find_spec("numpy") is None:
            raise ImportError("onnx_tile.check needs NumPy: pip install numpy")
        return candidate
    wanted = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}.get(name or "", "ONNX Runtime or OpenVINO")
    raise ImportError(f"onnx_tile.check needs {wanted}: pip install {'numpy openvino' if name == 'openvino' else 'numpy onnxruntime'}")


def check(before: "Model", after: "Model", *, runtime: Optional[str] = None, shapes: Optional[Mapping[str, Sequence[int]]] = None,
          threads: int = 1, rounds: int = 3, seed: int = 0) -> Comparison:
    """Run two models in the installed runtime on the same random inputs; compare outputs, time and memory.

    before, after: paths, bytes or onnx.ModelProtos. runtime: "onnxruntime", "openvino" or None, the first that is installed.
    shapes: {input: dimensions} of free ones; the size that `tile` plans for otherwise. threads: of the runtime. rounds: timed runs of each, in turns.
    seed: of the random inputs.

    Outputs are the same when integers and truth values are equal, floats within NMSE 1e-8 and 1e-3 of the largest value (1e-4 and
    2e-2 where `before` has float16 inside: its own rounding), with what is not finite in the same places. Models that normalise whole maps are allowed 4e-6 and 2e-2: the
    runtime's own sums are no closer. So is what is no further apart than ten times what `before` is from itself when nothing changes but
    rounding: without optimisations, or with inputs one step of their floats aside. Raises ModelError when the runtime cannot run one of them or the inputs or outputs differ.
    """
    if rounds < 1 or threads < 1:
        raise UsageError("rounds and threads are 1 at the least")
    kind = _pick_runtime(runtime)
    with tempfile.TemporaryDirectory() as folder:
        children: List[_Child] = []
        try:
            files = {"before": _file_of(before, "before", folder), "after": _file_of(after, "after", folder)}
            given = {k: [int64_of(d, "dimension") for d in v] for k, v in items_of(shapes, "shapes")}
            requests = {name: {"name": name, "model": path, "runtime": kind, "threads": threads, "library": find_library(), "shapes": given,
                               "sizes": _sizes_of(before), "seed": seed, "outputs": os.path.join(folder, name + ".npz")}
                        for name, path in files.items()}
            children.extend(_Child(request, 20) for request in requests.values())
            a, b = (c.told for c in children)
            if (a["inputs"], a["output_names"]) != (b["inputs"], b["output_names"]):
                raise ModelError(f"the models differ: {a['inputs']} -> {a['output_names']} became {b['inputs']} -> {b['output_names']}")
            for c in children:
                c.run()
            outputs = _compared(a["output_names"], requests, folder)
            runs: Dict[int, List[Dict[str, Any]]] = {0: [], 1: []}
            for r in range(rounds):
                for k in ((0, 1), (1, 0))[r % 2]:
                    runs[k].append(children[k].run())
            sides = [Measured(min(x["seconds"] for x in runs[k]), runs[k][-1]["growth_bytes"], children[k].told["load_seconds"],
                              runs[k][-1]["process_bytes"]) for k in (0, 1)]
            return Comparison(a["runtime"], sides[0], sides[1], outputs)
        finally:
            for c in children:
                c.close()
