"""Passes over the input before the output is made, for a model that needs numbers of a whole axis: each hands out numbers of chunks,
which are put together in the order of chunks, and are inputs of all models behind. What is known is written down, so that a run that
was killed goes on where it was.
"""
import hashlib
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ._manifest import Journal, agrees
from ._pass_windows import Numbers, PassPart, PassWindows, joined

if TYPE_CHECKING:
    from ._sources import Array

# What one chunk has handed out, by statistic.
Handed = Dict[str, Numbers]


class PassLog:
    """What passes have made so far. With a path: written down."""

    def __init__(self, path: Optional[str], target: str, head: Mapping[str, Any], resume: bool) -> None:
        """head: what the work is. Raises UsageError where it was begun with another model or input, and is to be gone on with."""
        self._chunks: Dict[Tuple[int, int], Handed] = {}
        self._begun: Dict[int, Dict[str, Any]] = {}
        self._journal = Journal(path) if path is not None else None
        if self._journal is None:
            return
        try:
            self._go_on(self._journal, target, dict(head), resume)
        except Exception:
            self._journal.close()
            raise

    def _go_on(self, journal: Journal, target: str, head: Dict[str, Any], resume: bool) -> None:
        lines = journal.read() if resume else []
        if lines:
            agrees(target, lines[0], head, tuple(head))
        else:
            journal.restart()
            journal.add(head)
        for line in lines[1:]:
            if "chunk" in line:
                self._chunks[line["pass"], line["chunk"]] = line["numbers"]
            else:
                self._note_begun(line)

    def _note_begun(self, line: Dict[str, Any]) -> None:
        self._begun[line["pass"]] = line
        for key in [k for k in self._chunks if k[0] == line["pass"]]:
            del self._chunks[key]

    def restart(self, head: Mapping[str, Any]) -> None:
        """Nothing is done."""
        self._chunks.clear()
        self._begun.clear()
        if self._journal is not None:
            self._journal.restart()
            self._journal.add(dict(head))

    def begun(self, number: int) -> Optional[Dict[str, Any]]:
        """How a pass was begun; None: it was not."""
        return self._begun.get(number)

    def begin(self, number: int, edges: Sequence[int], ran: Optional[str], probe: str) -> None:
        """A pass begins: edges of its chunks, hash of the tiled model, and of the probe."""
        line = {"pass": number, "edges": list(edges), "ran": ran, "probe": probe}
        self._note_begun(line)
        if self._journal is not None:
            self._journal.add(line)

    def add(self, number: int, chunk: int, numbers: Handed) -> None:
        """A chunk of a pass is done."""
        self._chunks[number, chunk] = numbers
        if self._journal is not None:
            self._journal.add({"pass": number, "chunk": chunk, "numbers": numbers})

    def done(self, number: int) -> "set[int]":
        """Chunks of a pass."""
        return {chunk for found, chunk in self._chunks if found == number}

    def joined(self, number: int, windows: PassWindows, parts: Sequence[PassPart]) -> "Dict[str, Array]":
        """What a pass gives to the models behind it, by input."""
        found: Dict[str, List[Numbers]] = {s["name"]: [] for s in windows.statistics}
        for part in parts:
            for name, numbers in self._chunks[number, part.number].items():
                found[name].append(numbers)
        return {s["name"]: joined(s["kind"], found[s["name"]]) for s in windows.statistics}

    def close(self) -> None:
        """No more is written."""
        if self._journal is not None:
            self._journal.close()


def handed_out(windows: PassWindows) -> Tuple[str, ...]:
    """Outputs of a pass."""
    what = {"moments": ("n", "mean", "m2"), "mean": ("n", "mean")}
    return tuple(f"{s['name']}.{w}" for s in windows.statistics for w in what.get(s["kind"], (s["kind"],)))


def key_of(key: str, number: int) -> str:
    """The key of a pass's job."""
    return hashlib.sha256(f"{key} {number}".encode()).hexdigest()
