"""Wake those who wait for a write: tasks of event loops, and blocked threads.

Owns what a waiter is, and how many of them are woken at once. When they are is in committer.py.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from operator import attrgetter

from msgspec import Struct

from perdure._store.loop_waker import door_of, make_door

log = logging.getLogger("perdure.committer")


class Waiting(Struct, eq=False):
    """A task of an event loop that waits for a write: all that asyncio asks of a future, and nothing more.

    A finished future resumes its task in the loop's next round. Here the callback that the committer sends to the loop
    resumes the task directly: a round less for each awaited write.
    """

    loop: asyncio.AbstractEventLoop
    _asyncio_future_blocking: bool = True  # to be yielded at once
    _callback: Callable[[Waiting], object] | None = None
    _context: Context | None = None
    _is_cancelled: bool = False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.loop

    def add_done_callback(self, callback: Callable[[Waiting], object], *, context: Context | None = None) -> None:
        # An empty context counts as false, and is the task's own all the same.
        self._callback, self._context = callback, copy_context() if context is None else context

    def done(self) -> bool:
        return self._callback is None

    def result(self) -> None:
        if self._is_cancelled:
            raise asyncio.CancelledError

    def cancel(self, msg: object = None) -> bool:
        """The task is cancelled: it continues soon, without the write, which is carried out all the same."""
        callback, self._callback = self._callback, None
        if callback is None:
            return False
        self._is_cancelled = True
        self.loop.call_soon(callback, self, context=self._context)
        return True

    def wake(self) -> None:
        """The write is done: resume the task, here and now, on its loop."""
        callback, self._callback = self._callback, None
        if callback is not None and self._context is not None:
            self._context.run(callback, self)


class Blocked:
    """A thread that waits for a write, without a loop."""

    __slots__ = ("_lock",)
    loop = None

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        self._lock.acquire()

    def wake(self) -> None:
        self._lock.release()


Waiter = Waiting | Blocked
_loop_of = attrgetter("loop")


def wake_all(waiters: Sequence[Waiter]) -> None:
    """Wake them, from any thread; one call per event loop."""
    loops = set(map(_loop_of, waiters))
    for loop in loops:
        theirs = waiters if len(loops) == 1 else [waiter for waiter in waiters if waiter.loop is loop]
        if loop is None:
            for waiter in theirs:
                waiter.wake()
        else:
            door = door_of(loop)
            if door is not None:
                door.let_in(theirs)
                continue
            try:
                loop.call_soon_threadsafe(_wake_first, loop, theirs)
            except RuntimeError:  # the loop was closed meanwhile, so there is nothing to wake
                log.debug("an event loop was closed while %d writes were under way", len(theirs))


def _wake_first(loop: asyncio.AbstractEventLoop, waiting: Sequence[Waiter]) -> None:
    make_door(loop)
    wake_here(loop, waiting)


def wake_here(loop: asyncio.AbstractEventLoop, waiting: Sequence[Waiter]) -> None:
    """Wake them on their loop, by one of its callbacks: not inside a task."""
    for number, one in enumerate(waiting, 1):
        try:
            one.wake()
        except BaseException:  # a task lets Ctrl-C and SystemExit through, and the others must not miss their turn
            loop.call_soon(wake_here, loop, waiting[number:])
            raise
