"""apply: a model over one input of any size, part by part, on any number of workers."""
import json
import math
import multiprocessing
import os
import tempfile
import time
import uuid
from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .._errors import BudgetError, Error, SystemFailure, UsageError
from .._library import size_of, version
from .._passes import STORE
from .._result import format_bytes
from . import _work as work
from ._manifest import NUMBERS, Manifest, begun_with
from ._models import hash_of
from ._passes import PassLog, handed_out, key_of
from ._plan import Plan, Planner
from ._pools import OwnProcess, Pool, open_pool
from ._setup import Setup
from ._stored import PREFIX, StoredValues
from ._targets import ArrayTarget, Target, open_target
from ._turned import TurnedTarget
from ._windows import Part

if TYPE_CHECKING:
    from .._model import Model
    from ._pass_windows import PassPart, PassWindows
    from ._sources import Array

# Tasks that wait at a worker, so that it has one when it is done with another.
_TASKS_AHEAD = 2


class Progress(NamedTuple):
    """chunks and total: done, of all; seconds since the work began; peak_bytes: the most of a worker so far. number, of: which pass
    over the input it is, of how many."""

    chunks: int
    total: int
    seconds: float
    peak_bytes: int
    number: int = 1
    of: int = 1


class Applied:
    """What `apply` did. target: the array, or what was given; chunks, and done_before of them by a run before; chunk: shape of one;
    peak_bytes: the most resident of each worker, by its name; own_peak_bytes: of the calling process; predicted_bytes: for a
    worker; retried: tasks whose worker died; mixed: workers that compute other bits, with other_bits="tell"; passes: over the input, before
    the one that made the output; stored_bytes: that they wrote for later ones."""

    def __init__(self, target: Any, plan: Plan, chunks: int, done_before: int) -> None:
        """The rest is counted while the work goes on."""
        self.target, self.chunks, self.done_before = target, chunks, done_before
        self.chunk, self.predicted_bytes, self.tiled = plan.edges, plan.worker_bytes, plan.content is not None
        self.seconds, self.bytes_read, self.retried = 0.0, 0, 0
        self.peak_bytes: Dict[str, int] = {}
        self.own_peak_bytes = 0
        self.mixed: List[str] = []
        self.passes, self.stored_bytes = 0, 0

    def __str__(self) -> str:
        before = f", {self.done_before} of them done before" if self.done_before else ""
        peaks = ", ".join(format_bytes(b) for b in self.peak_bytes.values()) or "none"
        retried = f"; {self.retried} tasks given to another worker" if self.retried else ""
        mixed = f"; other bits by {', '.join(self.mixed)}" if self.mixed else ""
        before += f", after {self.passes} passes" if self.passes else ""
        before += f" that wrote {format_bytes(self.stored_bytes)}" if self.stored_bytes else ""
        chunks = f"{self.chunks} chunks of {' x '.join(map(str, self.chunk))}" if self.chunk else "an output without rows"
        return (f"{chunks}{before}; {self.seconds:.1f} s; peak of workers "
                f"{peaks}, of this process {format_bytes(self.own_peak_bytes)}{retried}{mixed}")

    def __repr__(self) -> str:
        return f"<onnx_tile.large.Applied: {self}>"


def _other_bits(manifest: Optional[Manifest]) -> work.OtherBits:
    target = manifest.target if manifest is not None else ""
    return work.OtherBits(f"'{target}' was begun on a processor that computes other bits: go on where it was, or use other_bits='tell'")


def _other_version(manifest: Optional[Manifest], which: str = "") -> UsageError:
    target = manifest.target if manifest is not None else ""
    return UsageError(f"'{target}' was begun with another version of the runtime or of onnx-tile, whose bits may be others{which}; use "
                      "resume=False (--fresh)")


def _add_up(report: Applied, before: Sequence[Applied]) -> None:
    """What passes took belongs to the whole."""
    for one in before:
        report.bytes_read += one.bytes_read
        report.retried += one.retried
        report.mixed += [m for m in one.mixed if m not in report.mixed]
        for worker, peak in one.peak_bytes.items():
            report.peak_bytes[worker] = max(peak, report.peak_bytes.get(worker, 0))


