"""plan_memory: buffers placed in memory by the program of the package, which is the library's own planner."""
import csv
import errno
import json
import os
import re
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from ._errors import ModelNotFound, SystemFailure, UsageError, error_of
from ._library import size_of
from ._program import program_path
from ._result import format_bytes, html_table

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]
    Size = Union[int, str]
    Row = Sequence[Union[int, str]]

_MODES = ("auto", "sequential", "reuse", "search")
_COLUMNS = ("id", "lower", "upper", "size", "alignment")
_PAIR_COLUMNS = ("first", "second", "weight")
_HEAD = ("scope", "buffers", "height", "lower bound", "capacity", "mode")


class MemoryPlan:
    """Where buffers lie. `data` is the object of `onnx-tile plan-memory --json` (docs/json.md); str() is a table of the memories."""

    def __init__(self, data: Dict[str, Any]) -> None:
        """data: the parsed JSON."""
        self.data = data

    @property
    def scopes(self) -> List[Dict[str, Any]]:
        """The memories that are planned: scope (None of a table), height_bytes, lower_bound_bytes, capacity_bytes, mode, proved and more."""
        scopes: List[Dict[str, Any]] = self.data["scopes"]
        return scopes

    @property
    def height_bytes(self) -> int:
        """Bytes that the fullest memory takes."""
        return max((s["height_bytes"] for s in self.scopes), default=0)

    @property
    def offsets(self) -> Dict[str, int]:
        """{buffer: offset in bytes}, of its first slot."""
        return {name: b["offsets_bytes"][0] for b in self.data["placed"] for name in b["names"] if b["offsets_bytes"]}

    @property
    def reuse_cost(self) -> Optional[int]:
        """Weights of the pairs that share bytes; None without pairs. `scopes[0]["reuse_cost_proved"]`: no plan pays less."""
        costs = [s["reuse_cost"] for s in self.scopes if "reuse_cost" in s]
        return sum(costs) if costs else None

    @property
    def footprint(self) -> Optional[List[Dict[str, Any]]]:
        """Of each memory: lines, peak_line, peak_bytes, at_peak, goes, less and more (docs/json.md); None without footprint=True."""
        footprint: Optional[List[Dict[str, Any]]] = self.data.get("footprint")
        return footprint

    def _rows(self) -> List[List[str]]:
        return [[s["scope"] or "-", str(s["buffers"]), format_bytes(s["height_bytes"]), format_bytes(s["lower_bound_bytes"]),
                 format_bytes(s["capacity_bytes"]) or "-", s["mode"]] for s in self.scopes]

    def __str__(self) -> str:
        return "\n".join("".join(f"{c:>14}" for c in row) for row in [list(_HEAD), *self._rows()])

    def __repr__(self) -> str:
        return f"<onnx_tile.MemoryPlan: {self.data['buffers']} buffers, {self.height_bytes} bytes>"

    def _repr_html_(self) -> str:
        return html_table(list(_HEAD), self._rows())


def _write_table(rows: "Iterable[Row]", path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in rows:
            if not 4 <= len(row) <= len(_COLUMNS):
                raise UsageError(f"buffer {row!r}: must be (id, lower, upper, size) or (id, lower, upper, size, alignment)")
            writer.writerow([*row, 1][:len(_COLUMNS)])


def _write_pairs(pairs: "Iterable[Row]", path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(_PAIR_COLUMNS)
        for pair in pairs:
            if not 2 <= len(pair) <= 3:
                raise UsageError(f"pair {pair!r}: must be (first, second) or (first, second, weight)")
            writer.writerow([*pair, 1][:3])


def _callers_names(line: str, folder: str) -> str:
    """The program's line without files of this module's: lines of a table that it wrote are rows of the caller's."""
    line = re.sub(re.escape(os.path.join(folder, "")) + r"(buffers|pairs)\.csv:(\d+)", lambda m: f"{m[1]}[{int(m[2]) - 2}]", line)
    return line.replace(os.path.join(folder, "buffers.csv"), "buffers").replace(os.path.join(folder, "pairs.csv"), "pairs")


def plan_memory(buffers: "Union[Path, Iterable[Row]]", out: "Optional[Path]" = None, *, capacity: "Optional[Size]" = None,
                mode: str = "auto", time_limit: Optional[float] = None, target: "Optional[Path]" = None,
                sizes: Optional[Mapping[str, int]] = None, threads: int = 1,
                pairs: "Optional[Union[Path, Iterable[Row]]]" = None, footprint: bool = False) -> MemoryPlan:
    """Place buffers so that those that live at one time do not meet.

    buffers: a file (.csv, .tk, .mlir), or rows (id, lower, upper, size[, alignment]): alive from lower to before upper, size in bytes.
    out: file to write with the offsets; of the form of the file that was read, a .csv of rows. capacity: bytes that must do
    (BudgetError otherwise); without it the lowest plan is sought. mode: "auto", "sequential", "reuse" or "search". time_limit: seconds
    that a search may take; without it a fixed number of steps, the same plan everywhere. target and sizes: of kernels.
    pairs: of tables: a file (.csv, .json), or rows (first, second[, weight]): what it costs that two buffers share bytes; made least after the
    height. footprint: of kernels: MemoryPlan.footprint, what is alive at each line and what 4 KiB more cost there.

    Raises ModelError, UsageError, BudgetError or SystemFailure with the program's line.
    """
    if mode not in _MODES:
        raise UsageError(f"mode {mode!r}: use one of {', '.join(_MODES)}")
    options = ["--mode", mode, "--threads", str(threads)]
    for name, value in (("capacity", None if capacity is None else size_of(capacity)), ("time-limit", time_limit),
                        ("target", None if target is None else os.fspath(target))):
        options += [] if value is None else [f"--{name}={value}"]
    options += [f"--size={name}={value}" for name, value in (sizes or {}).items()]
    options += ["--footprint"] if footprint else []
    options += [] if out is None else [f"--output={os.fspath(out)}"]
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(buffers, (str, os.PathLike)):
            path = os.fspath(buffers)
            if not os.path.exists(path):
                raise ModelNotFound(f"cannot read {path!r}: {os.strerror(errno.ENOENT)}")
        else:
            path = os.path.join(folder, "buffers.csv")
            _write_table(buffers, path)
        if pairs is not None:
            if isinstance(pairs, (str, os.PathLike)):
                pairs_path = os.fspath(pairs)
            else:
                pairs_path = os.path.join(folder, "pairs.csv")
                _write_pairs(pairs, pairs_path)
            options.append(f"--pairs={pairs_path}")
        try:
            done = subprocess.run([program_path(), "plan-memory", "--json", *options, "--", path], capture_output=True, encoding="utf-8")
        except OSError as why:
            raise SystemFailure(f"cannot start {program_path()}: {why.strerror}") from why
    if done.returncode:
        line = done.stderr.strip().splitlines()[-1:] or [f"the program ended with status {done.returncode}"]
        raise error_of(done.returncode, _callers_names(line[0].replace("onnx-tile: error: ", "", 1), folder))
    return MemoryPlan(json.loads(done.stdout))
