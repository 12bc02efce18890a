"""Aimed bit flips in the files of a SQLite store: where to put them so that every kind of place is hit."""

from __future__ import annotations

from struct import unpack_from
from typing import NamedTuple

_HEADER, _FRAME = 32, 24


class Place(NamedTuple):
    """A bit of a file, and what it is a part of."""

    byte: int
    bit: int
    part: str
    is_in_last: bool = False  # in the last transaction of a log


def log_places(log: bytes, page: int = 4096) -> list[Place]:
    """One bit of each field of a write-ahead log's header and of each frame, and one of each frame's page."""
    frames = (len(log) - _HEADER) // (_FRAME + page)
    commits = [number for number in range(frames) if unpack_from(">I", log, _HEADER + number * (_FRAME + page) + 4)[0]]
    last = commits[-2] + 1 if len(commits) > 1 else 0
    found = [Place(byte + 3, 0, f"header {byte}") for byte in range(0, _HEADER, 4)]
    for number in range(frames):
        start = _HEADER + number * (_FRAME + page)
        for byte in (*range(3, _FRAME, 4), _FRAME + number * 31 % page, _FRAME + page - 1):
            found.append(Place(start + byte, number % 8, f"frame {number} at {byte}", number >= last))
    return found
