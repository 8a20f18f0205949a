"""tile, inspect, explain: one model through the library, by the options of the program."""
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library as library
from ._errors import UsageError, argument_names
from ._long_call import LongCalls
from ._library import Handle, dims_of, int64_of, items_of, number_of, path_bytes, ranges_of, size_of, text_of
from ._model import load, save, take
from ._result import Explanation, Result

if TYPE_CHECKING:
    import onnx

    from ._long_call import Progress
    from ._model import Model

    Path = Union[str, "os.PathLike[str]"]
    Size = Union[int, str]
    Shapes = Mapping[str, Sequence[int]]
    Ranges = Mapping[str, Sequence[Union[int, Tuple[int, ...]]]]
    Reports = Union[None, Path, Iterable[Path]]

_GOALS = {"time": 0, "memory": 1}


def _report_paths(report: "Reports") -> "List[Path]":
    if report is None:
        return []
    return [report] if isinstance(report, (str, os.PathLike)) else list(report)


def _prepare(handle: Handle, *, goal: str, budget: "Optional[Size]", best_effort: bool, max_slowdown: float, max_tensor: "Optional[Size]",
             shapes: "Optional[Shapes]", design: "Optional[Shapes]", target: "Optional[Path]", runtime: Optional[str],
             ort_operators: Optional[str], threads: int, fast_memory: "Optional[Size]", bit_exact: bool, force: bool,
             keep_report: bool, data_file: bool = False, ranges: "Optional[Ranges]" = None, verify: bool = False) -> None:
    """Set a handle's options."""
    if goal not in _GOALS:
        raise UsageError(f"goal {goal!r}: use 'time' or 'memory'")
    if not 0 <= int64_of(threads, "number of threads") <= 4096:
        raise UsageError(f"threads {threads!r}: from 0 (the target's own) to 4096")
    handle.call("set_goal", _GOALS[goal])
    handle.call("set_max_slowdown", number_of(max_slowdown, "max_slowdown", 0, 1e6) * 100)
    handle.call("set_threads", threads)
    handle.call("set_best_effort", bool(best_effort))
    handle.call("set_bit_exact", bool(bit_exact))
    handle.call("set_force", bool(force))
    handle.call("set_data_file", bool(data_file))
    handle.call("keep_report", bool(keep_report))
    if target is not None:
        handle.call("set_target", path_bytes(target))
    for name, text in (("set_runtime", runtime), ("set_ort_operators", ort_operators)):
        if text is not None:
            handle.call(name, text_of(text, name[len("set_"):]))
    for name, size in (("set_memory_budget", budget), ("set_max_tensor", max_tensor), ("set_l2", fast_memory)):
        if size is not None:
            handle.call(name, size_of(size))
    for name, what, given in (("bind_shape", "shapes", shapes), ("design_shape", "design", design)):
        for value, dims in items_of(given, what):
            handle.call(name, text_of(value, "name of an input"), dims_of(dims), len(dims))
    for value, sizes in items_of(ranges, "ranges"):
        handle.call("range_shape", text_of(value, "name of an input"), *ranges_of(sizes), len(sizes))
    handle.call("set_verify", bool(verify))


@contextlib.contextmanager
def _planned(model: "Model", action: str, data_dir: "Optional[Path]", report: "Reports", *, detail: bool = False,
             timeout: Optional[float] = None, progress: "Optional[Progress]" = None, **options: Any) -> "Iterator[Handle]":
    """A handle that has loaded the model and done `action`; the reports are written. detail: results for `explain`."""
    reports = _report_paths(report)
    with Handle() as handle:
        _prepare(handle, keep_report=detail or bool(reports), **options)
        load(handle, model, data_dir)
        LongCalls(handle).call(action, timeout, progress)
        for path in reports:
            handle.call("save_report", path_bytes(path))
        yield handle


def _result(handle: Handle) -> Result:
    return Result(json.loads(handle.text("results_text", library.JSON)), argument_names(handle.text("results_text", library.TABLE)))


