"""The remaining writes of a process that ends: at exit and by SIGTERM, never in the child of a fork."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
import time
from typing import Protocol

log = logging.getLogger("perdure.committer")


class Flushed(Protocol):
    """An object with writes that must be on disk before the process ends."""

    def flush(self) -> None: ...

    def mark_forked(self) -> None: ...


alive: set[Flushed] = set()


def _flush_all() -> None:
    for committer in list(alive):
        try:
            committer.flush()
        except Exception:
            log.exception("could not commit what was queued at exit")


_looked_at_sigterm = float("-inf")


def flush_on_sigterm() -> None:
    """Have SIGTERM commit the queued writes before it ends the process, unless another handler is set.

    Every attempt asks for it; looking costs more than it is worth more often than once a second.
    """
    global _looked_at_sigterm
    now = time.monotonic()
    if now - _looked_at_sigterm < 1 or threading.current_thread() is not threading.main_thread():
        return
    _looked_at_sigterm = now
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, _frame: object) -> None:
    # Not in the handler itself: it may have interrupted this very thread while it held the queue's mutex.
    signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_flush_and_end, args=(number,), name="perdure-last-flush").start()


def _flush_and_end(number: int) -> None:
    _flush_all()
    os.kill(os.getpid(), number)


def _after_fork() -> None:
    for committer in alive:
        committer.mark_forked()
    alive.clear()


atexit.register(_flush_all)

os.register_at_fork(after_in_child=_after_fork)
