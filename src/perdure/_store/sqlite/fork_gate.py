"""Close the store's connections while the process forks.

SQLite remembers in the process's memory which file locks it has. A forked child inherits that memory and
not the locks: a connection it opens to the same file takes itself for locked when it is not. The parent,
leaving, would then take itself for the last and remove the log the child still writes to, and all that
the child wrote is lost. So nothing may be open at the moment of a fork; both open anew afterwards.

A use that does not end in time (a fork in a signal handler, in the middle of a commit) is left open. The
child then refuses to open that file.

A signal's handler can raise between any two instructions, also while a use begins or ends. So uses are not counted: one
lasts as long as its object, which the `with` statement alone refers to.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet, ref

from perdure.errors import StoreForked

PATIENCE_SECONDS = 10.0
_BETWEEN_LOOKS = 0.001


class Gate:
    def __init__(self, path: Path, close: Callable[[], None]) -> None:
        self._path, self._close = path, close
        self._uses: set[ref[Use]] = set()
        self._is_shut = False
        # Held by the one who writes, so that it costs a chain of commits next to nothing; and as long as it is shut.
        self.writing = threading.Lock()
        self._has_writing = False
        _gates.add(self)

    def use(self) -> Use:
        """Use the connections in a `with` block: not while the process forks."""
        return Use(self)

    def check(self) -> None:
        """Raises StoreForked: this is a child, and its parent had the file open when it forked."""
        if _inherited and self._path in _inherited:
            raise StoreForked

    def enter(self, use: ref[Use]) -> None:
        self.check()
        while True:
            # First this, then the look: who shuts the gate does it the other way round.
            self._uses.add(use)
            if not self._is_shut:
                return
            self._uses.discard(use)
            time.sleep(_BETWEEN_LOOKS)

    def leave(self, use: ref[Use]) -> None:
        self._uses.discard(use)

    def is_used(self) -> bool:
        return any(use() is not None for use in list(self._uses))

    def shut(self) -> None:
        self._has_writing = self.writing.acquire(timeout=PATIENCE_SECONDS)
        self._is_shut = True
        end = time.monotonic() + PATIENCE_SECONDS
        while self._has_writing and self.is_used():
            if time.monotonic() > end:
                return
            time.sleep(_BETWEEN_LOOKS)
        if self._has_writing:
            self._uses.clear()  # those whose end was interrupted
            self._close()

    def reopen(self) -> None:
        self._is_shut = False
        if self._has_writing:
            self.writing.release()

    def inherit(self) -> None:
        """In the child: what could not be closed must not be opened beside it."""
        if not self._has_writing or self.is_used():
            _inherited.add(self._path)


class Use:
    """One `with` block that uses the connections."""

    __slots__ = ("__weakref__", "_gate", "_ref")

    def __init__(self, gate: Gate) -> None:
        self._gate, self._ref = gate, ref(self)

    def __enter__(self) -> None:
        self._gate.enter(self._ref)

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self._ref)


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
