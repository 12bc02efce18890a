"""The way into an event loop for the thread that wakes its tasks.

`call_soon_threadsafe` makes a handle for each call, and wakes the loop by a pipe, which a second callback then reads
until it is empty. A door is a kernel counter that the loop watches beside its sockets. The callback that reads it also
resumes the tasks: two system calls for a wake-up, not three, and half the code around them.

A door belongs to its loop, which alone keeps it: it is gone when the loop is closed.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakKeyDictionary, finalize, ref

# Linux has it; elsewhere there are no doors.
_has_counters = hasattr(os, "eventfd")


class Waiter(Protocol):
    def wake(self) -> None: ...


class Door:
    __slots__ = ("__weakref__", "_fd", "_waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiters: deque[Waiter] = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        finalize(self, os.close, self._fd).atexit = False
        loop.add_reader(self._fd, self._open)

    def let_in(self, waiters: Iterable[Waiter]) -> None:
        """Have them resumed on the loop, from any thread. Nothing happens if the loop is closed meanwhile."""
        self._waiters.extend(waiters)
        os.eventfd_write(self._fd, 1)

    def _open(self) -> None:
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return  # it was opened already, by a loop that is run inside one of its own callbacks
        waiters = self._waiters
        for _ in range(len(waiters)):  # those that arrive meanwhile have rung again
            try:
                waiters.popleft().wake()
            except BaseException:  # a task lets Ctrl-C and SystemExit through, and the others must not miss their turn
                os.eventfd_write(self._fd, 1)
                raise


# Not the doors themselves: those who wait there hold the loop, and it would never be let go.
_doors: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Door]] = WeakKeyDictionary()


def door_of(loop: asyncio.AbstractEventLoop) -> Door | None:
    found = _doors.get(loop)
    return None if found is None else found()


def make_door(loop: asyncio.AbstractEventLoop) -> None:
    """Give the loop a door, if it has none and can have one; on its own thread."""
    if _has_counters and door_of(loop) is None:
        try:
            _doors[loop] = ref(Door(loop))
        except NotImplementedError:  # a loop that looks at no descriptors
            return
