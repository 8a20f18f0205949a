"""What a worker does: one session for a model in each process, and one part after the other: read, run, cut, write."""
import functools
import hashlib
import os
import platform
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .._errors import ModelError, SystemFailure, UsageError
from ._packages import need
from ._pass_windows import Numbers, PassPart
from ._sources import Source
from ._stored import Stored
from ._targets import Target
from ._windows import Part

if TYPE_CHECKING:
    from ._sources import Array

# NumPy's types by ONNX Runtime's names of them.
_DTYPES = {"float": "f4", "float16": "f2", "double": "f8", "int64": "i8", "int32": "i4", "int16": "i2", "int8": "i1", "uint64": "u8",
           "uint32": "u4", "uint16": "u2", "uint8": "u1", "bool": "?"}


@dataclass(frozen=True)
class ModelFile:
    """A model as it is sent: a file that workers see, and its hash; content: in place of the file, where they may not see it."""

    path: str
    sha256: str
    content: Optional[bytes] = None


@dataclass(frozen=True)
class Convert:
    """What is done to elements. An input is converted to the model's type, then multiplied by `scale`; results are multiplied by
    `out_scale`, then converted to `dtype`, rounded and limited to its range where that is one of whole numbers. `prepare` and `finish`
    come first: of an array, an array of the same rows."""

    scale: Optional[float] = None
    out_scale: Optional[float] = None
    dtype: Optional[str] = None
    prepare: "Optional[Callable[[Array], Array]]" = None
    finish: "Optional[Callable[[Array], Array]]" = None

    def facts(self) -> Dict[str, Any]:
        """What a manifest says of it."""
        def name(f: Any) -> Optional[str]:
            return None if f is None else f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', repr(type(f)))}"
        return {"scale": self.scale, "out_scale": self.out_scale, "dtype": self.dtype, "prepare": name(self.prepare), "finish": name(self.finish)}

    def before(self, part: "Array", dtype: "np.dtype[Any]") -> "Array":
        """A part of an input, as the model takes it."""
        if self.prepare is not None:
            part = self.prepare(part)
        part = np.ascontiguousarray(part, dtype)
        if self.scale is not None:
            if dtype.kind != "f":
                raise UsageError(f"the model takes {dtype}, which scale= cannot multiply: leave it out")
            part = np.multiply(part, dtype.type(self.scale))
        return part

    def after(self, part: "Array") -> "Array":
        """A part of the result, as it is written."""
        if self.finish is not None:
            part = self.finish(part)
        if self.out_scale is not None:
            part = part * part.dtype.type(self.out_scale)
        if self.dtype is None or part.dtype == np.dtype(self.dtype):
            return np.ascontiguousarray(part)
        wanted = np.dtype(self.dtype)
        if wanted.kind in "iu" and part.dtype.kind == "f":
            limits = np.iinfo(wanted)
            part = np.clip(np.rint(part), limits.min, limits.max)
        return part.astype(wanted)


@dataclass(frozen=True)
class Job:
    """What all parts have in common. model: that is run; original: with free extents, for the probe. sources: by input, types: of their elements. key: other jobs have others. dropped: dimensions
    in front that the target has not. expected: the hash that a worker's probe has to have; None: any. numbers: what passes before
    have made, by input; handed_out: outputs of a pass; stored: values that it writes, by name; kept: inputs that an earlier pass has
    written, which are taken as they are."""

    model: ModelFile
    original: ModelFile
    runtime: str
    threads: int
    output: str
    sources: Dict[str, Source]
    types: Dict[str, str]
    convert: Convert
    probe_part: "Union[Part, PassPart]"
    key: str
    target: Optional[Target] = None
    dropped: int = 0
    expected: Optional[str] = None
    tell_only: bool = False
    numbers: "Mapping[str, Array]" = field(default_factory=dict)
    handed_out: Tuple[str, ...] = ()
    stored: "Mapping[str, Stored]" = field(default_factory=dict)
    kept: "FrozenSet[str]" = frozenset()


