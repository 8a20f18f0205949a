"""Two files of outputs, compared one by one: the same within a tolerance, or no further apart than TIMES what the first model is from
itself when nothing changes but rounding (its own noise). The engine has the same rule for what it runs itself (src/measure/measure_noise.c);
tests/e2e/noise_rule.sh holds both to the same data."""
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

TIMES = 10  # what the noise is allowed


class Difference(NamedTuple):
    """Of one output. nmse: squared error over the squared values; max_error: over the largest value, max_abs: itself; unequal: elements.
    kind: of the elements, as numpy has it; "": shape, type or places of what is not finite differ. why: "" where the same."""

    same: bool
    nmse: float
    max_error: float
    max_abs: float
    unequal: int
    kind: str
    why: str


def _compare(x: np.ndarray, y: np.ndarray, loose: bool, half: bool) -> Difference:
    """y against x, within the tolerance."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return Difference(False, np.inf, np.inf, np.inf, 0, "", f"is {x.dtype}{list(x.shape)} and becomes {y.dtype}{list(y.shape)}")
    kind, n = x.dtype.kind, int((x != y).sum())
    if kind != "f":
        return Difference(n == 0, 0.0, 0.0, 0.0, n, kind, f"differs in {n} of {x.size} elements" if n else "")
    half = half or x.dtype == np.float16
    x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)) or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return Difference(False, np.inf, np.inf, np.inf, n, "", "has NaN or infinity in other places")
    x, y = x[finite], y[finite]
    if not x.size:
        return Difference(True, 0.0, 0.0, 0.0, 0, kind, "")
    error, top = float(np.abs(x - y).max()), float(np.abs(x).max())
    nmse = float(((x - y) ** 2).sum() / max((x ** 2).sum(), 1e-30))
    largest_nmse = 1e-4 if half else 4e-6 if loose else 1e-8
    largest_error = 2e-2 if half or loose else 1e-3
    same = bool(nmse <= largest_nmse and error <= largest_error * max(top, 1e-6) or half and error <= 2**-24)  # the least number of float16
    why = "" if same else f"differs: NMSE {nmse:.2e}, {error:.3e} of {top:.3e}"
    return Difference(same, nmse, error / max(top, 1e-30), error, n, kind, why)


def _worst(parts: List[Difference]) -> Difference:
    """Of an output with several parts: the largest of each."""
    why = next((p.why for p in parts if not p.same), "")
    kind = "" if any(not p.kind for p in parts) else "".join(sorted({p.kind for p in parts}))
    return Difference(not why, max((p.nmse for p in parts), default=0.0), max((p.max_error for p in parts), default=0.0),
                      max((p.max_abs for p in parts), default=0.0), sum(p.unequal for p in parts), kind, why)


def compare_files(before: str, after: str, n: int, loose: bool, half: bool) -> List[Difference]:
    """Each of n outputs. loose: sums over whole maps; half: float16 inside. Files are those of _check_child: arrays K.I of output K."""
    a, b, found = np.load(before), np.load(after), []
    for k in range(n):
        keys = sorted(f for f in a.files if f.split(".")[0] == str(k))
        if keys != sorted(f for f in b.files if f.split(".")[0] == str(k)):
            found.append(Difference(False, np.inf, np.inf, np.inf, 0, "", "has another number of parts"))
            continue
        found.append(_worst([_compare(a[key], b[key], loose, half) for key in keys]))
    return found


def add_noise(noise: Dict[int, Difference], found: Sequence[Difference]) -> None:
    """noise becomes the larger of both, output by output."""
    for k, d in enumerate(found):
        if not d.kind:
            continue
        n: Optional[Difference] = noise.get(k)
        noise[k] = d if n is None else n._replace(nmse=max(n.nmse, d.nmse), max_abs=max(n.max_abs, d.max_abs), unequal=max(n.unequal, d.unequal))


def within_noise(d: Difference, noise: Optional[Difference]) -> bool:
    """Whether an output that differs is no further from the first model's than TIMES what that is from itself."""
    if noise is None or not d.kind:
        return False
    floats = d.nmse <= max(1e-8, TIMES * noise.nmse) and d.max_abs <= TIMES * noise.max_abs
    return floats if "f" in d.kind else d.unequal <= TIMES * noise.unequal
