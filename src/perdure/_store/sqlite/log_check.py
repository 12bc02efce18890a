"""Notice that SQLite has left out the end of a write-ahead log.

When no process has the file open, the next one reads the log up to the first frame whose checksum is wrong, and takes
the rest for a transaction that was never finished. That is right for the last transaction: a power cut or a kill can
tear it, and a process that is committing has written its frames before SQLite counts them. Each transaction is synced
before the next one begins. So a transaction behind a wrong frame was acknowledged if another one continues it, and
that wrong frame is damaged.

What continues a transaction begins with the checksum of its last frame. Frames that a power cut left of a longer
transaction, and that a shorter one was then written over, do not: they lie behind it and continue something else.

Owns the question "is the end of the log missing?". Not seen: damage inside the last transaction, which cannot be told
from a torn one, and damage of more than a few bytes where the last transaction but one ends.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import NamedTuple

import apsw

_HEADER, _FRAME, _CHECKSUM = Struct(">8I"), Struct(">4I"), Struct(">2I")
_FRAME_HEADER = 24
_MAGIC = 0x377F0682  # the lowest bit says in which byte order checksums are made
_MASK = 0xFFFFFFFF


class Log(NamedTuple):
    """The content of a write-ahead log, by its headers alone."""

    is_damaged: bool  # its own header is
    frames: int  # the last one that was written since the log was last begun anew
    commits: list[int]  # those that end a transaction
    salts: tuple[int, ...] = ()  # others each time the log is begun anew


def read_log(path: Path) -> Log | None:
    """None when there is none, or nothing is in it."""
    try:
        log = os.open(path.with_name(path.name + "-wal"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        header = os.pread(log, _HEADER.size, 0)
        size = os.fstat(log).st_size
        if len(header) < _HEADER.size or not any(header):
            return None
        magic, _, page, _, *salts, _, _ = _HEADER.unpack(header)
        if magic & ~1 != _MAGIC or _checksum((0, 0), header[:24], big=bool(magic & 1)) != _own_checksum(header, 24):
            return Log(size > _HEADER.size + _FRAME_HEADER, 0, [])
        width, last, commits = _FRAME_HEADER + page, 0, []
        for number in range(1, (size - _HEADER.size) // width + 1):
            _, pages, *own = _FRAME.unpack(os.pread(log, _FRAME.size, _HEADER.size + (number - 1) * width))
            # One is enough: a flipped bit in the other is what is looked for. Older frames have neither.
            if own[0] == salts[0] or own[1] == salts[1]:
                last = number
                if pages:
                    commits.append(number)
        return Log(False, last, commits, tuple(salts))
    finally:
        os.close(log)


def is_continued(path: Path, number: int) -> bool:
    """Does the frame behind this one begin with its checksum, as it is stored or as its content has it?"""
    with path.with_name(path.name + "-wal").open("rb") as log:
        header = log.read(_HEADER.size)
        magic, _, page, *_ = _HEADER.unpack(header)
        width, big = _FRAME_HEADER + page, bool(magic & 1)
        log.seek(_HEADER.size + max(number - 2, 0) * width)
        before = log.read(width) if number > 1 else b""
        this, behind = log.read(width), log.read(width)
    if len(behind) < width:
        return False
    seed = _own_checksum(before, 16) if before else _own_checksum(header, 24)
    begins = _own_checksum(this, 16), _frame_checksum(seed, this, big=big)
    return any(_frame_checksum(one, behind, big=big) == _own_checksum(behind, 16) for one in begins)


def _own_checksum(content: bytes, at: int) -> tuple[int, int]:
    one, two = _CHECKSUM.unpack_from(content, at)
    return one, two


def _frame_checksum(seed: tuple[int, int], frame: bytes, *, big: bool) -> tuple[int, int]:
    return _checksum(seed, frame[:8] + frame[_FRAME_HEADER:], big=big)


def _checksum(seed: tuple[int, int], content: bytes, *, big: bool) -> tuple[int, int]:
    words = Struct(f"{'>' if big else '<'}{len(content) // 4}I").unpack(content)
    one, two = seed
    for at in range(0, len(words), 2):
        one = (one + words[at] + two) & _MASK
        two = (two + words[at + 1] + one) & _MASK
    return one, two


def what_is_missing(path: Path, connection: apsw.Connection) -> str:
    """The transactions in the log that SQLite does not read; empty if it reads all that were ever acknowledged.

    The log is looked at once the connection has it open, so that no other process can clear it away as the last one
    to close it. What is found missing must still be missing at a second look: others may begin the log anew meanwhile.
    """
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # only a read has the log looked at
    while True:
        log = read_log(path)
        missing = "" if log is None else _missing_from(path, log, connection)
        if not missing or read_log(path) == log:
            return missing


def _missing_from(path: Path, log: Log, connection: apsw.Connection) -> str:
    if log.is_damaged:
        return "the header of its write-ahead log is damaged, and nothing in the log can be read"
    row = connection.execute("PRAGMA wal_checkpoint(NOOP)").fetchall()[0]
    read = int(row[1])  # type: ignore[arg-type]
    ends = [number for number in log.commits if number > read]
    acknowledged = [end for end, _ in pairwise(ends) if is_continued(path, end)]
    if not acknowledged:
        return ""
    return (
        f"its write-ahead log is damaged after frame {read:,} of {log.frames:,}: "
        f"at least {ends.index(acknowledged[-1]) + 1:,} transactions that were written can no longer be read"
    )
