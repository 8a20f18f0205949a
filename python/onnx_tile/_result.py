"""What tiling did, or would do: the figures of the library's JSON, with a table for the terminal and one for notebooks."""
import html
import re
from typing import Any, Dict, List, Optional, Tuple

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_bytes(n: Optional[float]) -> str:
    """"1.5 MiB"; "" for None."""
    if n is None:
        return ""
    size, k = float(n), 0
    while abs(size) >= 1024 and k + 1 < len(_UNITS):
        size, k = size / 1024, k + 1
    return f"{size:.{1 if k and abs(size) < 99.95 else 0}f} {_UNITS[k]}"


def format_seconds(s: Optional[float]) -> str:
    """"1.23 ms"; "" for None."""
    if s is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if s >= scale:
            break
    return f"{s / scale:.3g} {unit}"


def ratio(before: Optional[float], after: Optional[float]) -> Optional[float]:
    """after / before; None where there is none."""
    return after / before if before and after is not None else None


_FIGURE = re.compile(r"x?[-+]?\d[\d.,e+-]*( (%|[KMGT]?i?B|[mun]?s))?$")


def html_table(head: List[str], rows: List[List[str]], caption: str = "") -> str:
    """A table; every text is escaped. Columns of figures end at the right, others begin at the left, which notebooks do not do by themselves."""
    sides = ["right" if all(_FIGURE.match(row[k]) or not row[k] for row in rows) else "left" for k in range(len(head))]

    def line(tag: str, row: List[str]) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:{side}">{html.escape(c)}</{tag}>' for c, side in zip(row, sides)) + "</tr>"
    title = f'<caption style="text-align:left">{html.escape(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead>{line('th', head)}</thead><tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"


class Result:
    """The plan of one model. str() is the table that the program prints; a notebook shows the same as HTML.

    `data` is the object of `onnx-tile --json`; docs/json.md tells its members. Figures are predictions.
    """

    def __init__(self, data: Dict[str, Any], table: str) -> None:
        """data: the parsed JSON; table: the program's table of the same plan."""
        self.data = data
        self._table = table

    def _side(self, key: str) -> Dict[str, Any]:
        figures: Dict[str, Any] = self.data[key]
        return figures

    def _objects(self, key: str) -> List[Dict[str, Any]]:
        objects: List[Dict[str, Any]] = self.data[key]
        return objects

    @property
    def before(self) -> Dict[str, Any]:
        """Of the model as it came: time_seconds, peak_bytes (live tensors), process_bytes, growth_bytes (of the process), traffic_bytes, macs."""
        return self._side("untiled")

    @property
    def after(self) -> Dict[str, Any]:
        """The same, tiled."""
        return self._side("tiled")

    @property
    def regions(self) -> List[Dict[str, Any]]:
        """What is tiled: nodes, form, dims, working_set_bytes, benefit_seconds and more, one object each."""
        return self._objects("regions")

    @property
    def barriers(self) -> List[Dict[str, Any]]:
        """Nodes that tiles cannot pass: node, op, reason_id, reason."""
        return self._objects("barriers")

    @property
    def refused(self) -> List[Dict[str, Any]]:
        """What could be tiled and is not: nodes, reason_id, reason, lift."""
        return self._objects("refusals")

    @property
    def peak_ratio(self) -> Optional[float]:
        """Live bytes at the most, after / before."""
        return ratio(self.before.get("peak_bytes"), self.after.get("peak_bytes"))

    @property
    def time_ratio(self) -> Optional[float]:
        """Time, after / before."""
        return ratio(self.before.get("time_seconds"), self.after.get("time_seconds"))

    def __str__(self) -> str:
        return self._table.rstrip("\n")

    def __repr__(self) -> str:
        n = len(self.regions)
        what, key = ("process", "process_bytes") if self.before.get("process_bytes") else ("peak", "peak_bytes")
        return (f"<onnx_tile.{type(self).__name__}: {n} region{'' if n == 1 else 's'}, {what} {format_bytes(self.before.get(key))} -> "
                f"{format_bytes(self.after.get(key))}>")

    def _figures(self) -> List[List[str]]:
        kinds = (("whole process", "process_bytes", format_bytes), ("resident growth", "growth_bytes", format_bytes),
                 ("peak memory", "peak_bytes", format_bytes),
                 ("bytes moved", "traffic_bytes", format_bytes), ("time", "time_seconds", format_seconds))
        rows = []
        for name, key, text in kinds:
            before, after = self.before.get(key), self.after.get(key)
            if before is None and after is None:
                continue
            r = ratio(before, after)
            rows.append([name, text(before), text(after), "" if r is None else f"x{r:.2f}"])
        return rows

    def _repr_html_(self) -> str:
        regions = []
        for region in self.regions:
            dims = " x ".join(f"{d['axis']}/{d['tiles']}" for d in region.get("dims", []))
            nodes = region.get("nodes", [])
            ends = f"{nodes[0]} .. {nodes[-1]}" if nodes else ""
            regions.append([str(region.get("id", "")), str(len(nodes)), ends, dims, str(region.get("form", "")),
                            format_bytes(region.get("working_set_bytes"))])
        alike: Dict[Tuple[str, str], List[str]] = {}
        for b in self.barriers:
            alike.setdefault((str(b.get("op", "")), str(b.get("reason", ""))), []).append(str(b.get("node", "")))
        barriers = [[str(len(nodes)), op, why, nodes[0] + (", ..." if len(nodes) > 1 else "")] for (op, why), nodes in alike.items()]
        parts = [html_table(["predicted", "before", "after", ""], self._figures(), str(self.data.get("model") or ""))]
        if regions:
            parts.append(html_table(["region", "nodes", "from .. to", "tiles", "form", "working set"], regions))
        if barriers:
            parts.append(html_table(["barriers", "operator", "why", "node"], barriers))
        return "<div>" + "".join(parts) + "</div>"


