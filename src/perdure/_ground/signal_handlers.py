"""Exceptions that a signal handler raises in the middle of other code: recognize them, and keep them from breaking an
event loop.

A handler is called in the main thread between any two instructions. An event loop does not survive an exception there:
asyncio attributes it to the callback it was about to call, and a task whose wake-up is lost waits for ever.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

_PERDURE = str(Path(__file__).parents[1]) + os.sep
_PYTHON = (*(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")), "<frozen ")
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_SIGNALS = [int(number) for number in signal.Signals if number < getattr(signal, "SIGRTMIN", signal.NSIG)]
# Without the enumerations, which cost ten times as much.
_handler_of: Callable[[int], Any] = getattr(signal, "_signal", signal).getsignal


def was_raised_by_a_handler(error: BaseException) -> bool:
    """True if this error was raised by a signal handler that interrupted the code here."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


class Deferred:
    """In this block, an event loop's: what a handler raises while perdure or asyncio is at work is raised at its end.

    The work is told, so that it ends soon. An exception that a handler raises in foreign code is raised there, and so
    is the second one. SIGINT is left to asyncio if Python's own handler would be called.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._tell: Callable[[], object] | None = None
        self._is_over = False
        self._replaced: list[tuple[int, Any, Any]] = []

    def tell(self, act: Callable[[], object]) -> None:
        """Have this called when a handler raises, or now if one has."""
        self._tell = act
        if self.error is not None:
            act()

    def __enter__(self) -> Deferred:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = _handler_of(number)
                if callable(handler) and handler is not signal.default_int_handler:
                    mine = self._deferring(handler)
                    self._replaced.append((number, mine, handler))
                    signal.signal(number, mine)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over = True
        for number, mine, handler in self._replaced:
            if _handler_of(number) is mine:  # the code inside may have set another one
                signal.signal(number, handler)
        if self.error is not None and self.error is not error:
            raise self.error from (None if isinstance(error, asyncio.CancelledError) else error)

    def _deferring(self, handler: Callable[[int, FrameType | None], object]) -> Any:
        def call(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as error:
                if self._is_over or self.error is not None or not _is_our_work(frame):
                    raise
                self.error = error
                if self._tell is not None:
                    self._tell()

        return call


def _is_our_work(frame: FrameType | None) -> bool:
    """True if perdure's code is running here, or library code that it called."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_PERDURE):
            return True
        if not file.startswith(_PYTHON) or _INSTALLED in file:
            return False
        frame = frame.f_back
    return False
