"""Calls of the library that may take long: they tell how far they are, end after a time, and by Ctrl-C."""
import ctypes
import signal
import sys
import threading
import weakref
from ctypes import c_char_p, c_double, c_int, c_void_p
from types import FrameType
from typing import Callable, List, Optional, Tuple

from ._errors import Cancelled
from ._library import Handle, number_of

Progress = Callable[[str, float], object]

_TELL = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_double)
_YEARS = 1e9  # seconds that are no time-out
# The module of C beneath: Python's makes enums of what it returns, which takes a third of a short run.
_signals = sys.modules.get("_signal", signal)


class LongCalls:
    """Long calls of one handle, one at a time.

    While the library works, no line of Python runs, and so no signal handler: the library calls `_tell` some 50 times a second, in the
    thread that made the call, and handlers run there. That of Ctrl-C only notes that it is to end, as nobody takes what a handler raises
    inside of a call from C; the one that was there before is called when the library is back."""

    def __init__(self, handle: Handle) -> None:
        """handle: whose calls they are; freed before this object."""
        self._handle = handle
        self._progress: Optional[Progress] = None
        self._raised: Optional[BaseException] = None
        self._signals: List[Tuple[int, Optional[FrameType]]] = []
        me = weakref.ref(self)  # no cycle: what is in one is freed in any order

        def tell(_of: Optional[int], stage: bytes, done: float) -> int:
            calls = me()
            return 0 if calls is None else calls._tell(stage, done)
        self._function = _TELL(tell)
        handle.call("set_progress", ctypes.cast(self._function, c_void_p), None)

    def _tell(self, stage: bytes, done: float) -> int:
        try:
            if self._progress is not None and self._progress(stage.decode(), done) is False:
                return 1
        except BaseException as why:  # it comes out of the call
            self._raised = why
            return 1
        return 1 if self._signals else 0

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self._signals.append((number, frame))
        self._handle.cancel()

    def call(self, name: str, timeout: Optional[float], progress: Optional[Progress]) -> None:
        """Call the handle's function `name`. Raises TimedOut after `timeout` seconds; Cancelled; and what `progress` raises."""
        self._handle.call("set_timeout", 0.0 if timeout is None else number_of(timeout, "timeout", 1e-9, _YEARS))
        self._progress, self._raised = progress, None
        self._signals = []
        before = _signals.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        if callable(before):
            _signals.signal(signal.SIGINT, self._note)
        ended: Optional[Cancelled] = None
        try:
            self._handle.call(name)
        except Cancelled as why:
            ended = why
        finally:
            self._progress = None
            if callable(before):
                _signals.signal(signal.SIGINT, before)
        if self._signals and callable(before):
            before(*self._signals[0])  # raises KeyboardInterrupt, as a rule
        if ended is not None:
            raise self._raised or ended
