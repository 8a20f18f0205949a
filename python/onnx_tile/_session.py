"""Session: a model in the engine, with NumPy arrays in and out."""
import contextlib
import json
import os
import queue
import threading
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from ._context import DTYPES, Context, Value
from ._errors import UsageError
from ._library import Handle, dims_of, int64_of, items_of
from ._model import load
from ._result import format_bytes, format_seconds, html_table

if TYPE_CHECKING:
    from ._context import Place, Source
    from ._long_call import Progress
    from ._model import Model


_PLANS = {None: 0, "time": 2, "memory": 3}  # onnx_tile_plan
_NOT_PLANNED = 1


def _number_of(dtype: str) -> int:
    """ONNX's number of a type that NumPy has."""
    for number, name in DTYPES.items():
        if name == dtype:
            return number
    raise UsageError(f"there is no type '{dtype}' for inputs")


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("onnx_tile.Session needs NumPy: pip install numpy") from None
    return numpy


class Profile:
    """Times of the last run by node, and memory. `nodes`: objects of name, op, measured_seconds, in the order in which they ran; then
    those of tiles' bodies, which are part of their loop's."""

    def __init__(self, data: Dict[str, Any]) -> None:
        """data: what the library tells, as parsed JSON."""
        self.data = data

    @property
    def nodes(self) -> List[Dict[str, Any]]:
        """Objects of name, op, measured_seconds."""
        nodes: List[Dict[str, Any]] = self.data["nodes"]
        return nodes

    def _rows(self, most: int) -> List[List[str]]:
        slow = sorted(self.nodes, key=lambda n: -n["measured_seconds"])[:most]
        return [[format_seconds(n["measured_seconds"]), n["op"], n["name"]] for n in slow]

    def _memory(self) -> str:
        return (f"{format_bytes(self.data['peak_bytes'])} of values at the most, {format_bytes(self.data['planned_peak_bytes'])} of "
                f"them planned; weights {format_bytes(self.data['weight_bytes'])}")

    def __str__(self) -> str:
        return "\n".join([self._memory()] + [f"{time:>9}  {op} {name}" for time, op, name in self._rows(30)])

    def _repr_html_(self) -> str:
        return html_table(["time", "operator", "node"], self._rows(30), self._memory())


