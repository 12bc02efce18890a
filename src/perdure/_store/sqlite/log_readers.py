"""Find the processes that keep SQLite's write-ahead log from being begun anew.

A process that reads has a mark in the log's index (`-shm`): it reads the log up to there. Until its transaction ends,
nothing behind the mark can be copied into the file, and the log grows with each commit. The lock on the mark tells
whose it is.

Owns the question "who reads an old state of the file?". Linux only: elsewhere the answer is empty.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import NamedTuple

# Of the index: the last frame of the log; how far each of five readers reads; where their locks are.
_LAST, _MARKS = Struct("=I"), Struct("=5I")
_LAST_AT, _MARKS_AT, _LOCKS_AT = 16, 100, 123


class Reader(NamedTuple):
    """A process that reads the store as it was some time ago."""

    pid: int
    mark: int  # the last frame of the log that it reads
    frames: int  # the last frame there is


def find_readers(path: Path) -> list[Reader]:
    """The processes that read less than all of the log at this moment, but for this one."""
    try:
        with path.with_name(path.name + "-shm").open("rb") as file:
            number, index = os.fstat(file.fileno()).st_ino, file.read(_MARKS_AT + _MARKS.size)
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except (OSError, ValueError):
        return []
    if len(index) < _MARKS_AT + _MARKS.size:
        return []
    (frames,), marks = _LAST.unpack_from(index, _LAST_AT), _MARKS.unpack_from(index, _MARKS_AT)
    found = []
    for line in locks.splitlines():
        # 1: POSIX ADVISORY READ 4711 08:01:1234 124 124
        _, kind, _, way, pid, place, first, last, *_ = (*line.replace("->", "").split(), *[""] * 8)
        if (kind, way) != ("POSIX", "READ") or place.rpartition(":")[2] != str(number) or not last.isdigit():
            continue
        for at in range(int(first) - _LOCKS_AT, int(last) - _LOCKS_AT + 1):
            # The first mark stands for the file without its log: it, too, keeps the log from being begun anew.
            if 0 <= at < len(marks) and (mark := marks[at] if at else 0) < frames and int(pid) not in (0, os.getpid()):
                found.append(Reader(int(pid), mark, frames))
    return sorted(found)


def command_of(pid: int) -> str:
    """The command line of a process, as far as it can be read."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ")
    except OSError:
        return "unknown"
    return words.decode(errors="replace")[:80] or "unknown"
