"""Take turns at writing to one SQLite file, so that no process starves another.

SQLite's own write lock goes to the process that asks at the right moment; a process that writes without pause can keep
it for seconds. Two file locks make a turnstile: the next in line holds `next` while it waits for `main`. A process that
has just finished must pass `next` again, behind those that waited.

The locks are the kernel's and go with the process. They decide only who is first: that two never write
at once is still SQLite's own lock.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN
from pathlib import Path

from perdure.errors import StoreBusy

_AT_ONCE = LOCK_EX | LOCK_NB
# Not fcntl.flock: it gives the interpreter's lock away for a microsecond, and a busy event loop keeps it for 5 ms.
# Not 0 when another has the lock.
_flock = ctypes.PyDLL(None, use_errno=True).flock


class Turnstile:
    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._next = self._main = -1

    def open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        # Beside the store, as its log is, and not beside a link to it: else who comes by the link takes other turns.
        beside = os.path.realpath(self._path)
        # Two descriptions of two files: flock belongs to the open file, so each needs its own.
        self._next = os.open(f"{beside}.next", flags, 0o600)
        self._main = os.open(f"{beside}.turn", flags, 0o600)

    def __enter__(self) -> None:
        """It is this process's turn, as long as the block lasts."""
        if _flock(self._next, _AT_ONCE):
            self._wait_for(self._next)
        try:
            if _flock(self._main, _AT_ONCE):
                self._wait_for(self._main)
        finally:
            _flock(self._next, LOCK_UN)

    def __exit__(self, *_: object) -> None:
        _flock(self._main, LOCK_UN)

    def _wait_for(self, fd: int) -> None:
        end, pause = time.monotonic() + self._patience, 0.0001
        while (problem := ctypes.get_errno()) == errno.EWOULDBLOCK:
            time.sleep(pause)
            if not _flock(fd, _AT_ONCE):
                return
            if time.monotonic() >= end:
                raise StoreBusy(
                    f"another process has held {self._path} for {self._patience:.0f} s",
                    kept="all that was acknowledged; this write changed nothing",
                    do="look for a stopped process that has the file open (fuser, lsof), and try again",
                )
            pause = min(pause * 1.3, 0.002)
        raise OSError(problem, os.strerror(problem), str(self._path))

    def close(self) -> None:
        for fd in (self._next, self._main):
            if fd >= 0:
                os.close(fd)
        self._next = self._main = -1
