"""Values that a pass writes and later passes read: files beside the target, mapped, that go when no pass is left that reads them."""
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from ._sources import MappedSource
from ._targets import reserve

if TYPE_CHECKING:
    from ._sources import Array, Window

# How names of files begin.
PREFIX = "value_"


class Stored:
    """The file of one value."""

    def __init__(self, path: str, shape: Sequence[int], dtype: str) -> None:
        """Nothing is made yet. It is sent to workers, which see the file."""
        self.path, self.shape, self.dtype = os.path.abspath(path), tuple(shape), np.dtype(dtype)

    @property
    def size_bytes(self) -> int:
        """Of the file."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def is_there(self) -> bool:
        """Whether it was made."""
        return os.path.exists(self.path) and os.path.getsize(self.path) == self.size_bytes

    def create(self) -> None:
        """Make the file, with room for all of it."""
        with open(self.path + ".new", "wb") as f:
            f.truncate(self.size_bytes)
        reserve(self.path + ".new")
        os.replace(self.path + ".new", self.path)

    def write(self, window: "Window", rows: "Array") -> None:
        """Rows of one chunk."""
        np.memmap(self.path, self.dtype, "r+", 0, self.shape)[window] = rows

    def source(self) -> MappedSource:
        """The same to be read."""
        return MappedSource(self.path, self.shape, self.dtype, 0)


class StoredValues:
    """All that are written for a plan, and who reads them."""

    def __init__(self, plan: Mapping[str, Any], folder: str) -> None:
        """plan: of plan.json; folder: where files are."""
        self._of: Dict[str, Stored] = {}
        self._writer: Dict[str, int] = {}
        self._last: Dict[str, int] = {}
        for number, s in enumerate(plan.get("stored", []), 1):
            name = s["value"]
            self._of[name] = Stored(os.path.join(folder, f"{PREFIX}{number}"), s["shape"], s["type"])
            self._writer[name] = s["pass"]
            self._last[name] = max(k for k, p in enumerate(plan["passes"], 1) if name in p["inputs"])

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return sum(s.size_bytes for s in self._of.values())

    def by(self, number: int) -> Dict[str, Stored]:
        """What a pass writes."""
        return {n: s for n, s in self._of.items() if self._writer[n] == number}

    def read_by(self, names: Sequence[str]) -> Dict[str, MappedSource]:
        """Those of the inputs of a model that are files of this."""
        return {n: self._of[n].source() for n in names if n in self._of}

    def is_complete(self, begun: Sequence[int], over: Sequence[int]) -> bool:
        """Whether all files are there that passes have begun to write, and passes that are not over read. begun, over: passes."""
        return all(s.is_there() for n, s in self._of.items() if self._writer[n] in begun and self._last[n] not in over)

    def forget(self, number: int) -> None:
        """Pass `number` is over: what nobody reads any more goes."""
        for name, stored in self._of.items():
            if self._last[name] <= number and os.path.exists(stored.path):
                os.remove(stored.path)


def largest_together(plan: Mapping[str, Any]) -> int:
    """Bytes of the files that are there at one time, at the most."""
    passes: List[Dict[str, Any]] = plan["passes"]
    sizes: List[Tuple[int, int, int]] = []
    for s in plan.get("stored", []):
        sizes.append((s["pass"], max(k for k, p in enumerate(passes, 1) if s["value"] in p["inputs"]), s["bytes"]))
    return max((sum(b for first, last, b in sizes if first <= k <= last) for k in range(1, len(passes) + 1)), default=0)
