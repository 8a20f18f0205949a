"""Two files of outputs, compared one by one."""
from typing import List, Sequence, Tuple

import numpy as np

Row = Tuple[str, bool, float, float, str]


def _compare(x: np.ndarray, y: np.ndarray, loose: bool, half: bool) -> Tuple[bool, float, float, str]:
    """(same, NMSE, largest error over the largest value, why not)."""
    if x.dtype != y.dtype or x.shape != y.shape:
        return False, np.inf, np.inf, f"is {x.dtype}{list(x.shape)} and becomes {y.dtype}{list(y.shape)}"
    if x.dtype.kind != "f":
        n = int((x != y).sum())
        return n == 0, 0.0, 0.0, f"differs in {n} of {x.size} elements" if n else ""
    half = half or x.dtype == np.float16
    x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)) or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False, np.inf, np.inf, "has NaN or infinity in other places"
    x, y = x[finite], y[finite]
    if not x.size:
        return True, 0.0, 0.0, ""
    error, top = np.abs(x - y).max(), np.abs(x).max()
    nmse = float(((x - y) ** 2).sum() / max((x ** 2).sum(), 1e-30))
    largest_nmse = 1e-4 if half else 4e-6 if loose else 1e-8
    largest_error = 2e-2 if half or loose else 1e-3
    same = nmse <= largest_nmse and error <= largest_error * max(top, 1e-6)
    return bool(same), nmse, float(error / max(top, 1e-30)), "" if same else f"differs: NMSE {nmse:.2e}, {error:.3e} of {top:.3e}"


def compare_files(before: str, after: str, names: Sequence[str], loose: bool, half: bool) -> List[Row]:
    """(name, same, NMSE, largest error, why) of each output. loose: sums over whole maps; half: float16 inside. Files are those of _check_child: arrays K.I of output K."""
    a, b, rows = np.load(before), np.load(after), []
    for k, name in enumerate(names):
        keys = sorted(f for f in a.files if f.split(".")[0] == str(k))
        if keys != sorted(f for f in b.files if f.split(".")[0] == str(k)):
            rows.append((name, False, np.inf, np.inf, "has another number of parts"))
            continue
        parts = [_compare(a[key], b[key], loose, half) for key in keys]
        why = next((p[3] for p in parts if not p[0]), "")
        rows.append((name, not why, max((p[1] for p in parts), default=0.0), max((p[2] for p in parts), default=0.0), why))
    return rows