class Done(NamedTuple):
    """What a task reports. part: the result where the caller writes it; probe: the hash of this worker's probe."""

    number: int
    worker: str
    seconds: float
    bytes_read: int
    peak_bytes: int
    probe: str
    part: "Optional[Array]"


class Measured(NamedTuple):
    """What a task of a pass reports, as Done. numbers: by statistic, of those of which the chunk owns rows."""

    number: int
    worker: str
    seconds: float
    bytes_read: int
    peak_bytes: int
    probe: str
    numbers: Dict[str, Numbers]


class Probed(NamedTuple):
    """What a worker finds out before any part. shape: of the result, along axes that are not cut; resident_bytes: before the model
    was loaded."""

    digest: str
    shape: Tuple[int, ...]
    dtype: str
    resident_bytes: int
    runtime: str


class OtherBits(SystemFailure):
    """A worker whose processor computes other bits than the first worker's."""


def memory_bytes(field: str) -> int:
    """Of this process, now ("VmRSS") or at the most ("VmHWM"); 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith(field)), 0)
    except OSError:
        return 0


class _OnnxRuntime:
    """A session of ONNX Runtime, by the calls that this module needs."""

    def __init__(self, model: ModelFile, threads: int) -> None:
        ort = need("onnxruntime")
        ort.set_default_logger_severity(4)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        try:
            self._session = ort.InferenceSession(model.content or model.path, options, providers=["CPUExecutionProvider"])
        except Exception as why:  # whose class is not the same in all versions
            raise ModelError(f"ONNX Runtime does not load the model: {_line(why)}") from None
        self.name = f"onnxruntime {ort.__version__}"
        self.dtypes = {i.name: np.dtype(_DTYPES.get(i.type[7:-1], "f4")) for i in self._session.get_inputs()}

    def run(self, feeds: "Mapping[str, Array]", outputs: Sequence[str]) -> "List[Array]":
        try:
            return [np.asarray(a) for a in self._session.run(list(outputs), dict(feeds))]
        except Exception as why:
            raise ModelError(f"ONNX Runtime does not run the model: {_line(why)}") from None


class _Engine:
    """The same of the engine of this package."""

    def __init__(self, model: ModelFile, threads: int) -> None:
        from .._library import version
        from .._session import Session
        self._session = Session(model.content or model.path, threads=threads)
        self.name = f"engine {version}"
        self.dtypes = {v.name: np.dtype(v.dtype) for v in self._session.inputs if v.dtype}

    def run(self, feeds: "Mapping[str, Array]", outputs: Sequence[str]) -> "List[Array]":
        return [np.asarray(a) for a in self._session.run(feeds, list(outputs))]


RUNTIMES: Dict[str, Any] = {"onnxruntime": _OnnxRuntime, "engine": _Engine}


def _line(why: Exception) -> str:
    return " ".join(str(why).split())[:400] or type(why).__name__


class _Cache:
    """The session of this process, and the probes that it passed. One session stays: the probe's makes room for that of the work."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._session: Any = None
        self._key: Any = None
        self._probes: Dict[Any, Probed] = {}

    def session(self, job: Job, original: bool = False) -> Any:
        """The session of the job's model, or of the original; the file has to be the one that was hashed."""
        model = job.original if original else job.model
        key = (model.path, model.sha256, job.runtime, job.threads)
        if key != self._key:
            self._session = self._key = None
            if model.content is None:
                _check_file(model)
            self._session, self._key = RUNTIMES[job.runtime](model, job.threads), key
        return self._session

    def probe(self, job: Job) -> Probed:
        """What this process's processor makes of the job's probe."""
        if job.key not in self._probes:
            self._probes[job.key] = _probe(job)
        return self._probes[job.key]

    def forget(self) -> None:
        """Drop the session."""
        self._session = self._key = None
        self._probes.clear()


