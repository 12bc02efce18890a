"""Find the process that listens on a port, from /proc: one of the unit's own, or a foreign one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

_LISTEN = "0A"
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def listening() -> dict[str, int]:
    """Every listening TCP socket of this network namespace: its inode and its port."""
    found = {}
    for table in _TABLES:
        with contextlib.suppress(OSError), open(table, encoding="utf-8") as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTEN:
                    found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def ports_of(pids: Iterable[int]) -> list[int]:
    """The ports these processes listen on."""
    known = listening()
    return sorted({known[inode] for pid in pids for inode in _sockets(pid) if inode in known})


def is_taken(port: int) -> bool:
    """True if a program listens on it."""
    return port in listening().values()


def _sockets(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                target = os.readlink(f"{folder}/{name}")
                if target.startswith("socket:["):
                    yield target[8:-1]
