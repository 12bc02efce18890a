"""Notice that SQLite has left out the end of a write-ahead log.

When no process has the file open, the next one reads the log up to the first frame whose checksum is wrong, and takes
the rest for a transaction that was never finished. That is right for the last transaction: a power cut or a kill can
tear it, and a process that is committing has written its frames before SQLite counts them. Each transaction is synced
before the next one begins, so whole transactions behind a wrong frame were acknowledged, and that frame is damaged.

Owns the question "is the end of the log missing?". Damage inside the last transaction cannot be told from a torn one.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import NamedTuple

import apsw

_HEADER, _FRAME = Struct(">8I"), Struct(">4I")
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
        if magic & ~1 != _MAGIC or not _is_whole(header, big=bool(magic & 1)):
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


def _is_whole(header: bytes, *, big: bool) -> bool:
    words = Struct(">8I" if big else "<8I").unpack(header)
    one = two = 0
    for at in range(0, 6, 2):
        one = (one + words[at] + two) & _MASK
        two = (two + words[at + 1] + one) & _MASK
    return (one, two) == _HEADER.unpack(header)[6:]


def what_is_missing(path: Path, connection: apsw.Connection) -> str:
    """The transactions in the log that SQLite does not read; empty if it reads all that were ever acknowledged.

    The log is looked at once the connection has it open, so that no other process can clear it away as the last one
    to close it. What is found missing must still be missing at a second look: others may begin the log anew meanwhile.
    """
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # only a read has the log looked at
    while True:
        log = read_log(path)
        missing = "" if log is None else _missing_from(log, connection)
        if not missing or read_log(path) == log:
            return missing


def _missing_from(log: Log, connection: apsw.Connection) -> str:
    if log.is_damaged:
        return "the header of its write-ahead log is damaged, and nothing in the log can be read"
    row = connection.execute("PRAGMA wal_checkpoint(NOOP)").fetchall()[0]
    read = int(row[1])  # type: ignore[arg-type]
    behind = [number for number in log.commits if number > read]
    if not behind or behind[0] == log.frames:
        return ""
    return (
        f"its write-ahead log is damaged after frame {read:,} of {log.frames:,}: "
        f"{len(behind):,} transactions that were written can no longer be read"
    )
