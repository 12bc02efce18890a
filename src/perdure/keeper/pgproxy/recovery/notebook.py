"""Facts about a session that outlive the proxy, in memory that its successor maps too.

One byte says how far the last batch has come. It is set before and after every step, so that a successor knows
what a dead proxy was about to do:

    IDLE      the server has said that it is ready; nothing is on its way
    SENDING   a batch is being handed to the kernel, in one piece or not at all: the server has all of it or nothing
    LARGE     one that may go in several pieces: the server may have a part of it, and the rest cannot be sent
    SENT      the server has all of it; its answer may be read in part

The other facts are JSON, written beside the last ones and then switched to, so that they are never half there.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import tempfile
import zlib
from struct import Struct
from typing import Any

from perdure.keeper import json_text as jsons

IDLE, SENDING, LARGE, SENT = range(4)

_SIZE = 1 << 20
_PAGE = (_SIZE - 64) // 2
_SLOT = Struct("<II")  # length, checksum
_PHASE, _UNSYNCED, _TURN, _TAKEN = 0, 1, 2, 3


def to_json(facts: dict[str, Any]) -> bytes:
    return jsons.to_json(facts).encode()


class Notebook:
    """The facts of one session. `fd` is parked beside the connection."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE)

    @classmethod
    def new(cls) -> Notebook:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("perdure-session", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, _SIZE)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, _SIZE)  # a full disk is met here, not as a SIGBUS later
        return cls(fd)

    @classmethod
    def in_file(cls, path: str) -> Notebook:
        """One that can be found again by its path; readable only by its owner."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(fd, _SIZE)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, _SIZE)
        return cls(fd)

    @property
    def phase(self) -> int:
        return self._map[_PHASE]

    @phase.setter
    def phase(self, value: int) -> None:
        self._map[_PHASE] = value

    @property
    def unsynced(self) -> bool:
        """True if messages were sent without a Sync after them."""
        return bool(self._map[_UNSYNCED])

    @unsynced.setter
    def unsynced(self, value: bool) -> None:
        self._map[_UNSYNCED] = value

    @property
    def taken(self) -> bool:
        """True if a part of the answer under way was already taken out of the socket."""
        return bool(self._map[_TAKEN])

    @taken.setter
    def taken(self, value: bool) -> None:
        self._map[_TAKEN] = value

    def write(self, data: bytes) -> bool:
        """Keep these facts instead of the last ones; False when they are too large, and the last ones stay."""
        if len(data) > _PAGE - _SLOT.size:
            return False
        turn = 1 - self._map[_TURN]
        at = 64 + turn * _PAGE
        self._map[at + _SLOT.size : at + _SLOT.size + len(data)] = data
        _SLOT.pack_into(self._map, at, len(data), zlib.crc32(data))
        self._map[_TURN] = turn
        return True

    def read(self) -> dict[str, Any]:
        """The facts as they were last written; {} when there are none."""
        at = 64 + self._map[_TURN] * _PAGE
        size, check = _SLOT.unpack_from(self._map, at)
        data = self._map[at + _SLOT.size : at + _SLOT.size + min(size, _PAGE)]
        if not size or zlib.crc32(data) != check:
            return {}
        with contextlib.suppress(ValueError):
            found: dict[str, Any] = json.loads(data)
            return found
        return {}
