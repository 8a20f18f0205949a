"""Sources and targets whose dimensions lie in another order than the model's, or lack some of them."""
from typing import TYPE_CHECKING, Any, Dict, Iterable, Sequence, Tuple, Union

import numpy as np

from .._errors import UsageError
from ._sources import Source
from ._targets import Target

if TYPE_CHECKING:
    from ._sources import Array, Window

# Letters of the axes of an input, by how many it has.
_LETTERS = {3: ("NCX", "NCT"), 4: ("NCYX",), 5: ("NCZYX",)}


def order_of(axes: "Union[str, Sequence[int]]", name: str, rank: int) -> Tuple[int, ...]:
    """The axis of the input for each dimension of its source: "YXC" or (2, 3, 1). Raises UsageError."""
    found: Tuple[int, ...] = ()
    if isinstance(axes, str):
        for letters in _LETTERS.get(rank, ()):
            if set(axes) <= set(letters):
                found = tuple(letters.index(c) for c in axes)
    else:
        found = tuple(int(a) for a in axes)
    if not found or len(set(found)) != len(found) or not all(0 <= a < rank for a in found):
        words = " or ".join(_LETTERS.get(rank, ("numbers",)))
        raise UsageError(f"axes {axes!r}: use each axis of input '{name}', which has {rank}, once: {words}, or numbers from 0 on")
    return found


class TurnedSource(Source):
    """A source as the model has it."""

    def __init__(self, inner: Source, order: Sequence[int], rank: int) -> None:
        """order: of order_of; axes that it lacks are 1."""
        if len(order) != len(inner.shape):
            raise UsageError(f"axes: {len(order)} axes, the source has {len(inner.shape)} dimensions")
        shape = [1] * rank
        for axis, n in zip(order, inner.shape):
            shape[axis] = n
        super().__init__(tuple(shape), inner.dtype)
        self.inner, self._order, self.shared = inner, tuple(order), inner.shared

    def read(self, window: "Window") -> "Array":
        """See Source."""
        part = self.inner.read(tuple(window[a] for a in self._order)).transpose(np.argsort(self._order))
        sizes = [1] * len(self.shape)
        for axis, n in zip(sorted(self._order), part.shape):
            sizes[axis] = n
        return part.reshape(sizes)

    def identity(self) -> Dict[str, Any]:
        """See Source."""
        return {**self.inner.identity(), "axes": list(self._order)}


class TurnedTarget(Target):
    """A target whose dimensions are in the order of the source; those that the source lacks come in front where they are not 1."""

    def __init__(self, inner: Target, order: Sequence[int], rank: int) -> None:
        """order: as of the source; rank: of the input."""
        super().__init__()
        self.inner, self._order, self._rank = inner, tuple(order), rank
        self.shared, self.packages = inner.shared, inner.packages

    def step(self, rank: int) -> Tuple[int, ...]:
        """See Target."""
        if rank != self._rank:
            raise UsageError(f"axes: the output has {rank} dimensions, the input {self._rank}: leave axes= out")
        inner, steps = self.inner.step(len(self._order)), [1] * rank
        for axis, step in zip(self._order, inner[len(inner) - len(self._order):]):
            steps[axis] = step
        return tuple(steps)

    def set(self, shape: Tuple[int, ...], dtype: Any, chunk: Tuple[int, ...]) -> None:
        """See Target."""
        super().set(shape, dtype, chunk)
        self._order = (*(a for a, n in enumerate(shape) if n != 1 and a not in self._order), *self._order)
        self.inner.set(tuple(shape[a] for a in self._order), dtype, tuple(chunk[a] for a in self._order))

    def create(self) -> None:
        """See Target."""
        self.inner.create()

    def exists(self) -> bool:
        """See Target."""
        return self.inner.exists()

    def write(self, number: int, window: "Window", part: "Array") -> None:
        """See Target."""
        rest = [a for a in range(part.ndim) if a not in self._order]
        turned = part.transpose([*self._order, *rest]).reshape([part.shape[a] for a in self._order])
        self.inner.write(number, tuple(window[a] for a in self._order), np.ascontiguousarray(turned))

    def finish(self, windows: "Iterable[Tuple[int, Window]]") -> None:
        """See Target."""
        self.inner.finish((number, tuple(window[a] for a in self._order)) for number, window in windows)
