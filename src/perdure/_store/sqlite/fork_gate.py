"""Close the store's connections while the process forks.

SQLite remembers in the process's memory which file locks it has. A forked child inherits that memory and
not the locks: a connection it opens to the same file takes itself for locked when it is not. The parent,
leaving, would then take itself for the last and remove the log the child still writes to, and all that
the child wrote is lost. So nothing may be open at the moment of a fork; both open anew afterwards.

A use that does not end in time (a fork in a signal handler, in the middle of a commit) is left open. The
child then refuses to open that file.

A signal's handler can raise between any two instructions, also while a use begins or ends. So uses are not counted.
Each is a lock that the interpreter itself takes and gives back in a `with` statement, which no handler can interrupt
half-way.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

from perdure.errors import StoreForked

PATIENCE_SECONDS = 10.0
_BETWEEN_LOOKS = 0.001


class _OfThread(threading.local):
    """The locks of one thread: more than one if a signal's handler uses the store in the middle of a use."""

    def __init__(self) -> None:
        self.locks: list[threading.Lock] = []


class Gate:
    def __init__(self, path: Path, close: Callable[[], None]) -> None:
        self._path, self._close = path, close
        self._of_thread = _OfThread()
        self._locks: WeakSet[threading.Lock] = WeakSet()  # of all threads
        self._is_shut = False
        # Held by the one who writes, so that it costs a chain of commits next to nothing; and as long as it is shut.
        self.writing = threading.Lock()
        self._held: list[threading.Lock] = []  # while it is shut
        self._is_left_open = False
        _gates.add(self)

    def use(self) -> threading.Lock:
        """Use the connections in a `with` block of this lock: not while the process forks."""
        self.check()
        while self._is_shut:
            time.sleep(_BETWEEN_LOOKS)
        for lock in self._of_thread.locks:
            if not lock.locked():
                return lock
        return self._new_lock()

    def _new_lock(self) -> threading.Lock:
        lock = threading.Lock()
        # First this, then the look: who shuts the gate does it the other way round.
        self._locks.add(lock)
        while self._is_shut:
            time.sleep(_BETWEEN_LOOKS)
        self._of_thread.locks.append(lock)
        return lock

    def check(self) -> None:
        """Raises StoreForked: this is a child, and its parent had the file open when it forked."""
        if _inherited and self._path in _inherited:
            raise StoreForked

    def shut(self) -> None:
        is_free = self._hold(self.writing, time.monotonic() + PATIENCE_SECONDS)
        self._is_shut = True
        end = time.monotonic() + PATIENCE_SECONDS
        self._is_left_open = not (is_free and all(self._hold(lock, end) for lock in list(self._locks)))
        if not self._is_left_open:
            self._close()

    def _hold(self, lock: threading.Lock, end: float) -> bool:
        is_free = lock.acquire(timeout=max(end - time.monotonic(), 0))
        if is_free:
            self._held.append(lock)
        return is_free

    def reopen(self) -> None:
        held, self._held = self._held, []
        self._is_shut = False
        for lock in reversed(held):  # the writer's last: it lets in who shuts it next
            lock.release()

    def inherit(self) -> None:
        """In the child: what could not be closed must not be opened beside it."""
        if self._is_left_open:
            _inherited.add(self._path)


_gates: WeakSet[Gate] = WeakSet()
_inherited: set[Path] = set()


def _before_fork() -> None:
    for gate in list(_gates):
        gate.shut()


def _in_parent() -> None:
    for gate in list(_gates):
        gate.reopen()


def _in_child() -> None:
    for gate in list(_gates):
        gate.inherit()
    _gates.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
