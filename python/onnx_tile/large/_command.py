"""onnx-tile-apply: `apply` as a command."""
import argparse
import sys
import time
from typing import Any, List, Optional

from .._errors import Error, UsageError
from .._library import version
from .._result import format_bytes
from ._apply import Applied, Progress, apply
from ._packages import need


def _ratio(text: str) -> float:
    """"0.5" or "1/255"."""
    above, _, below = text.partition("/")
    try:
        return float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"'{text}' is no number and no quotient such as 1/255") from None


def _rows(text: str) -> List[int]:
    """"1024" or "512,1024"."""
    try:
        return [int(n) for n in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of rows such as 512,1024") from None


def _option(text: str) -> "tuple[str, Any]":
    """"compress=deflate"; whole numbers are numbers."""
    name, found, value = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, int(value) if value.lstrip("-").isdigit() else value


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="onnx-tile-apply", description="Run a model on a file of any size, part by part: what is written is what "
                                "the model gives on the whole, to the bit. A run that was killed goes on where it was.")
    p.add_argument("model", metavar="MODEL", help="an .onnx file")
    p.add_argument("source", metavar="SOURCE", help="a .npy, .zarr, .tif or .tiff file")
    p.add_argument("target", metavar="TARGET", help="likewise; appears when all of it is there")
    p.add_argument("--budget", default="2GB", metavar="SIZE", help="memory of all workers and this process (default: %(default)s)")
    who = p.add_mutually_exclusive_group()
    who.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each processor; 0: this one)")
    who.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, tcp://HOST:PORT: its workers see the same files")
    p.add_argument("--chunk", type=_rows, metavar="N[,N...]", help="rows of a chunk along each axis that is cut (default: by the budget)")
    p.add_argument("--scale", type=_ratio, metavar="X", help="inputs are multiplied by it, e.g. 1/255")
    p.add_argument("--dtype", metavar="TYPE", help="of the target, e.g. uint8")
    p.add_argument("--out-scale", type=_ratio, metavar="X", help="results are multiplied by it")
    p.add_argument("--output", metavar="NAME", help="the model's output (default: the first)")
    p.add_argument("--option", type=_option, action="append", default=[], metavar="NAME=VALUE", help="of the target, e.g. compress=deflate")
    p.add_argument("--runtime", default="onnxruntime", metavar="NAME", help="onnxruntime (default) or engine")
    p.add_argument("--threads", type=int, default=1, metavar="N", help="of the runtime in each worker (default: 1)")
    p.add_argument("--retries", type=int, default=3, metavar="N", help="of a chunk whose worker died (default: 3)")
    p.add_argument("--axes", metavar="AXES", help="of the source's dimensions, e.g. YXC (of N, C and T, YX or ZYX)")
    p.add_argument("--store", default="auto", metavar="WHAT", help="values that passes write for later ones: auto (default), never, always")
    p.add_argument("--untiled", action="store_true", help="do not tile the model inside of chunks")
    p.add_argument("--fresh", action="store_true", help="begin anew, and replace a target that is there")
    p.add_argument("--other-bits", default="refuse", metavar="WHAT", help="refuse (default) or tell of workers that compute other bits")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    p.add_argument("--version", action="version", version=f"onnx-tile {version}")
    return p


class _Bar:
    """Progress on a terminal, twice a second at the most."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, p: Progress) -> None:
        now = time.monotonic()
        if now < self._next and p.chunks < p.total:
            return
        self._next = now + 0.5
        end = "\n" if p.chunks == p.total else ""
        print(f"\r{p.chunks} of {p.total} chunks, {p.seconds:.0f} s, workers at most {format_bytes(p.peak_bytes)} ", end=end,
              file=sys.stderr, flush=True)


def _run(a: argparse.Namespace) -> Applied:
    options = {"budget": a.budget, "workers": a.workers, "resume": not a.fresh, "runtime": a.runtime, "threads": a.threads,
               "chunk": a.chunk, "tiled": not a.untiled, "output": a.output, "scale": a.scale, "out_scale": a.out_scale,
               "dtype": a.dtype, "store": a.store, "axes": a.axes, "target_options": dict(a.option), "retries": a.retries, "other_bits": a.other_bits,
               "progress": _Bar() if sys.stderr.isatty() and not a.quiet else None}
    if a.scheduler is None:
        return apply(a.model, a.source, a.target, **options)
    try:
        client = need("distributed").Client(a.scheduler, timeout=10)
    except (OSError, ValueError) as why:
        raise UsageError(f"--scheduler {a.scheduler}: {' '.join(str(why).split())}") from None
    with client:
        return apply(a.model, a.source, a.target, executor=client, **options)


def main(arguments: Optional[List[str]] = None) -> int:
    """The command; its exit status, which is that of the program for the same kind of failure."""
    a = _parser().parse_args(arguments)
    try:
        done = _run(a)
    except (Error, ImportError) as why:
        print(f"onnx-tile-apply: error: {why}", file=sys.stderr)
        return getattr(why, "exit_code", Error.exit_code)
    except KeyboardInterrupt:
        print("onnx-tile-apply: interrupted: the same command goes on where it was", file=sys.stderr)
        return 130
    if not a.quiet:
        print(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
