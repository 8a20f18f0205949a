"""What is done of a run, beside its target: a folder TARGET.onnx-tile with

    manifest.jsonl    one line of what the work is, then one for each chunk that is written
    *.onnx            the model as workers run it, where that is not the given file
    data...           the target while it is made

so that a run that was killed goes on where it was, and is refused where the model, the input or an option is another.
"""
import contextlib
import fcntl
import json
import os
from typing import Any, Dict, List, Optional, Set, Tuple

from .._errors import SystemFailure, UsageError

# What a manifest has of a run, as a message says it.
_WORDS = {"tool": "version of onnx-tile", "convert": "conversion of elements", "tiled": "choice of tiled="}


def folder_of(target: str) -> str:
    """The folder that belongs to a target."""
    return os.path.abspath(target).rstrip("/") + ".onnx-tile"


class Manifest:
    """The manifest of a target; one run at a time has it open."""

    def __init__(self, target: str) -> None:
        """Makes the folder if it is not there."""
        self.target, self.folder = target, folder_of(target)
        self._path = os.path.join(self.folder, "manifest.jsonl")
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder)
            self._file = open(self._path, "a+", encoding="ascii")
        except OSError as why:
            raise SystemFailure(f"cannot write '{self._path}': {why.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise SystemFailure(f"another run is writing '{target}'") from None
        self.head, self.done = self._read()

    def _read(self) -> Tuple[Optional[Dict[str, Any]], Set[int]]:
        """The first line, and the chunks; the last line may be torn."""
        self._file.seek(0)
        lines = self._file.read().split("\n")
        parsed: List[Dict[str, Any]] = []
        for number, line in enumerate(lines[:-1]):
            try:
                parsed.append(json.loads(line))
            except ValueError:
                raise SystemFailure(f"'{self._path}' line {number + 1} is no JSON: remove the folder to begin anew") from None
        if lines[-1]:  # torn: the next line begins behind the last whole one
            self._file.truncate(len("\n".join(lines[:-1])) + bool(lines[:-1]))
        if not parsed:
            return None, set()
        return parsed[0], {int(line["chunk"]) for line in parsed[1:]}

    def agrees(self, head: Dict[str, Any], keys: Tuple[str, ...]) -> None:
        """Raises UsageError naming the first thing that is another than when the work began."""
        assert self.head is not None
        for key in keys:
            if self.head.get(key) != head.get(key):
                raise UsageError(f"'{self.target}' was begun with another {_WORDS.get(key, key)}: {_shown(self.head.get(key))}, not "
                                 f"{_shown(head.get(key))}; use resume=False (--fresh) to begin anew")

    def begin(self, head: Dict[str, Any]) -> None:
        """A new run: nothing is done."""
        self._file.truncate(0)
        self.head, self.done = head, set()
        self._line(head)

    def _line(self, line: Dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line, sort_keys=True) + "\n")
            self._file.flush()
        except OSError as why:
            raise SystemFailure(f"cannot write '{self._path}': {why.strerror}") from None

    def chunk_done(self, number: int) -> None:
        """A chunk is written."""
        self.done.add(number)
        self._line({"chunk": number})

    def path_of(self, name: str) -> str:
        """A file of the folder."""
        return os.path.join(self.folder, name)

    def close(self) -> None:
        """Let another run have it; where none has begun, nothing stays."""
        if self.head is None:
            for name in os.listdir(self.folder):
                os.remove(os.path.join(self.folder, name))
            os.rmdir(self.folder)
        self._file.close()


def _shown(value: Any) -> str:
    text = json.dumps(value, sort_keys=True) if not isinstance(value, str) else value
    return text if len(text) <= 80 else text[:77] + "..."
