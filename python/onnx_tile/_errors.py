"""Exceptions: one for each way in which the program ends, with its one line."""
import re


class Error(Exception):
    """A call failed; str() is the line that the program would print. `exit_code` is the status that it would end with."""

    exit_code = 4


class ModelError(Error, ValueError):
    """The model, or another file that was given, is wrong (exit 1)."""

    exit_code = 1


class ModelNotFound(ModelError, FileNotFoundError):
    """There is no such file (exit 1)."""


class UsageError(Error, ValueError):
    """An argument is wrong, or arguments do not go together (exit 2)."""

    exit_code = 2


class BudgetError(Error):
    """A budget or a limit cannot be kept: required, available, excess (exit 3)."""

    exit_code = 3


class SystemFailure(Error, OSError):
    """Reading or writing failed (exit 4)."""


class OutOfMemory(Error, MemoryError):
    """Memory ran out (exit 4)."""


class Cancelled(Error):
    """A run or a plan was cancelled, by `Session.cancel` or by what `progress` raised or returned (exit 6)."""

    exit_code = 6


class TimedOut(Error, TimeoutError):
    """A run or a plan took longer than `timeout` (exit 7)."""

    exit_code = 7


# By status of the library, which are the program's exit codes but for the last three.
_BY_STATUS = {1: ModelError, 2: UsageError, 3: BudgetError, 4: SystemFailure, 5: OutOfMemory, 6: Cancelled, 7: TimedOut}


# What the program's options are called here. Longer ones come first where one begins with another.
_ARGUMENTS = {"--shape": "shapes", "--design": "design", "--memory-budget": "budget", "--max-tensor": "max_tensor", "--max-slowdown": "max_slowdown",
              "--best-effort": "best_effort=True", "--bit-exact": "bit_exact=True", "--force": "force=True", "--single-file": "single_file=True",
              "--goal memory": 'goal="memory"', "--goal time": 'goal="time"', "--runtime": "runtime", "--target": "target", "--threads": "threads",
              "--ort-operators": "ort_operators", "--l2": "fast_memory", "--range": "ranges", "--verify": "verify=True"}
_OPTION = re.compile("(?:" + "|".join(sorted(_ARGUMENTS, key=len, reverse=True)) + r")(?![\w-])(?: INPUT=D,D,\.\.\.)?")


def argument_names(text: str) -> str:
    """The text of the program with its options named as arguments; commands for a shell stay."""
    lines = (line if line.lstrip().startswith("onnx-tile ") else _OPTION.sub(lambda found: _ARGUMENTS[found[0].split(" INPUT")[0]], line)
             for line in text.split("\n"))
    return "\n".join(lines)


def error_of(status: int, line: str) -> Error:
    """The exception for a status of the library that is not 0. Options that the line names are named as arguments."""
    return _BY_STATUS.get(status, Error)(argument_names(line) or "no reason given")
