"""Passes of a model that needs numbers of a whole axis (docs/large.md): which rows of each value a chunk owns, and the crops for them.

    value     |  chunk 0  |  chunk 1  |  chunk 2  |      its rows, each of one chunk: counted once
    input     |===========------|                        crop of chunk 0, a halo behind
                       |---===========---|               the mask of chunk 1 leaves both halos out

Chunks are cut from the first input. Values lie at scales of their own; a crop holds what all of a pass need.
"""
import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._geometry import Geometry


class Mask(NamedTuple):
    """Rows of a value that a crop makes along `axis`, and those of them, [lo, hi), that the chunk owns."""

    axis: int
    rank: int
    rows: int
    lo: int
    hi: int

    def array(self, dtype: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
        """As the model takes it."""
        mask = np.zeros(self.rows, dtype)
        mask[self.lo:self.hi] = 1
        return mask.reshape(self.shape)

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the array."""
        return tuple(self.rows if k == self.axis else 1 for k in range(self.rank))


class PassPart(NamedTuple):
    """A task of a pass. crops: as of Part; masks: by input; absent: statistics of which the chunk owns no row. stored: by value that
    is written, rows of what the crop makes, and where they belong."""

    number: int
    crops: Dict[str, Tuple[slice, ...]]
    masks: Dict[str, Mask]
    absent: Tuple[str, ...]
    stored: Dict[str, Tuple[Tuple[slice, ...], Tuple[slice, ...]]]


class PassWindows:
    """The chunks of a pass over whole inputs of known shapes."""

    def __init__(self, plan: Mapping[str, Any], number: int, shapes: Mapping[str, Tuple[int, ...]]) -> None:
        """plan: of plan.json; number: of the pass, from 1 on; shapes: of the whole inputs."""
        self.statistics: List[Dict[str, Any]] = [s for s in plan["statistics"] if s["pass"] == number]
        self._stored: Dict[str, Dict[str, Any]] = {s["value"]: s for s in plan.get("stored", []) if s["pass"] == number}
        self._shapes = {n: shapes[n] for n in plan["passes"][number - 1]["inputs"] if n in shapes}
        made = {*self._stored, *(s["value"] for s in self.statistics)}
        self._geometry = Geometry(dict(plan), "", {})
        self._axes: Dict[str, Dict[str, List[Dict[str, int]]]] = {}
        for pair in plan["outputs"]:
            if pair["axes"] and pair["name"] in made and pair["input"] in self._shapes:
                self._axes.setdefault(pair["name"], {})[pair["input"]] = pair["axes"]
        every = [(name, a) for by_input in self._axes.values() for name, axes in by_input.items() for a in axes]
        self.first = every[0][0]
        self._cut = sorted({a["input_axis"] for name, a in every if name == self.first})
        self.axes = list(range(len(self._cut)))
        self.extents = [shapes[self.first][a] for a in self._cut]
        self.units = [math.lcm(*(math.lcm(a["align"], a["den"]) for name, a in every if name == self.first and a["input_axis"] == cut))
                      for cut in self._cut]
        self.pairs: Dict[str, List[Dict[str, int]]] = {}
        for value, by_input in self._axes.items():
            for name, axes in by_input.items():
                for a in axes:
                    k = self._index(value, a["axis"])
                    found = self.pairs.setdefault(name, [])
                    if all(f["axis"] != k for f in found):
                        found.append({"axis": k, "input_axis": a["input_axis"], "num": self.extents[k],
                                      "den": shapes[name][a["input_axis"]]})

    def _index(self, value: str, axis: int) -> int:
        """Which axis of the chunks an axis of a value follows."""
        by_input = self._axes[value]
        axes = by_input.get(self.first, next(iter(by_input.values())))
        found = next(a for a in axes if a["axis"] == axis)
        if self.first in by_input:
            return self._cut.index(found["input_axis"])
        return sorted(a["input_axis"] for a in axes).index(found["input_axis"])

    def _owned(self, value: str, k: int, lo: int, hi: int) -> Tuple[int, Tuple[int, int]]:
        """The axis of a value that follows axis k, and its rows in a chunk."""
        axes = next(iter(self._axes[value].values()))
        a = next(a for a in axes if self._index(value, a["axis"]) == k)
        extent, made = self.extents[k], a["output_extent"]
        rows = [made if r >= extent else min(r * a["extent"] // extent * a["num"] // a["den"], made) for r in (lo, hi)]
        return a["axis"], (rows[0], rows[1])

    def _hull(self, k: int, lo: int, hi: int) -> Dict[str, Tuple[int, int]]:
        """Rows of each input that a chunk's rows of all values need along axis k; {}: it owns none."""
        hull: Dict[str, Tuple[int, int]] = {}
        for value, by_input in self._axes.items():
            axis, rows = self._owned(value, k, lo, hi)
            if rows[0] >= rows[1]:
                continue
            for name, axes in by_input.items():
                for a in axes:
                    if a["axis"] != axis:
                        continue
                    crop = self._geometry.crop(*rows, self._shapes[name][a["input_axis"]], axis=axis, output=value, input=name).input
                    assert isinstance(crop, slice)
                    old = hull.get(name, (crop.start, crop.stop))
                    hull[name] = (min(old[0], crop.start), max(old[1], crop.stop))
        while hull and self._widen(k, hull):
            pass
        return hull

    def _widen(self, k: int, hull: Dict[str, Tuple[int, int]]) -> bool:
        """Crops of inputs that meet in a value have to give the same rows of it. Whether one was widened."""
        before = dict(hull)
        for value, by_input in self._axes.items():
            met = [(name, a) for name, axes in by_input.items() for a in axes if self._index(value, a["axis"]) == k]
            known = [(hull[name], a) for name, a in met if name in hull]
            if not known:
                continue
            first = min(begin * a["num"] // a["den"] for (begin, _), a in known)
            left = min((a["extent"] - end) * a["num"] // a["den"] for (_, end), a in known)
            for name, a in met:
                begin, behind = (rows * a["den"] // a["num"] // a["align"] * a["align"] for rows in (first, left))
                old = hull.get(name, (a["extent"], 0))
                hull[name] = (min(old[0], begin), max(old[1], a["extent"] - behind))
        return hull != before

    def counts(self, edges: Sequence[int]) -> List[int]:
        """Chunks along each axis."""
        return [-(-n // e) for n, e in zip(self.extents, edges)]

    def sizes(self, edges: Sequence[int]) -> Dict[str, Tuple[int, ...]]:
        """The shape of the largest crop of each input."""
        most = {name: list(shape) for name, shape in self._shapes.items()}
        for k, edge in enumerate(edges):
            hulls = [self._hull(k, lo, min(lo + edge, self.extents[k])) for lo in range(0, self.extents[k], edge)]
            for name, axes in self.pairs.items():
                for a in axes:
                    if a["axis"] == k:
                        most[name][a["input_axis"]] = max(h[name][1] - h[name][0] for h in hulls if name in h)
        return {n: tuple(s) for n, s in most.items()}

    def shapes(self, edges: Sequence[int]) -> Dict[str, Tuple[int, ...]]:
        """Of all inputs that are free, masks included."""
        sizes = self.sizes(edges)
        part = self.part(0, [0] * len(edges), [min(e, n) for e, n in zip(edges, self.extents)], sizes)
        assert part is not None
        return {**sizes, **{name: mask.shape for name, mask in part.masks.items()}}

    def part(self, number: int, lo: Sequence[int], hi: Sequence[int],
             sizes: "Optional[Mapping[str, Tuple[int, ...]]]" = None) -> Optional[PassPart]:
        """The part for rows [lo, hi) of the first input; None: it owns no row of any value. sizes: of crops; None: as small as can be."""
        window = {name: [slice(0, n) for n in shape] for name, shape in self._shapes.items()}
        for k in self.axes:
            hull = self._hull(k, lo[k], hi[k])
            if not hull:
                return None
            for name, axes in self.pairs.items():
                for a in axes:
                    if a["axis"] != k:
                        continue
                    at = a["input_axis"]
                    begin, end = hull.get(name, (0, 1))
                    if sizes is not None:
                        begin = min(begin, self._shapes[name][at] - sizes[name][at])
                        end = begin + sizes[name][at]
                    window[name][at] = slice(begin, end)
        masks: Dict[str, Mask] = {}
        absent = tuple(s["name"] for s in self.statistics if not self._masks(s, lo, hi, window, masks))
        stored = {v: w for v, w in ((v, self._place(v, lo, hi, window)) for v in self._stored) if w is not None}
        if len(absent) == len(self.statistics) and not stored:
            return None
        return PassPart(number, {n: tuple(w) for n, w in window.items()}, masks, absent, stored)

    def _place(self, value: str, lo: Sequence[int], hi: Sequence[int],
               window: Mapping[str, Sequence[slice]]) -> "Optional[Tuple[Tuple[slice, ...], Tuple[slice, ...]]]":
        """Rows of a value that is written, in what the crop makes and in the whole; None: no row is owned."""
        name, axes = next(iter(self._axes[value].items()))
        cut = [slice(None)] * len(self._stored[value]["shape"])
        place = list(cut)
        for a in axes:
            k = self._index(value, a["axis"])
            _, rows = self._owned(value, k, lo[k], hi[k])
            if rows[0] >= rows[1]:
                return None
            first = window[name][a["input_axis"]].start * a["num"] // a["den"]
            cut[a["axis"]], place[a["axis"]] = slice(rows[0] - first, rows[1] - first), slice(*rows)
        return tuple(cut), tuple(place)

    def stored_bytes(self, edges: Sequence[int]) -> int:
        """Of the rows that are written, as crops make them."""
        sizes, total = self.sizes(edges), 0
        for value, s in self._stored.items():
            shape = list(s["shape"])
            name, axes = next(iter(self._axes[value].items()))
            for a in axes:
                shape[a["axis"]] = sizes[name][a["input_axis"]] * a["num"] // a["den"] + 1
            total += math.prod(shape) * np.dtype(s["type"]).itemsize
        return total

    def _masks(self, statistic: Mapping[str, Any], lo: Sequence[int], hi: Sequence[int], window: Mapping[str, Sequence[slice]],
               masks: Dict[str, Mask]) -> bool:
        """The masks of a statistic, into masks; whether some row of its value is owned."""
        name, axes = next(iter(self._axes[statistic["value"]].items()))
        owns, found = True, {}
        for owned in statistic["owned"]:
            a = next(a for a in axes if a["axis"] == owned["axis"])
            k = self._index(statistic["value"], a["axis"])
            _, rows = self._owned(statistic["value"], k, lo[k], hi[k])
            crop = window[name][a["input_axis"]]
            made = a["output_extent"] - (a["extent"] - (crop.stop - crop.start)) * a["num"] // a["den"]
            first = crop.start * a["num"] // a["den"]
            owns = owns and rows[0] < rows[1]
            found[owned["input"]] = Mask(a["axis"], statistic["rank"], max(made, 1), rows[0] - first, rows[1] - first)
        masks.update(found if owns else {n: m._replace(lo=0, hi=0) for n, m in found.items()})
        return owns

    def parts(self, edges: Sequence[int]) -> List[PassPart]:
        """All parts that own rows, in the order of memory: their numbers are places in it."""
        counts, sizes, found = self.counts(edges), self.sizes(edges), []
        for number in range(math.prod(counts)):
            lo, left = [0] * len(counts), number
            for k in reversed(range(len(counts))):
                left, at = divmod(left, counts[k])
                lo[k] = at * edges[k]
            part = self.part(number, lo, [min(a + e, n) for a, e, n in zip(lo, edges, self.extents)], sizes)
            if part is not None:
                found.append(part)
        return found


Numbers = Dict[str, List[float]]


def joined(kind: str, parts: "Sequence[Numbers]") -> "np.ndarray[Any, Any]":
    """The numbers of all parts, in the order of chunks, put together in float64 as the next models take them."""
    def all_of(what: str) -> "np.ndarray[Any, Any]":
        return np.array([p[what] for p in parts], np.float64)
    if kind in ("sum", "max", "min"):
        together: Any = {"sum": np.sum, "max": np.max, "min": np.min}[kind]
        return np.asarray(together(all_of(kind), axis=0)).reshape(-1, 1)
    n, means = all_of("n"), all_of("mean")
    mean = (n * means).sum(0) / n.sum(0)
    if kind == "mean":
        return np.asarray(mean).reshape(-1, 1)
    m2 = all_of("m2").sum(0) + (n * (means - mean) ** 2).sum(0)
    return np.stack([mean, m2 / n.sum(0)], -1).reshape(-1, 1)
