"""Close the store's connections while the process forks.

SQLite remembers in the process's memory which file locks it has. A forked child inherits that memory and
not the locks: a connection it opens to the same file takes itself for locked when it is not. The parent,
leaving, would then take itself for the last and remove the log the child still writes to, and all that
the child wrote is lost. So nothing may be open at the moment of a fork; both open anew afterwards.

A use that does not end in time (a fork in a signal handler, in the middle of a commit) is left open. The
child then refuses to open that file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

from perdure.errors import StoreForked

PATIENCE_SECONDS = 10.0


class Gate:
    def __init__(self, path: Path, close: Callable[[], None]) -> None:
        self._path, self._close = path, close
        # One that the same thread may take twice: a signal handler may fork while this thread is at the gate.
        self._mutex = threading.RLock()
        self._moved = threading.Condition(self._mutex)
        self._inside = 0
        self._is_shut = False
        # Held by the one who writes, so that it costs a chain of commits next to nothing; and as long as it is shut.
        self.writing = threading.Lock()
        self._has_writing = False
        _gates.add(self)

    def __enter__(self) -> None:
        """Use the connections: not while the process forks."""
        self.check()
        with self._mutex:
            while self._is_shut:
                self._moved.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            self._inside -= 1
            if self._is_shut:
                self._moved.notify_all()

    def check(self) -> None:
        """Raises StoreForked: this is a child, and its parent had the file open when it forked."""
        if _inherited and self._path in _inherited:
            raise StoreForked

    def shut(self) -> None:
        self._has_writing = self.writing.acquire(timeout=PATIENCE_SECONDS)
        with self._mutex:
            self._is_shut = True
            if self._has_writing and self._moved.wait_for(lambda: not self._inside, PATIENCE_SECONDS):
                self._close()

    def reopen(self) -> None:
        if self._has_writing:
            self.writing.release()
        with self._mutex:
            self._is_shut = False
            self._moved.notify_all()

    def inherit(self) -> None:
        """In the child: what could not be closed must not be opened beside it."""
        if self._inside or not self._has_writing:
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