class Explanation(Result):
    """Where memory goes, what tiling makes of it, what is in the way, and the command to use: str() is what `explain` prints."""

    def __init__(self, data: Dict[str, Any], table: str, memory: Dict[str, Any]) -> None:
        """memory: the object of `explain --json`; the others as for Result."""
        super().__init__(data, table)
        self.memory = memory

    def _found(self, key: str) -> List[Dict[str, Any]]:
        found: List[Dict[str, Any]] = self.memory[key]
        return found

    @property
    def alive(self) -> List[Dict[str, Any]]:
        """Tensors that live when most does, the largest first: value, shape, bytes, share, maker, reader, in_tiles."""
        return self._found("alive")

    @property
    def obstacles(self) -> List[Dict[str, Any]]:
        """What is in the way of less: value, bytes, node, reason_id, reason, lift."""
        return self._found("obstacles")

    @property
    def cures(self) -> List[Dict[str, Any]]:
        """Options that were tried and make it less: options, growth_bytes, peak_bytes, time_seconds."""
        return self._found("cures")

    @property
    def command(self) -> Optional[str]:
        """The command that tiles the model so; None: nothing is tiled."""
        return self.memory.get("command")

    def _repr_html_(self) -> str:
        parts = [html_table(["predicted", "before", "after", ""], self._figures(), str(self.data.get("model") or ""))]
        alive = [[str(a.get("value", "")), format_bytes(a.get("bytes")), f"{100 * float(a.get('share') or 0):.0f} %",
                  str(a.get("maker") or "input"), "in tiles" if a.get("in_tiles") else ""] for a in self.alive]
        obstacles = [[str(o.get("value") or ""), format_bytes(o.get("bytes")), str(o.get("node") or ""), str(o.get("reason") or ""),
                      str(o.get("lift") or "")] for o in self.obstacles]
        cures = [[str(c.get("options", "")), format_bytes(c.get("growth_bytes")), format_bytes(c.get("peak_bytes")),
                  format_seconds(c.get("time_seconds"))] for c in self.cures]
        for rows, head, caption in ((alive, ["value", "bytes", "share", "made by", ""], "alive when most is"),
                                    (obstacles, ["value", "bytes", "node", "why", "what lifts it"], "in the way of less"),
                                    (cures, ["options", "resident growth", "live", "time"], "tried, and less")):
            if rows:
                parts.append(html_table(head, rows, caption))
        if self.command:
            parts.append(f"<pre>{html.escape(self.command)}</pre>")
        return "<div>" + "".join(parts) + "</div>"
