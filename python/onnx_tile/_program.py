"""The program inside the package: `onnx-tile ...` and `python -m onnx_tile ...` become it. And `onnx-tile-apply`, which is Python."""
import os
import sys
from typing import NoReturn

from ._errors import Error


def program_path() -> str:
    """Where the program lies."""
    return os.environ.get("ONNX_TILE_PROGRAM") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "onnx-tile")


def main() -> NoReturn:
    """Become the program, with this process's arguments; its exit status is the process's."""
    path = program_path()
    sys.stdout.flush()
    try:
        os.execv(path, ["onnx-tile", *sys.argv[1:]])
    except OSError as why:
        print(f"onnx-tile: error: cannot start {path}: {why.strerror}", file=sys.stderr)
        sys.exit(Error.exit_code)


def apply_main() -> int:
    """`onnx-tile-apply`: its exit status. What it needs may not be installed."""
    try:
        from .large._command import main as command
    except ImportError as why:
        print(f"onnx-tile-apply: error: {why}: pip install 'onnx_tile[large]'", file=sys.stderr)
        return Error.exit_code
    return command()