def _check_file(model: ModelFile) -> None:
    try:
        with open(model.path, "rb") as f:
            found = hashlib.sha256(f.read()).hexdigest()
    except OSError as why:
        raise SystemFailure(f"a worker cannot read '{model.path}': {why.strerror}") from None
    if found != model.sha256:
        raise SystemFailure(f"'{model.path}' has changed since the work began")


@functools.lru_cache(maxsize=1)
def _cache() -> _Cache:
    return _Cache()


def forget_sessions() -> None:
    """Free the sessions of this process: what runs in the caller's own does not stay."""
    _cache().forget()


def _read(sources: Mapping[str, Source], part: "Union[Part, PassPart]") -> "Dict[str, Array]":
    """The crop of every input, of as many dimensions as its source has."""
    return {name: source.read(part.crops[name][-len(source.shape):] if source.shape else ()) for name, source in sources.items()
            if name in part.crops}


def read_inline(job: Job, part: "Union[Part, PassPart]") -> "Optional[Dict[str, Array]]":
    """Of a job whose sources lie in the caller's memory, what a worker needs of them."""
    inline = {n: s for n, s in job.sources.items() if not s.shared}
    return _read(inline, part) if inline else None


def sent(job: Job) -> Job:
    """The job as it is sent: without arrays of the caller's."""
    target = job.target if job.target is not None and job.target.shared else None
    return replace(job, sources={n: s for n, s in job.sources.items() if s.shared}, target=target)


def _random(job: Job, part: "Union[Part, PassPart]") -> "Dict[str, Array]":
    """Crops for a part, the same in every process."""
    rng, made = np.random.default_rng(20), {}
    for name in sorted(set(job.types) & set(part.crops)):
        shape, dtype = [s.stop - s.start for s in part.crops[name]], np.dtype(job.types[name])
        if dtype.kind in "iu":
            made[name] = rng.integers(0, min(255, int(np.iinfo(dtype).max)), shape, np.uint8).astype(dtype, copy=False)
        else:
            made[name] = rng.random(shape, np.float32).astype(dtype, copy=False)
    return made


def _feeds(job: Job, session: Any, crops: "Dict[str, Array]", part: "Union[Part, PassPart]") -> "Dict[str, Array]":
    """What the model takes. crops: as they were read; emptied, lest they stay while it runs."""
    feeds = {n: a for n, a in job.numbers.items() if n in session.dtypes}
    for name in list(crops):
        crop = crops.pop(name)
        if name not in session.dtypes:
            continue  # passes alone read it
        crop = crop.reshape((1,) * (len(part.crops[name]) - crop.ndim) + crop.shape)
        feeds[name] = crop if name in job.kept else job.convert.before(crop, session.dtypes[name])
    if isinstance(part, PassPart):
        feeds.update({n: mask.array(session.dtypes[n]) for n, mask in part.masks.items()})
    return feeds


def _run(job: Job, session: Any, crops: "Dict[str, Array]", part: Part) -> "Array":
    """The model's result. crops: emptied."""
    feeds = _feeds(job, session, crops, part)
    result: "Array" = session.run(feeds, [job.output])[0]
    return result


def _hand_out(job: Job, session: Any, crops: "Dict[str, Array]", part: PassPart) -> "Dict[str, Array]":
    """What a pass hands out, by output. crops: emptied."""
    feeds = _feeds(job, session, crops, part)
    wanted = [*job.handed_out, *job.stored]
    return dict(zip(wanted, session.run(feeds, wanted)))


def _probe(job: Job) -> Probed:
    """A small run on random elements."""
    resident = memory_bytes("VmRSS:")
    session = _cache().session(job, original=True)
    if isinstance(job.probe_part, PassPart):
        made = _hand_out(job, session, _random(job, job.probe_part), job.probe_part)
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in made.values())).hexdigest()
        return Probed(digest, (), "<f8", resident, session.name)
    raw = _run(job, session, _random(job, job.probe_part), job.probe_part)
    result = job.convert.after(raw[job.probe_part.cut])
    if result.ndim != raw.ndim:
        raise UsageError(f"finish= made {result.ndim} dimensions of {raw.ndim}: it has to keep them")
    digest = hashlib.sha256(np.ascontiguousarray(raw).tobytes()).hexdigest()
    return Probed(digest, result.shape, result.dtype.str, resident, session.name)


def probe(job: Job) -> Probed:
    """A worker's first task: load what is needed, run a little, and tell what came out."""
    for source in job.sources.values():
        source.read(tuple(slice(0, 1) for _ in source.shape))
    for package in job.target.packages if job.target is not None else ():
        need(package)
    with _cache().lock:
        return _cache().probe(job)


def agrees(job: Job, part: Part, samples: Sequence[Part]) -> bool:
    """Whether the model that is run gives the bits of the original: on all of a crop, against the original on small parts of it, which
    geometry makes exact. samples: parts where this crop is the whole input."""
    with _cache().lock:
        whole = _run(job, _cache().session(job), _random(job, part), part)
        found = [whole[s.window].copy() for s in samples]
        del whole
        session = _cache().session(job, original=True)
        for sample, one in zip(samples, found):
            crops = {n: np.ascontiguousarray(a[sample.crops[n]]) for n, a in _random(job, part).items()}
            other = _run(job, session, crops, sample)[sample.cut]
            if one.dtype != other.dtype or one.tobytes() != np.ascontiguousarray(other).tobytes():
                return False
    return True


def _begin(job: Job) -> Tuple[str, Probed, Any]:
    """This worker's name, its probe, which has to be as expected, and the session."""
    worker = f"{platform.node()}:{os.getpid()}"
    with _cache().lock:
        found = _cache().probe(job)
        if job.expected is not None and found.digest != job.expected and not job.tell_only:
            raise OtherBits(f"worker {worker} ({_processor()}) computes other bits than the first worker, so that its parts would "
                            "not join: use workers of one kind of processor, or other_bits='tell'")
        return worker, found, _cache().session(job)


def measure(job: Job, part: PassPart, inline: "Optional[Dict[str, Array]]" = None) -> Measured:
    """Hand out the numbers of one chunk. inline: as of work."""
    start = time.perf_counter()
    worker, found, session = _begin(job)
    crops = {**_read(job.sources, part), **(inline or {})}
    n_read = sum(a.nbytes for a in crops.values())
    numbers: Dict[str, Numbers] = {}
    made = _hand_out(job, session, crops, part)
    for name, stored in job.stored.items():
        rows = made.pop(name)
        if name in part.stored:
            cut, place = part.stored[name]
            stored.write(place, rows[cut])
    for output, array in made.items():
        statistic, _, what = output.rpartition(".")
        if statistic not in part.absent:
            numbers.setdefault(statistic, {})[what] = [float(v) for v in array.ravel()]
    return Measured(part.number, worker, time.perf_counter() - start, n_read, memory_bytes("VmHWM:"), found.digest, numbers)


def work(job: Job, part: Part, inline: "Optional[Dict[str, Array]]" = None) -> Done:
    """Compute one part, and write it unless the caller does. inline: crops that came with the task."""
    start = time.perf_counter()
    worker, found, session = _begin(job)
    crops = {**_read(job.sources, part), **(inline or {})}
    n_read = sum(a.nbytes for a in crops.values())
    result = job.convert.after(_run(job, session, crops, part)[part.cut])
    _check_rows(result, part)
    result = result.reshape(result.shape[job.dropped:])
    if job.target is not None:
        job.target.write(part.number, part.window[job.dropped:], result)
    return Done(part.number, worker, time.perf_counter() - start, n_read, memory_bytes("VmHWM:"), found.digest,
                None if job.target is not None else result)


def _check_rows(result: "Array", part: Part) -> None:
    """A result has to have the rows of its window: a `finish` may have made others."""
    if result.ndim != len(part.window) or any(s.stop is not None and s.stop - s.start != n for s, n in zip(part.window, result.shape)):
        raise UsageError(f"finish= made an array of the shape {list(result.shape)}: it has to keep the dimensions and the rows")


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.machine()

