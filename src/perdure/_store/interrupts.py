"""Keep interruptions away from work that must not be torn: signal handlers are called in the main thread, between any
two instructions, and can raise.

Owns which thread can be interrupted, and how to move work to one that cannot.
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
    """True if signal handlers are called in this thread."""
    return threading.current_thread() is threading.main_thread()


def apart(act: Callable[[], T]) -> T:
    """Run the work where no signal handler can raise. A handler's exception meanwhile is raised when the work is done;
    a second one, at once. The work is carried out all the same."""
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
