"""Keep from the main thread what must not be torn: a signal's handler is called there, between any two instructions,
and may raise.

Owns who may be interrupted, and how to have something done by a thread that cannot be.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# `Thread.start` waits in Python for the thread to have begun, and an interrupt there leaves one that never begins. This
# is one call, which is made or not. RuntimeError: no thread can be started, as when the interpreter is taken down.
start_apart = _thread.start_new_thread


def is_interruptible() -> bool:
    """Whether the handlers of signals are called in this thread."""
    return threading.current_thread() is threading.main_thread()


def apart(act: Callable[[], T]) -> T:
    """Do it where no signal's handler can raise. What one raises here meanwhile is raised when it is done; what it
    raises the second time, at once: it is carried out all the same."""
    if not is_interruptible():
        return act()
    results: list[T] = []
    errors: list[BaseException] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def carry_out() -> None:
        try:
            results.append(act())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.release()

    try:
        start_apart(carry_out, ())
    except RuntimeError:
        return act()
    raised: BaseException | None = None
    while not (results or errors):
        try:
            ended.acquire()
        except BaseException as error:
            if raised is not None:
                raise
            raised = error
    if raised is not None:
        raise raised
    if errors:
        raise errors[0]
    return results[0]
