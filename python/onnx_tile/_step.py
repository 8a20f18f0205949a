"""step, Stepper: a model along an axis that never ends, and what feeds it with rows as they come."""
import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import UsageError
from ._library import Handle, dims_of, items_of
from ._model import load, save, take
from ._onnxruntime import for_onnxruntime

if TYPE_CHECKING:
    import os

    import numpy as np
    import onnx

    from ._model import Model

    Path = Union[str, "os.PathLike[str]"]
    Arrays = Union[np.ndarray, Mapping[str, np.ndarray]]

_KEY = "onnx_tile.step"


def step(model: "Model", out: "Optional[Path]" = None, *, axis: Tuple[str, int], rows: int = 0,
         shapes: "Optional[Mapping[str, Sequence[int]]]" = None,
         data_dir: "Optional[Path]" = None) -> "Union[Path, bytes, onnx.ModelProto]":
    """The model of a step along an axis that never ends, for Stepper (docs/steps.md). Returns it as `tile` does.

    axis: (input, axis). rows: of that input in a step; 0: as few as the model can be cut in. shapes: {input: dimensions}, where
    the model leaves some open. Raises ModelError with the node that needs more than rows that are near, UsageError where there is
    no such axis or the rows are no multiple of what the model can be cut in.
    """
    name, number = axis
    if number < 0 or rows < 0:
        raise UsageError(f"axis {axis!r} with {rows} rows: from 0 on")
    with Handle() as handle:
        for value, dims in items_of(shapes, "shapes"):
            handle.call("bind_shape", value.encode(), dims_of(dims), len(dims))
        load(handle, model, data_dir)
        handle.call("step", name.encode(), number, rows)
        if out is not None:
            save(handle, out)
        return out if out is not None else take(handle, model)


def _session(model: Any, options: Any) -> Any:
    """model: a session, or what one is made of."""
    if hasattr(model, "get_modelmeta"):
        return model
    import onnxruntime  # type: ignore[import-untyped]
    return onnxruntime.InferenceSession(for_onnxruntime(model), options, providers=["CPUExecutionProvider"])


