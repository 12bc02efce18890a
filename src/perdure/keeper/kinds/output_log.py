"""The output of a unit, by absolute offset, of which the last part is kept.

The log is a file that only grows; its older pages are given back to the system, so an offset is always the same place
in the file. The kernel moves bytes into it (splice), from the terminal to a pipe and from the pipe to the file, and the
end of the log is the file's own position. The anchor holds all three too: wherever the keeper is killed, each byte is
in exactly one of them, and the next keeper continues with none lost and none twice. Without splice (macOS), bytes pass
through the keeper, and a kill between reading and writing loses a few.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from typing import NamedTuple

from perdure.keeper.core import Anchored
from perdure.keeper.process import memory_file

KEPT = 1 << 20
# Old pages go when so many bytes more than asked for are there.
_SLACK = 1 << 18
_CHUNK = 1 << 16
_ALL_A_TERMINAL_HAS = 1024  # a shorter read means that there is no more just now
_PUNCH_HOLE = 0x1 | 0x2  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_NONBLOCK = 0x02  # SPLICE_F_NONBLOCK
_CAN_SPLICE = hasattr(os, "splice")


class Part(NamedTuple):
    """Some output: `gap` bytes before `start` are no longer there."""

    start: int
    gap: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class OutLog:
    def __init__(self, log: int, pipe: tuple[int, int], kept: int = KEPT) -> None:
        self._log, (self._out, self._in), self._kept = log, pipe, kept
        self.end = os.lseek(log, 0, os.SEEK_CUR)
        self._first = max(0, self.end - kept - _SLACK)
        if _CAN_SPLICE:
            os.set_blocking(self._out, False)
            self._empty_pipe()

    @classmethod
    def create(cls, anchored: Anchored, name: str, kept: int = KEPT, path: str | None = None) -> OutLog:
        """An empty one that outlives the keeper; in memory, or in a file that outlives the machine's running."""
        log = memory_file() if path is None else os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        out, into = os.pipe()
        os.set_blocking(into, False)
        for part, fd in (("log", log), ("out", out), ("in", into)):
            anchored.put(f"{name}/{part}", fd)
        return cls(log, (out, into), kept)

    @classmethod
    def recover(cls, anchored: Anchored, name: str, kept: int = KEPT) -> OutLog:
        """The one a former keeper has left, with what was on its way into it.

        Raises:
            KeyError: there is none.
        """
        log, out, into = (anchored.get(f"{name}/{part}")[0] for part in ("log", "out", "in"))
        return cls(log, (out, into), kept)

    def forget(self, anchored: Anchored, name: str) -> None:
        for part, fd in (("log", self._log), ("out", self._out), ("in", self._in)):
            anchored.drop(f"{name}/{part}")
            os.close(fd)

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def take_from(self, source: int) -> int | None:
        """Move in what `source` has now, and say how much; None when it has ended. A terminal or a pipe, which does
        not block."""
        start, is_over = self.end, False
        try:
            while self.end - start < 4 * _CHUNK:
                moved = self._move(source)
                is_over = not moved
                if moved < _ALL_A_TERMINAL_HAS:  # all there was; of more one is told
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:  # how a terminal reports that no process has it open
                raise
            is_over = True
        if is_over and self.end == start:
            return None
        self._give_back()
        return self.end - start

    def _move(self, source: int) -> int:
        if not _CAN_SPLICE:
            data = os.read(source, _CHUNK)
            self.write(data)
            return len(data)
        moved = waiting = os.splice(source, self._in, _CHUNK, flags=_NONBLOCK)
        while waiting:
            stored = os.splice(self._out, self._log, waiting, flags=_NONBLOCK)
            self.end += stored
            waiting -= stored
        return moved

    def _empty_pipe(self) -> None:
        """Bytes a former keeper had taken and not stored."""
        with contextlib.suppress(BlockingIOError):
            while stored := os.splice(self._out, self._log, _CHUNK, flags=_NONBLOCK):
                self.end += stored

    def write(self, data: bytes) -> None:
        while data:
            written = os.write(self._log, data)
            self.end += written
            data = data[written:]

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    @property
    def begin(self) -> int:
        """The oldest byte that is kept."""
        return max(0, self.end - self._kept)

    def read(self, start: int, most: int = 4 * _CHUNK) -> Part:
        """The output from `start` on."""
        begin = max(start, self.begin)
        data = os.pread(self._log, min(most, max(0, self.end - begin)), begin)
        return Part(begin, max(0, begin - start), data)

    def _give_back(self) -> None:
        if self.end - self._kept - self._first > _SLACK:
            first = (self.end - self._kept) & ~4095
            give_back(self._log, self._first, first - self._first)
            self._first = first


def give_back(fd: int, offset: int, length: int) -> None:
    """Give these pages of a file back to the system; offsets stay."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate64", None)
    if fallocate is None or length <= 0:
        return
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    fallocate(fd, _PUNCH_HOLE, offset, length)  # a file system that cannot keeps the bytes