class Session:
    """A model that is ready to run in the engine, which needs no other runtime.

        session = onnx_tile.Session("tiled.onnx", threads=4)
        y, = session.run({"x": pixels})

    Inputs are read where they lie when they are contiguous and of the right type; nothing is converted but the layout. Outputs of
    fixed shape are computed in the arrays that come back. Arrays larger than memory are files (.npy, .raw), np.memmap, or `Rows`:

        session.run({"x": "slide.npy"}, into={"y": "mask.npy"})

    Threads may share a session: `contexts` of them run at the same time, and the others wait. Ctrl-C, `cancel` and `timeout` end a run
    between two steps or tiles of the model.
    """

    def __init__(self, model: "Model", *, threads: Optional[int] = None, shapes: Optional[Mapping[str, Sequence[int]]] = None,
                 data_dir: "Optional[Union[str, os.PathLike[str]]]" = None,
                 input_types: Optional[Mapping[str, Union[str, Tuple[str, float]]]] = None, contexts: int = 1, goal: Optional[str] = None,
                 plan: bool = True) -> None:
        """model: a path, bytes or an onnx.ModelProto, tiled or not. threads: that share the work; None: one for each processor that
        this process may use. shapes: {input: dimensions} that are bound: what is fixed throughout runs in memory that was planned.
        data_dir: folder of external data of a model in memory. input_types: {input: type} or {input: (type, scale)} of what is given
        in place of the model's type, as NumPy names it: converted and multiplied tile by tile ({"x": ("uint8", 1 / 255)}).
        contexts: how many runs may go on at the same time, each with memory for values and threads of its own; weights are held once.
        goal: "memory" or "time": the model gets tiles for the engine when it is loaded, or, where dimensions are free and contexts is 1,
        when a size comes for the first time; where they do not pay, it runs as it is. A model that was tiled for another runtime is
        planned so anyway, from what it was before, for the goal that it was tiled for; plan=False: it runs as it was before. Where
        that cannot be known, there is a RuntimeWarning: its tiles are slow here.
        Raises ModelError naming node and operator when the engine cannot run it, UsageError when the library was built without the engine."""
        numpy = _numpy()
        handle = Handle("session_")
        count = len(os.sched_getaffinity(0)) if threads is None else int64_of(threads, "number of threads")
        if not 1 <= count <= 4096:
            raise UsageError(f"threads {count!r}: from 1 to 4096")
        if isinstance(contexts, bool) or not isinstance(contexts, int) or not 1 <= contexts <= 256:
            raise UsageError(f"contexts {contexts!r}: from 1 to 256")
        if goal not in _PLANS:
            raise UsageError(f"goal {goal!r}: use 'memory', 'time' or None")
        if goal and not plan:
            raise UsageError(f"goal {goal!r} does not go with plan=False")
        handle.call("set_plan", _PLANS[goal] if plan else _NOT_PLANNED)
        handle.call("set_threads", count)
        for name, dims in items_of(shapes, "shapes"):
            handle.call("bind_shape", name.encode(), dims_of(dims), len(dims))
        for name, form in (input_types or {}).items():
            kind, scale = (form, 1.0) if isinstance(form, str) else form
            handle.call("set_input_type", name.encode(), _number_of(kind), float(scale))
        load(handle, model, data_dir)
        notice = handle.words("notice")
        if notice:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)
        first = Context(numpy, handle)
        self._contexts = [first] + [Context(numpy, Handle("session_", handle)) for _ in range(contexts - 1)]
        self._inputs, self._outputs = first.inputs, first.outputs
        self._last = first  # of the run that ended last
        self._free: "queue.LifoQueue[Context]" = queue.LifoQueue()
        for context in reversed(self._contexts):
            self._free.put(context)
        self._running: Set[int] = set()  # threads
        self._closing = threading.Lock()
        self._process = os.getpid()

    @property
    def inputs(self) -> List[Value]:
        """Inputs that `run` needs, in the model's order."""
        return list(self._inputs)

    @property
    def outputs(self) -> List[Value]:
        """Outputs, in the model's order."""
        return list(self._outputs)

    @contextlib.contextmanager
    def _context(self) -> Iterator[Context]:
        """One that no other thread is in; waits for it."""
        me = threading.get_ident()
        if me in self._running:
            raise UsageError("a function that a run calls cannot run its session")
        if os.getpid() != self._process:  # a child of fork, in which the other threads are not
            if self._free.qsize() < len(self._contexts):
                raise UsageError("the session was running when this process was forked: make one here")
            self._process = os.getpid()
        context = self._free.get()
        self._running.add(me)
        try:
            yield context
        finally:
            self._running.discard(me)
            self._free.put(context)

    def run(self, feeds: "Union[Mapping[str, Source], Sequence[Source]]", outputs: Optional[Sequence[str]] = None, *,
            into: "Optional[Mapping[str, Place]]" = None, timeout: Optional[float] = None,
            progress: "Optional[Progress]" = None) -> "List[Any]":
        """Compute the outputs, all of them or those that are named, in that order. feeds: {input: array, path of a file or Rows}, or a
        list of these in the order of the inputs. into: {output: array, path or Rows} that it is written into, and that comes back in its
        place; its dimensions are fixed. A file appears whole or not at all. timeout: seconds that the run itself may take.
        progress: called with "run" and the fraction that is done, some 50 times a second; where it returns False, the run is cancelled.
        Raises UsageError for what is missing or of another type, ModelError for a shape that the model does not take and files that are
        not what they have to be, TimedOut, Cancelled, what `progress` raises, and KeyboardInterrupt. Waits while as many other threads
        run the session as it has contexts."""
        with self._context() as context:
            try:
                return context.run(feeds, outputs, into or {}, timeout, progress)
            finally:
                self._last = context

    def cancel(self) -> None:
        """End the runs that go on in other threads: they raise Cancelled. Does not wait for them."""
        for context in self._contexts:
            context.handle.cancel()

    def profile(self) -> Profile:
        """Times of the last run by node, and what memory the runs took in its context."""
        return Profile(json.loads(self._last.handle.text("profile")))

    def close(self) -> None:
        """Free what the session holds, when runs in other threads have ended; it cannot be used afterwards. Raises UsageError in a
        function that a run calls. In a child of fork that was made during a run, nothing is freed."""
        if threading.get_ident() in self._running:
            raise UsageError("a function that a run calls cannot close its session")
        if os.getpid() != self._process and self._free.qsize() < len(self._contexts):
            return  # that run goes on in the parent alone
        with self._closing:  # two threads would take some contexts each, and wait for the others
            taken = [self._free.get() for _ in self._contexts]
            for context in reversed(self._contexts):  # the first holds the model
                context.close()
            for context in taken:
                self._free.put(context)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<onnx_tile.Session: {', '.join(v.name for v in self._inputs)} -> {', '.join(v.name for v in self._outputs)}>"
