"""What is done of a run, beside its target: a folder TARGET.onnx-tile with

    manifest.jsonl    one line of what the work is, then one for each chunk that is written
    numbers.jsonl     of a model that needs passes: one line of what the work is, then one for each chunk of a pass
    *.onnx            the model as workers run it, where that is not the given file
    value_N           a value that a pass has written, while a later one reads it
    data...           the target while it is made

so that a run that was killed goes on where it was, and is refused where the model, the input or an option is another.
"""
import contextlib
import fcntl
import json
import os
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from .._errors import SystemFailure, UsageError

# Of passes.
NUMBERS = "numbers.jsonl"
# What a manifest has of a run, as a message says it.
_WORDS = {"stored": "choice of store=", "tool": "version of onnx-tile", "convert": "conversion of elements", "tiled": "choice of tiled="}


def folder_of(target: str) -> str:
    """The folder that belongs to a target."""
    return os.path.abspath(target).rstrip("/") + ".onnx-tile"


class Journal:
    """A file of lines of JSON that grows; the last line may be torn."""

    def __init__(self, path: str) -> None:
        """Opened, or made."""
        self.path = path
        try:
            self.file = open(path, "a+", encoding="ascii")
        except OSError as why:
            raise SystemFailure(f"cannot write '{path}': {why.strerror}") from None

    def read(self) -> List[Dict[str, Any]]:
        """All lines; what was torn is cut off."""
        self.file.seek(0)
        lines = self.file.read().split("\n")
        parsed: List[Dict[str, Any]] = []
        for number, line in enumerate(lines[:-1]):
            try:
                parsed.append(json.loads(line))
            except ValueError:
                raise SystemFailure(f"'{self.path}' line {number + 1} is no JSON: remove the folder to begin anew") from None
        if lines[-1]:  # the next line begins behind the last whole one
            self.file.truncate(len("\n".join(lines[:-1])) + bool(lines[:-1]))
        return parsed

    def restart(self) -> None:
        """Nothing is written yet."""
        self.file.truncate(0)

    def add(self, line: Dict[str, Any]) -> None:
        """One more line, which stays if this process is killed."""
        try:
            self.file.write(json.dumps(line, sort_keys=True) + "\n")
            self.file.flush()
        except OSError as why:
            raise SystemFailure(f"cannot write '{self.path}': {why.strerror}") from None

    def close(self) -> None:
        """Let another run have it."""
        self.file.close()


def agrees(target: str, before: Dict[str, Any], now: Dict[str, Any], keys: Iterable[str]) -> None:
    """Raises UsageError naming the first thing that is another than when the work on the target began."""
    for key in keys:
        if before.get(key) != now.get(key):
            raise UsageError(f"'{target}' was begun with another {_WORDS.get(key, key)}: {_shown(before.get(key))}, not "
                             f"{_shown(now.get(key))}; use resume=False (--fresh) to begin anew")


def begun_with(target: str, key: str) -> Any:
    """What the passes of a run of that target were begun with; None: there was none."""
    try:
        with open(os.path.join(folder_of(target), NUMBERS), encoding="ascii") as f:
            head: Dict[str, Any] = json.loads(f.readline())
    except (OSError, ValueError):
        return None
    return head.get(key)


class Manifest:
    """The manifest of a target; one run at a time has it open."""

    def __init__(self, target: str) -> None:
        """Makes the folder if it is not there."""
        self.target, self.folder = target, folder_of(target)
        self._path = os.path.join(self.folder, "manifest.jsonl")
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder)
        except OSError as why:
            raise SystemFailure(f"cannot write '{self._path}': {why.strerror}") from None
        self._journal = Journal(self._path)
        try:
            fcntl.flock(self._journal.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._journal.close()
            raise SystemFailure(f"another run is writing '{target}'") from None
        self.head, self.done = self._read()

    def _read(self) -> Tuple[Optional[Dict[str, Any]], Set[int]]:
        """The first line, and the chunks."""
        parsed = self._journal.read()
        if not parsed:
            return None, set()
        return parsed[0], {int(line["chunk"]) for line in parsed[1:]}

    def agrees(self, head: Dict[str, Any], keys: Tuple[str, ...]) -> None:
        """Raises UsageError naming the first thing that is another than when the work began."""
        assert self.head is not None
        agrees(self.target, self.head, head, keys)

    def begin(self, head: Dict[str, Any]) -> None:
        """A new run: nothing is done."""
        self._journal.restart()
        self.head, self.done = head, set()
        self._journal.add(head)

    def chunk_done(self, number: int) -> None:
        """A chunk is written."""
        self.done.add(number)
        self._journal.add({"chunk": number})

    def path_of(self, name: str) -> str:
        """A file of the folder."""
        return os.path.join(self.folder, name)

    def close(self) -> None:
        """Let another run have it; where none has begun, nothing stays but the numbers of passes."""
        if self.head is None and not os.path.exists(self.path_of(NUMBERS)):
            for name in os.listdir(self.folder):
                os.remove(os.path.join(self.folder, name))
            os.rmdir(self.folder)
        self._journal.close()


def _shown(value: Any) -> str:
    text = json.dumps(value, sort_keys=True) if not isinstance(value, str) else value
    return text if len(text) <= 80 else text[:77] + "..."
