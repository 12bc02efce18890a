"""Processes of units: whether one is still the recorded one, and all that belong to a unit.

A unit's processes are those of its session, and those that left it but carry the unit's cookie in their
environment: a double fork or a setsid keeps it. Only processes below the anchor are considered.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from perdure.keeper.anchor import start_of
from perdure.keeper.process.ancestry import is_below

COOKIE = "PERDURE_UNIT"
# Names the owner of a service, for a keeper that has no record of it any more.
OWNER = "PERDURE_UNIT_OF"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_HAS_PROC = os.path.exists("/proc/self/stat")
_MOST_PIDS = 1 << 31


def is_same(pid: int, start: int) -> bool:
    """True if the process with this pid and start still runs. A pid from a damaged record matches no process: -1
    would mean every process of the user, and 0 our own group."""
    if not (type(pid) is type(start) is int and 1 < pid < _MOST_PIDS):
        return False
    if not start:
        return not _HAS_PROC and _exists(pid)
    return start_of(pid) == start and _state(pid) not in ("Z", "X")


def is_running(pid: int) -> bool:
    return _state(pid) not in ("Z", "X")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _state(pid: int) -> str:
    fields = _stat(pid)
    return fields[0] if fields else "X"


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def catches(pid: int, number: int) -> bool:
    """True if it has a handler for this signal."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            masks = [line.split()[1] for line in file if line.startswith(b"SigCgt:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) >> (number - 1) & 1)


def all_pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def of_unit(session: int, cookie: str, anchor: int) -> Iterator[int]:
    """Every process of a unit that can be found. Session 0 means a unit without a process: no process belongs to it,
    although in a container every process from outside has session 0."""
    mark = f"{COOKIE}={cookie}".encode()
    for pid in all_pids():
        fields = _stat(pid)
        if not fields or fields[0] in "ZX":
            continue
        if (session > 1 and int(fields[3]) == session) or (_carries(pid, mark) and is_below(pid, anchor)):
            yield pid


def below(anchor: int, but: int) -> Iterator[int]:
    """All that units have started, and are."""
    return (pid for pid in all_pids() if pid != but and is_below(pid, anchor))


def with_cookie(cookie: str) -> Iterator[int]:
    """Every process with a unit's cookie, wherever it is: also one whose anchor has died."""
    return with_variable(COOKIE, cookie)


def with_variable(name: str, value: str) -> Iterator[int]:
    """Every process that has this in its environment."""
    mark = f"{name}={value}".encode()
    return (pid for pid in all_pids() if _carries(pid, mark) and _state(pid) not in ("Z", "X"))


def _carries(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False


def command_of(pid: int) -> list[str]:
    """Its command line; empty when that cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().rstrip(b"\0").split(b"\0")]
    except OSError:
        return []


def is_in_inner_namespace(pid: int) -> bool:
    """True if it is in a process namespace inside ours: then it has a number there too."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return any(line.startswith(b"NSpid:") and len(line.split()) > 2 for line in file)
    except OSError:
        return False


def kill(pids: Iterator[int], number: int = signal.SIGKILL) -> int:
    """Returns how many processes got the signal."""
    count = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            count += 1
    return count


def memory_of(pids: Iterator[int]) -> int:
    """Resident bytes, shared pages counted in each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", encoding="utf-8") as file:
            total += int(file.read().split()[1]) * _PAGE
    return total


def cwd_of(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def of_group(group: int) -> Iterator[int]:
    for pid in all_pids():
        fields = _stat(pid)
        if fields and int(fields[2]) == group:
            yield pid


def sleeps_in(pid: int) -> str:
    """The kernel function a process sleeps in; empty when it runs, or is not ours to look at."""
    try:
        with open(f"/proc/{pid}/wchan", encoding="utf-8") as file:
            return file.read().strip("0\n")
    except OSError:
        return ""