def _first_result(pool: Pool, retries: int, function: Callable[..., Any], job: work.Job, *more: Any) -> Any:
    """What one worker says before the work begins."""
    for _ in range(retries + 1):
        future = pool.submit(function, pool.share(work.sent(job)), *more)
        pool.first_done([future])
        try:
            return future.result()
        except pool.lost:
            if not pool.revive():
                break
    raise SystemFailure("the first worker died while it loaded the model, or could not begin: it takes more memory than there is, or the "
                        "script that calls apply has no if __name__ == '__main__'")


def _refuse_reading_worker() -> None:
    """A worker that begins reads the caller's script: a call that stands bare in it would begin workers without end."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit("onnx_tile: a worker read the script and met the call of apply: put it under if __name__ == '__main__'")


class _Run:
    """The loop: tasks are given out, what workers report is noted."""

    def __init__(self, pool: Pool, job: work.Job, target: Target, report: Applied, manifest: Optional[Manifest],
                 progress: Optional[Callable[[Progress], None]], retries: int) -> None:
        self._pool, self._job, self._target, self._report = pool, job, target, report
        self._manifest, self._progress, self._retries = manifest, progress, retries
        self._shared = pool.share(work.sent(job))
        self._start, self._finished = time.perf_counter(), report.done_before
        self._again: Deque[Any] = deque()
        self._number, self._of = 1, 1
        self._attempts: "Counter[int]" = Counter()

    def _submit(self, part: Any) -> Any:
        return self._pool.submit(work.work, self._shared, part, work.read_inline(self._job, part))

    def place(self, number: int, of: int) -> None:
        """Which pass over the input it is."""
        self._number, self._of = number, of

    def run(self, tasks: Iterator[Any]) -> None:
        """Until no task is left."""
        running: Dict[Any, Any] = {}
        while True:
            while len(running) < _TASKS_AHEAD * self._pool.workers:
                part = self._again.popleft() if self._again else next(tasks, None)
                if part is None:
                    break
                running[self._submit(part)] = part
            if not running:
                return
            died = False
            for future in self._pool.first_done(running):
                part = running.pop(future)
                try:
                    done = future.result()
                except self._pool.lost as why:
                    died = True
                    self._lost(part, why)
                except (Error, OSError, MemoryError) as why:
                    raise self._failed(part, why) from None
                else:
                    self._note(part, done)
            if died and not running and not self._pool.revive():
                raise SystemFailure("workers of the executor died: run again to go on where it was")

    def _lost(self, part: Any, why: BaseException) -> None:
        self._attempts[part.number] += 1
        self._report.retried += 1
        if self._attempts[part.number] > self._retries:
            raise SystemFailure(f"chunk {part.number}: its worker died {self._attempts[part.number]} times, killed or out of memory: "
                                "use a smaller budget")
        self._again.append(part)

    def _failed(self, part: Any, why: BaseException) -> Error:
        text = " ".join(str(why).split()) or type(why).__name__
        if isinstance(why, work.OtherBits):
            return why
        return (type(why) if isinstance(why, Error) else SystemFailure)(f"chunk {part.number}: {text}")

    def _keep(self, part: Any, done: Any) -> None:
        if done.part is not None:
            self._target.write(part.number, part.window[self._job.dropped:], done.part)
        if self._manifest is not None:
            self._manifest.chunk_done(part.number)

    def _note(self, part: Any, done: Any) -> None:
        report = self._report
        self._keep(part, done)
        report.peak_bytes[done.worker] = max(done.peak_bytes, report.peak_bytes.get(done.worker, 0))
        report.bytes_read += done.bytes_read
        if self._job.expected not in (None, done.probe) and done.worker not in report.mixed:
            report.mixed.append(done.worker)
        self._finished += 1
        if self._progress is not None:
            self._progress(Progress(self._finished, report.chunks, time.perf_counter() - self._start, max(report.peak_bytes.values()),
                                    self._number, self._of))


class _PassRun(_Run):
    """The same for a pass: what workers report is what is wanted of them."""

    def __init__(self, pool: Pool, job: work.Job, log: PassLog, report: Applied, progress: Optional[Callable[[Progress], None]],
                 retries: int, place: Tuple[int, int]) -> None:
        """place: which pass it is, of how many."""
        super().__init__(pool, job, ArrayTarget(None), report, None, progress, retries)
        self._log, (self._number, self._of) = log, place

    def _submit(self, part: Any) -> Any:
        return self._pool.submit(work.measure, self._shared, part, work.read_inline(self._job, part))

    def _keep(self, part: Any, done: Any) -> None:
        self._log.add(self._number, part.number, done.numbers)


class _Call:
    """One call of apply: from what is given to the plan, and through all of its chunks."""

    def __init__(self, setup: Setup, convert: work.Convert, pool: Pool, manifest: Optional[Manifest], folder: str, *,
                 runtime: str, threads: int, tiled: bool, tell_only: bool, retries: int) -> None:
        """folder: for the model that workers run, and the target while it is made."""
        self._setup, self._convert, self._pool, self._manifest, self._folder = setup, convert, pool, manifest, folder
        self._runtime, self._threads, self._tiled, self._retries = runtime, threads, tiled, retries
        self._resident = 0  # of a worker before any model was loaded, where passes come first
        stored = {} if setup.plan is None else {"stored": [s["value"] for s in setup.plan["stored"]]}
        head = {"model": setup.sha256, "tool": version, **stored, "geometry": setup.windows.facts(), "convert": convert.facts(),
                "source": {n: s.identity() for n, s in setup.sources.items()}, "runtime": runtime, "tiled": tiled}
        self._head: Dict[str, Any] = json.loads(json.dumps(head))
        self._stored = StoredValues(setup.plan or {}, folder)
        original = setup.model_file(folder, None)
        self._job = work.Job(original, original, runtime, threads, setup.windows.output, setup.sources, setup.types,
                             convert, setup.probe_part(), uuid.uuid4().hex, tell_only=tell_only)

    def run(self, dst: Any, options: Mapping[str, Any], limit: int, chunk: "Union[None, int, Sequence[int]]", resume: bool,
            progress: Optional[Callable[[Progress], None]]) -> Applied:
        """See apply."""
        begun = self._begun(dst, resume)
        if begun and self._is_whole(dst):
            return self._whole(dst)
        before = self._run_passes(limit, chunk, resume, progress) if self._setup.passes else []
        found: work.Probed = _first_result(self._pool, self._retries, work.probe, self._job)
        rank, windows = len(found.shape), self._setup.windows
        order = self._setup.orders.get(self._setup.first) if self._setup.pooled is None else None
        wanted = rank - len(dst.shape) if hasattr(dst, "shape") and order is None else self._setup.added
        dropped = self._setup.dropped(found.shape, wanted)
        target = open_target(dst, os.path.join(self._folder, "data"), options, self._setup.sources[self._setup.first],
                             self._setup.placing, rank - dropped)
        if order is not None:
            target = TurnedTarget(target, order, len(self._setup.shapes[self._setup.first]))
        job = replace(self._job, target=target, dropped=dropped)
        plan, job = self._settle(job, found, limit, chunk, begun)
        parts = windows.parts(plan.edges, rank)
        shape = list(found.shape)
        for axis, extent in zip(windows.axes, windows.extents):
            shape[axis] = extent
        edges = list(shape)
        for axis, edge in zip(windows.axes, plan.edges):
            edges[axis] = edge
        target.set(tuple(shape[dropped:]), found.dtype, tuple(edges[dropped:]))
        done = self._begin(target, plan, found, begun)
        report = Applied(dst, plan, len(parts), len(done))
        report.passes, report.stored_bytes = self._setup.passes, self._stored.size_bytes
        start = time.perf_counter()
        run = _Run(self._pool, job, target, report, self._manifest, progress, self._retries)
        run.place(self._setup.passes + 1, self._setup.passes + 1)
        run.run(parts[k] for k in range(len(parts)) if k not in done)
        _add_up(report, before)
        target.finish((p.number, p.window[dropped:]) for p in (parts[k] for k in range(len(parts))))
        made = target.inner if isinstance(target, TurnedTarget) else target
        if isinstance(made, ArrayTarget):
            report.target = made.array
        for name in os.listdir(self._folder):
            if name.endswith(".onnx") or name.startswith(PREFIX):
                os.remove(os.path.join(self._folder, name))
        report.seconds, report.own_peak_bytes = time.perf_counter() - start, work.memory_bytes("VmHWM:")
        return report

    def _run_passes(self, limit: int, chunk: "Union[None, int, Sequence[int]]", resume: bool,
                    progress: Optional[Callable[[Progress], None]]) -> List[Applied]:
        """All passes; the job of the output has their numbers then. What was done in each."""
        manifest, reports = self._manifest, []
        path = manifest.path_of(NUMBERS) if manifest is not None else None
        log = PassLog(path, manifest.target if manifest is not None else "", self._head, resume)
        try:
            over = [k for k in range(1, self._setup.passes + 1) if self._is_over(k, log)]
            if not self._stored.is_complete([k for k in range(1, self._setup.passes + 1) if log.begun(k)], over):
                log.restart(self._head)
            for number in range(1, self._setup.passes + 1):
                windows = self._setup.pass_windows(number)
                reports.append(self._run_pass(number, windows, log, limit, chunk, progress))
                self._stored.forget(number)
        finally:
            log.close()
        self._job = self._reading(self._job, self._setup.passes + 1)
        return reports

    def _is_over(self, number: int, log: PassLog) -> bool:
        before = log.begun(number)
        return before is not None and len(log.done(number)) == len(self._setup.pass_windows(number).parts(before["edges"]))

    def _reading(self, job: work.Job, number: int) -> work.Job:
        """The job of a pass, or of the last model: with the sources that it reads."""
        assert self._setup.plan is not None
        names = self._setup.plan["passes"][number - 1]["inputs"]
        kept = self._stored.read_by(names)
        sources = {n: s for n, s in self._setup.sources.items() if n in names}
        return replace(job, sources={**sources, **kept}, kept=frozenset(kept))

    def _run_pass(self, number: int, windows: "PassWindows", log: PassLog, limit: int, chunk: "Union[None, int, Sequence[int]]",
                  progress: Optional[Callable[[Progress], None]]) -> Applied:
        before, done = log.begun(number), log.done(number)
        parts = windows.parts(before["edges"]) if before is not None else []
        plan = Plan(tuple(before["edges"]) if before is not None else (), None, None)
        if before is None or len(done) < len(parts):
            job, plan = self._settle_pass(number, windows, log, limit, chunk)
            parts = windows.parts(plan.edges)
            report = Applied(None, plan, len(parts), len(done))
            _PassRun(self._pool, job, log, report, progress, self._retries, (number, self._setup.passes + 1)).run(
                p for p in parts if p.number not in done)
        else:
            report = Applied(None, plan, len(parts), len(done))
        self._job = replace(self._job, numbers={**self._job.numbers, **log.joined(number, windows, parts)})
        return report

    def _settle_pass(self, number: int, windows: "PassWindows", log: PassLog, limit: int,
                     chunk: "Union[None, int, Sequence[int]]") -> Tuple[work.Job, Plan]:
        """The job of a pass and its plan, which is the one that it was begun with."""
        before, content = log.begun(number), self._setup.pass_model(number)
        original = self._setup.model_file(self._folder, content, f"pass_{number}.onnx")
        stored = self._stored.by(number)
        job = replace(self._reading(self._job, number), model=original, original=original, probe_part=self._setup.pass_probe(windows),
                      handed_out=handed_out(windows), key=key_of(self._job.key, number), stored=stored)
        found: work.Probed = _first_result(self._pool, self._retries, work.probe, job)
        self._resident = self._resident or found.resident_bytes
        if before is not None and before["probe"] != found.digest and not self._job.tell_only:
            raise _other_bits(self._manifest)
        tiled = self._tiled if before is None else before["ran"] is not None
        sends = any(not s.shared for s in self._setup.sources.values()) and not isinstance(self._pool, OwnProcess)
        axes = len(windows.axes)
        planner = Planner(content, windows, self._setup.types, ((1,) * axes, "<f8"), runtime=self._runtime, threads=self._threads,
                          tiled=tiled, resident_bytes=self._resident, steps=[1] * axes, workers=self._pool.workers,
                          sent=_TASKS_AHEAD + 1 if sends else 0)
        plan = self._plan(planner, limit, self._setup.pass_chunk(chunk, windows), before)
        ran = None if plan.content is None else hash_of(plan.content)
        if before is None:
            for value in stored.values():
                value.create()
            log.begin(number, plan.edges, ran, found.digest)
        elif before["ran"] != ran:
            raise _other_version(self._manifest)
        if plan.content is not None:
            job = replace(job, model=self._setup.model_file(self._folder, plan.content, f"tiled_{number}.onnx"))
        return replace(job, expected=found.digest), plan

    def _begun(self, dst: Any, resume: bool) -> bool:
        """Whether a run is gone on with. Raises UsageError where it was another one's, or where a file is there that was not made here."""
        manifest = self._manifest
        if manifest is None or not resume:
            return False
        if manifest.head is None:
            if os.path.exists(manifest.target):
                raise UsageError(f"'{manifest.target}' is there and was not made by apply: remove it, or use resume=False (--fresh)")
            return False
        manifest.agrees(self._head, tuple(self._head))
        return True

    def _is_whole(self, dst: Any) -> bool:
        manifest = self._manifest
        assert manifest is not None and manifest.head is not None
        return len(manifest.done) == manifest.head["chunks"] and os.path.exists(manifest.target) and not any(
            name.startswith("data") for name in os.listdir(self._folder))

    def _whole(self, dst: Any) -> Applied:
        assert self._manifest is not None and self._manifest.head is not None
        head = self._manifest.head
        return Applied(dst, Plan(tuple(head["edges"]), None, head["worker_bytes"]), head["chunks"], head["chunks"])

    def _settle(self, job: work.Job, found: work.Probed, limit: int, chunk: "Union[None, int, Sequence[int]]",
                begun: bool) -> Tuple[Plan, work.Job]:
        """The plan, and the job with its model. A tiled model that rounds otherwise than the given one is not run: on the whole that one counts."""
        head = self._manifest.head if begun and self._manifest is not None else None
        tiled = self._tiled if head is None else head["ran"] is not None
        if self._setup.pooled is not None:  # no part of an input is read any more
            tiled, chunk = False, None
        plan = self._plan(self._planner(job, found, tiled), limit, chunk, head)
        while plan.content is not None:
            made = replace(job, model=self._setup.model_file(self._folder, plan.content), expected=found.digest)
            rank = len(found.shape)
            first = self._setup.windows.parts(plan.edges, rank)[0]
            samples = self._setup.samples(self._setup.windows.sizes(plan.edges), rank)
            if _first_result(self._pool, self._retries, work.agrees, made, first, samples):
                return plan, made
            if not tiled:
                break
            tiled = False
            plan = self._plan(self._planner(job, found, tiled), limit, chunk, head)
        return plan, replace(job, expected=found.digest)

    def _planner(self, job: work.Job, found: work.Probed, tiled: bool) -> Planner:
        assert job.target is not None
        axes, rank = self._setup.windows.axes, len(found.shape)
        steps = job.target.step(rank - job.dropped)
        sends = not job.target.shared or any(not s.shared for s in self._setup.sources.values())
        return Planner(self._setup.model, self._setup.windows, self._setup.types, (found.shape, found.dtype), runtime=self._runtime,
                       threads=self._threads, tiled=tiled, resident_bytes=self._resident or found.resident_bytes, steps=[steps[a - job.dropped] for a in axes],
                       workers=self._pool.workers, sent=_TASKS_AHEAD + 1 if sends and not isinstance(self._pool, OwnProcess) else 0)

    def _plan(self, planner: Planner, limit: int, chunk: "Union[None, int, Sequence[int]]", head: Optional[Dict[str, Any]]) -> Plan:
        """By the run that is gone on with, by what the caller wants, or by the budget."""
        if head is not None:
            return planner.plan(tuple(head["edges"]))
        own = 0 if isinstance(self._pool, OwnProcess) else work.memory_bytes("VmRSS:")
        worker_budget = (limit - own) // self._pool.workers
        if chunk is None:
            return planner.choose(worker_budget)
        plan = planner.plan(planner.given([chunk] if isinstance(chunk, int) else list(chunk)))
        if plan.worker_bytes is not None and plan.worker_bytes > worker_budget:
            raise BudgetError(f"a worker needs {format_bytes(plan.worker_bytes)} for chunks of {' x '.join(map(str, plan.edges))}, "
                              f"and has {format_bytes(max(worker_budget, 0))}: what the budget leaves besides this process, for each worker")
        return plan

    def _begin(self, target: Target, plan: Plan, found: work.Probed, begun: bool) -> "set[int]":
        """Chunks that are done; where none are, the target is made."""
        manifest = self._manifest
        if begun and manifest is not None and manifest.head is not None:
            ran = None if plan.content is None else hash_of(plan.content)
            if (manifest.head["ran"], manifest.head["runtime_version"]) != (ran, found.runtime):
                raise _other_version(manifest, f": {manifest.head['runtime_version']}, not {found.runtime}")
            if manifest.head["probe"] != found.digest and not self._job.tell_only:
                raise _other_bits(manifest)
            if target.exists():
                return set(manifest.done)
        target.create()
        if manifest is not None:
            chunks = math.prod(self._setup.windows.counts(plan.edges))
            manifest.begin({**self._head, "edges": list(plan.edges), "worker_bytes": plan.worker_bytes, "chunks": chunks,
                            "ran": None if plan.content is None else hash_of(plan.content), "runtime_version": found.runtime,
                            "probe": found.digest, "shape": list(target.shape), "dtype": target.dtype.str})
        return set()


def apply(model: "Model", src: Any, dst: Any = None, *, budget: "Union[int, str]" = "2GB", workers: Optional[int] = None,
          executor: Any = None, resume: bool = True, runtime: str = "onnxruntime", threads: int = 1,
          chunk: "Union[None, int, Sequence[int]]" = None, tiled: bool = True, output: Optional[str] = None,
          scale: Optional[float] = None, out_scale: Optional[float] = None, dtype: Any = None,
          prepare: "Optional[Callable[[Array], Array]]" = None, finish: "Optional[Callable[[Array], Array]]" = None,
          target_options: Optional[Mapping[str, Any]] = None, progress: Optional[Callable[[Progress], None]] = None,
          retries: int = 3, other_bits: str = "refuse", store: str = "auto",
          axes: "Union[None, str, Sequence[int], Mapping[str, Union[str, Sequence[int]]]]" = None) -> Applied:
    """Run a model on an input of any size, part by part: what is written is what the model gives on the whole, to the bit.

    model: a path, bytes or an onnx.ModelProto. src: an array, a zarr.Array, or the path of a .npy, .zarr, .tif or .tiff file; for
    a model of several inputs {input: source}. Dimensions that it lacks in front are 1. dst: the same kinds, or None for a new
    array. A file appears when all of it is there; until then, what is done lies in the folder DST.onnx-tile.

    budget: bytes, or "2GB", that all workers and this process hold at the most; chunks are as large as it allows, by prediction.
    chunk: their rows, in place of that; one number or one for each axis that is cut. tiled: tile the model inside of chunks where
    that takes less. workers: processes on this machine, or how many tasks an executor runs at a time; None: one for each
    processor; 0: this process. executor: one of concurrent.futures, a function that makes one (again, when workers died), or a
    Client of Dask's distributed. threads: of the runtime in each worker.

    resume: go on where a run was killed; False: begin anew. output: its name, if not the first. runtime: "onnxruntime" or "engine".
    scale: inputs are multiplied by it once they have the model's type. out_scale, dtype: results are multiplied and converted;
    whole numbers are rounded and limited. prepare, finish: functions of an array that come first, and keep its rows.
    target_options: for whoever makes the file (rasterio's profile, zarr.create_array, tifffile.memmap). progress: called with a
    Progress after each chunk. retries: of a chunk whose worker died. other_bits: "refuse" workers whose processor computes other
    bits than the first one's, or "tell" (Applied.mixed). store: whether passes write values beside the target, so that later ones need
    not compute them again: "never", "always", or "auto", where it costs less and the disk has room. axes: which of the input's axes each
    dimension of the source is, where they are not the last ones in order: "YXC" (of N, C and T, YX or ZYX) or (2, 3, 1); the
    target's are in the same order, those that the source lacks in front where they are not 1. {input: axes} for several.

    Raises UsageError naming the node where a node needs a whole axis or the resumed run was of another model, BudgetError where
    no chunk fits, ModelError or SystemFailure.
    """
    _refuse_reading_worker()
    _check_options(runtime, other_bits, threads, retries, store)
    limit = size_of(budget)
    convert = work.Convert(scale, out_scale, None if dtype is None else np.dtype(dtype).str, prepare, finish)
    with tempfile.TemporaryDirectory(prefix="onnx-tile-") as scratch:
        setup = Setup(model, src, output, os.path.join(scratch, "passes"), *_where_stored(_path_of(dst), scratch, store, resume), axes)
        pool = open_pool(executor, workers, retries)
        manifest: Optional[Manifest] = None
        try:
            path = _path_of(dst)
            manifest = Manifest(path) if path is not None else None
            folder = manifest.folder if manifest is not None else scratch
            call = _Call(setup, convert, pool, manifest, folder, runtime=runtime, threads=threads, tiled=tiled,
                         tell_only=other_bits == "tell", retries=retries)
            return call.run(dst, target_options or {}, limit, chunk, resume, progress)
        finally:
            pool.close()
            if isinstance(pool, OwnProcess):
                work.forget_sessions()
            if manifest is not None:
                manifest.close()


def _check_options(runtime: str, other_bits: str, threads: int, retries: int, store: str) -> None:
    if runtime not in work.RUNTIMES:
        raise UsageError(f"runtime {runtime!r}: use 'onnxruntime' or 'engine'")
    if other_bits not in ("refuse", "tell"):
        raise UsageError(f"other_bits {other_bits!r}: use 'refuse' or 'tell'")
    if store not in STORE:
        raise UsageError(f"store {store!r}: use 'never', 'auto' or 'always'")
    if threads < 1:
        raise UsageError(f"threads {threads!r}: use 1 or more")
    if retries < 0:
        raise UsageError(f"retries {retries!r}: use 0 or more")


def _where_stored(target: Optional[str], scratch: str, store: str, resume: bool) -> Tuple[str, Optional[str]]:
    """Whether passes write values, and the folder whose disk has to have room for them; as a run that is gone on with did."""
    if target is None:
        return store, scratch
    before = begun_with(target, "stored") if resume else None
    if before is not None:
        return store if before or store != "auto" else "never", None
    folder = os.path.dirname(os.path.abspath(target))
    return store, folder if os.path.isdir(folder) else None


def _path_of(dst: Any) -> Optional[str]:
    """Where the manifest belongs to: of a target that is a file."""
    if isinstance(dst, (str, os.PathLike)):
        return os.fspath(dst)
    return None
