"""Notice when a file has grown, or a file appears in a folder, without polling.

Uses inotify, on Linux. Elsewhere, and when the system has no more watches, `watch` returns None and the caller polls.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable

CHANGED = 0x2 | 0x80  # IN_MODIFY, and of a folder IN_MOVED_TO
REMOVED = 0x400 | 0x800  # IN_DELETE_SELF, IN_MOVE_SELF
_EVENT = struct.Struct("iIII")
_MOST_AT_ONCE = 256 * _EVENT.size


class Bells:
    """One for a loop; a file is watched for one at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._fd = loop, -1
        self._rings: dict[int, Callable[[], None]] = {}

    def watch(self, path: str, ring: Callable[[], None], what: int = CHANGED) -> int | None:
        """Have `ring` called whenever something was written there, or moved there; the answer is for `leave`.

        With REMOVED, when the folder itself is.
        """
        if self._fd < 0 and not self._open():
            return None
        number = int(_libc.inotify_add_watch(self._fd, os.fsencode(path), what))
        if number < 0:
            return None
        self._rings[number] = ring
        return number

    def leave(self, number: int) -> None:
        if self._rings.pop(number, None) is not None:
            _libc.inotify_rm_watch(self._fd, number)

    def _open(self) -> bool:
        if sys.platform != "linux":
            return False
        self._fd = int(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._heard)
        return self._fd >= 0

    def _heard(self) -> None:
        data = os.read(self._fd, _MOST_AT_ONCE)
        numbers = {_EVENT.unpack_from(data, at)[0] for at in range(0, len(data), _EVENT.size)}
        if -1 in numbers:  # there were too many to tell
            numbers = set(self._rings)
        for number in numbers:
            ring = self._rings.get(number)
            if ring is not None:
                ring()


_libc = ctypes.CDLL(None, use_errno=True)