class Stepper:
    """Runs the model of a step on rows of any number, and keeps the state between.

        s = Stepper("step.onnx")
        for block in source:
            use(s.push(block))          # rows that are finished: none at first, where there is a delay
        use(s.finish())                 # the rest; the next push begins anew

    All rows that come out are those of the whole model on all rows that went in. Where the model has one input, or one output, that
    has rows, they are arrays; else dictionaries by name.
    """

    def __init__(self, model: Any, *, constants: "Optional[Mapping[str, np.ndarray]]" = None, options: Any = None) -> None:
        """model: a file, bytes, an onnx.ModelProto or an onnxruntime.InferenceSession (options: its SessionOptions); constants:
        inputs that have no rows. Raises UsageError where it is no model of a step."""
        self.session = _session(model, options)
        text = self.session.get_modelmeta().custom_metadata_map.get(_KEY)
        if text is None:
            raise UsageError("the model is no step: write one with `onnx-tile MODEL -o STEP --emit step --axis INPUT:AXIS`")
        self.data: Dict[str, Any] = json.loads(text)
        self.inputs: List[Dict[str, Any]] = self.data["inputs"]
        self.outputs: List[Dict[str, Any]] = self.data["outputs"]
        self._constants = dict(constants or {})
        named = {i["name"] for i in self.inputs} | {s["from"] for s in self.data["states"]} | {self.data["count"]}
        rest = {i.name for i in self.session.get_inputs()} - named
        if rest != set(self._constants):
            raise UsageError(f"constants are to be given of {sorted(rest)}, not of {sorted(self._constants)}")
        self._types = {i.name: i.type for i in self.session.get_inputs()}
        self._wanted = [o["name"] for o in self.outputs]
        self._valid = [o["valid"] for o in self.outputs if o["valid"]]
        self._next = [s["to"] for s in self.data["states"]]
        self.reset()

    def reset(self) -> None:
        """Forget all rows: the next one is the first."""
        import numpy as np
        self._state = {s["from"]: np.zeros(s["shape"], s["type"]) for s in self.data["states"]}
        self._waiting: Dict[str, List[np.ndarray]] = {i["name"]: [] for i in self.inputs}
        self.seen = 0  # rows of the named input

    @property
    def delay(self) -> Dict[str, int]:
        """Rows by which each output is late."""
        return {o["name"]: o["delay"] for o in self.outputs}

    @property
    def state_bytes(self) -> int:
        """What goes from step to step, whatever the length."""
        return int(self.data["state_bytes"])

    def _take(self, rows: "Arrays") -> None:
        given = rows if isinstance(rows, Mapping) else {self.inputs[0]["name"]: rows}
        if set(given) != set(self._waiting):
            raise UsageError(f"rows are to be given of {sorted(self._waiting)}, not of {sorted(given)}")
        for name, array in given.items():
            self._waiting[name].append(array)

    def _held(self, i: Mapping[str, Any]) -> int:
        return sum(a.shape[i["axis"]] for a in self._waiting[i["name"]])

    def _cut(self, i: Mapping[str, Any], rows: int) -> "np.ndarray":
        """The next rows of an input, zeros behind the last."""
        import numpy as np
        name, axis = i["name"], i["axis"]
        parts = self._waiting[name]
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts, axis) if parts else None
        if whole is None:
            shape = next(x.shape for x in self.session.get_inputs() if x.name == name)
            return np.zeros([rows if k == axis else d for k, d in enumerate(shape)], _dtype(self._types[name]))
        index = [slice(None)] * whole.ndim
        index[axis] = slice(rows, None)
        rest = whole[tuple(index)]
        self._waiting[name] = [rest] if rest.shape[axis] else []
        index[axis] = slice(0, rows)
        part = whole[tuple(index)]
        if part.shape[axis] < rows:
            part = np.pad(part, [(0, rows - n if k == axis else 0) for k, n in enumerate(part.shape)])
        return part

    def _step(self, count: int) -> "List[np.ndarray]":
        import numpy as np
        feed = {i["name"]: self._cut(i, i["rows"]) for i in self.inputs}
        feed.update(self._state)
        feed.update(self._constants)
        if self.data["count"] is not None:
            feed[self.data["count"]] = np.array([count], np.int64)
        made = self.session.run(self._wanted + self._valid + self._next, feed)
        n, m = len(self._wanted), len(self._valid)
        self._state = {s["from"]: a for s, a in zip(self.data["states"], made[n + m:])}
        valid, out = iter(made[n:n + m]), []
        self.seen += count
        for o, rows in zip(self.outputs, made[:n]):
            lo, hi = next(valid) if o["valid"] else (0, count * o["num"] // o["den"])
            index = [slice(None)] * rows.ndim
            index[o["axis"]] = slice(int(lo), int(hi))
            out.append(rows[tuple(index)])
        return out

    def _joined(self, made: "List[List[np.ndarray]]") -> "Arrays":
        import numpy as np
        joined = {}
        for k, o in enumerate(self.outputs):
            if not made:
                shape = next(x.shape for x in self.session.get_outputs() if x.name == o["name"])
                of_type = next(x.type for x in self.session.get_outputs() if x.name == o["name"])
                joined[o["name"]] = np.zeros([0 if a == o["axis"] else d for a, d in enumerate(shape)], _dtype(of_type))
            else:
                joined[o["name"]] = made[0][k] if len(made) == 1 else np.concatenate([m[k] for m in made], o["axis"])
        return joined if len(joined) > 1 else joined[self._wanted[0]]

    def push(self, rows: "Arrays") -> "Arrays":
        """The next rows of the input, any number of them; returns the rows that are finished by now."""
        self._take(rows)
        made = []
        while all(self._held(i) >= i["rows"] for i in self.inputs):
            made.append(self._step(self.data["rows"]))
        return self._joined(made)

    def finish(self) -> "Arrays":
        """There are no more rows: returns those that are not out yet, and begins anew. Raises UsageError where the model takes no
        input of so many rows."""
        named = next(i for i in self.inputs if i["name"] == self.data["input"])
        rest, made = self._held(named), []
        of = self.data["remainders"]
        if of and (self.seen + rest) % self.data["align"] not in of:
            raise UsageError(f"{self.seen + rest} rows: the model takes such as are {', '.join(map(str, of[:8]))} modulo "
                             f"{self.data['align']}")
        if rest:
            made.append(self._step(rest))
        made += [self._step(0) for _ in range(self.data["flush"])]
        out = self._joined(made)
        self.reset()
        return out


def _dtype(of_type: str) -> Any:
    import numpy as np
    name = of_type[len("tensor("):-1]
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))