def tile(model: "Model", out: "Optional[Path]" = None, *, goal: str = "memory", budget: "Optional[Size]" = None, best_effort: bool = False,
         max_slowdown: float = 0.1, max_tensor: "Optional[Size]" = None, shapes: "Optional[Shapes]" = None,
         design: "Optional[Shapes]" = None, target: "Optional[Path]" = None, runtime: Optional[str] = None,
         ort_operators: Optional[str] = None, threads: int = 0, fast_memory: "Optional[Size]" = None, bit_exact: bool = False,
         force: bool = False, single_file: bool = False, report: "Reports" = None,
         data_dir: "Optional[Path]" = None, timeout: Optional[float] = None,
         progress: "Optional[Progress]" = None, ranges: "Optional[Ranges]" = None, verify: bool = False) -> "Tuple[Union[Path, bytes, onnx.ModelProto], Result]":
    """Rewrite a model so that chains of operators run tile by tile. Returns the model and a Result.

    model: a path, bytes or an onnx.ModelProto. out: file to write; then `out` is what comes back, else an onnx.ModelProto for
    one, and bytes for a path or bytes. A model in which nothing is worth tiling comes back as it was.

    goal: "memory" or "time". budget: bytes that the whole process must keep to by prediction, or "200M"; BudgetError otherwise, and
    where sizes are not known. best_effort: then the least that is found, and the Result says why (data["missed"]).
    max_slowdown: what goal memory may cost, 0.1 is 10 %. max_tensor: bytes that no tensor may take.
    shapes: {input: dimensions} that are bound; design: the size to plan for while dynamic dimensions stay dynamic.
    ranges: {input: sizes}, of each dimension a number, (first, last) or (first, last, step): the plan is for the largest, a budget holds over all
    of them, and the Result has what is proved of them in data["range"].
    verify: run both in the native engine on the same random inputs; SystemFailure names the value that differs. (`check` compares in your runtime.)
    target: "host", a shipped preset or an .xml file. runtime: "onnxruntime", "openvino", "loop", "portable", "engine",
    "engine-device" (the engine on a device) or "ort-engine": the engine inside of ONNX Runtime, by the library that ort_library() names. ort_operators, for that one:
    "whole", the model is one operator; "parts", what the engine has is, in as few as the graph allows, and ONNX Runtime runs
    the rest; "regions", tiled regions alone are.
    threads: as the model will be run; 0: the target's own. fast_memory: its capacity, in place of the target's.
    bit_exact: nothing that adds up in another order. force: tile even at a predicted loss.
    single_file: weights stay in the file `out`; else goal memory writes them to a file beside it where a runtime takes less memory then.
    report: a path or several that end in .html, .xml, .json or .csv. data_dir: folder of external data of a model in memory.

    timeout: seconds that planning may take; then TimedOut. progress: called some 50 times a second with the name of what is done, and the
    fraction of all that is done; where it returns False, Cancelled is raised. Ctrl-C ends planning, too.

    Raises ModelError, UsageError, BudgetError, SystemFailure or OutOfMemory with the program's line.
    """
    with _planned(model, "optimise", data_dir, report, goal=goal, budget=budget, best_effort=best_effort, max_slowdown=max_slowdown, max_tensor=max_tensor,
                  shapes=shapes, design=design, target=target, runtime=runtime, ort_operators=ort_operators, threads=threads,
                  fast_memory=fast_memory, bit_exact=bit_exact, force=force, timeout=timeout, progress=progress,
                  data_file=out is not None and not single_file, ranges=ranges, verify=verify) as handle:
        if out is not None:
            save(handle, out)
        return out if out is not None else take(handle, model), _result(handle)


def inspect(model: "Model", *, goal: str = "memory", budget: "Optional[Size]" = None, best_effort: bool = False, max_slowdown: float = 0.1,
            max_tensor: "Optional[Size]" = None, shapes: "Optional[Shapes]" = None, design: "Optional[Shapes]" = None,
            target: "Optional[Path]" = None, runtime: Optional[str] = None,
            ort_operators: Optional[str] = None, threads: int = 0, fast_memory: "Optional[Size]" = None,
            bit_exact: bool = False, force: bool = False, report: "Reports" = None,
            data_dir: "Optional[Path]" = None, ranges: "Optional[Ranges]" = None, single_file: bool = False) -> Result:
    """The plan alone: what `tile` would do with the same arguments and a file to write. The model is not changed."""
    with _planned(model, "inspect", data_dir, report, goal=goal, budget=budget, best_effort=best_effort, max_slowdown=max_slowdown, max_tensor=max_tensor,
                  shapes=shapes, design=design, target=target, runtime=runtime, ort_operators=ort_operators, threads=threads,
                  fast_memory=fast_memory, bit_exact=bit_exact, force=force, data_file=not single_file, ranges=ranges) as handle:
        return _result(handle)


def explain(model: "Model", *, goal: str = "memory", budget: "Optional[Size]" = None, best_effort: bool = False, max_slowdown: float = 0.1,
            max_tensor: "Optional[Size]" = None, shapes: "Optional[Shapes]" = None, design: "Optional[Shapes]" = None,
            target: "Optional[Path]" = None, runtime: Optional[str] = None,
            ort_operators: Optional[str] = None, threads: int = 0, fast_memory: "Optional[Size]" = None,
            bit_exact: bool = False, data_dir: "Optional[Path]" = None, single_file: bool = False) -> Explanation:
    """Where memory goes, what tiling makes of it, what is in the way, and the command to use. Arguments as for `tile` with a file to write."""
    with _planned(model, "inspect", data_dir, None, detail=True, goal=goal, budget=budget, best_effort=best_effort, max_slowdown=max_slowdown,
                  max_tensor=max_tensor, shapes=shapes, design=design, target=target, runtime=runtime, ort_operators=ort_operators,
                  threads=threads, fast_memory=fast_memory, bit_exact=bit_exact, force=False, data_file=not single_file) as handle:
        return Explanation(json.loads(handle.text("results_text", library.JSON)), handle.text("results_text", library.EXPLAIN),
                           json.loads(handle.text("results_text", library.EXPLAIN_JSON)))
