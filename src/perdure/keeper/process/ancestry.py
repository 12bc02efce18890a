"""The ancestry of processes, read from /proc."""

from __future__ import annotations

import os

# The longest line of parents to follow, and how often to begin again when the line changes meanwhile.
_LONGEST_LINE, _TRIES = 1000, 20


def is_below(pid: int, ancestor: int) -> bool:
    """True if a process is known to descend from another, over any number of generations."""
    return descends(pid, ancestor) is True


def descends(pid: int, ancestor: int) -> bool | None:
    """The same; None when the line of parents cannot be followed."""
    for _ in range(_TRIES):
        found = _follow(pid, ancestor)
        if found is not None:
            return found
    return None


def _follow(pid: int, ancestor: int) -> bool | None:
    for _ in range(_LONGEST_LINE):
        parent = parent_of(pid)
        if parent == ancestor and parent:
            return True
        if parent is None:
            return None  # it has just ended, and its children have other parents now
        if parent <= 1:
            return False
        pid = parent
    return None


def parent_of(pid: int) -> int | None:
    """The parent of a process: 0 when that is out of sight, None when the process has ended."""
    fields = _stat(pid)
    if fields:
        return int(fields[1])
    try:
        os.kill(pid, 0)
    except PermissionError:
        return 0  # another user's, where /proc hides those: that user started it
    except OSError:
        pass
    return None


def is_dead(pid: int) -> bool:
    fields = _stat(pid)
    return not fields or fields[0] in (b"Z", b"X")


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat, from the state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []
