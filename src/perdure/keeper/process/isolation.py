"""Processes that see nothing of the keeper, of other units, or of the user's other processes. Linux only.

An isolated unit has its own process, mount and IPC namespaces; without the right to make those, a user namespace too,
in which the user keeps its id. Its first process is a small one of ours that reaps orphans, passes signals on, and ends
everything when the program ends. The keeper's files (its socket, its records, `.perdure` with the store) are covered by
empty folders. Terminals (/dev/pts), message queues (/dev/mqueue) and /proc are separate instances, so no terminal of
another unit can be opened. Capabilities are given up for good, so the covers stay, and no process inside can become
another user (no sudo).

Not isolated, and said so in docs/guide/shells.md: files outside the covered folders, the network with its abstract
sockets, the kernel's keyrings, the clock, and control groups.

Owns the system calls; spawner.py makes them between its forks. If the kernel forbids one, the unit is refused.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
_PRIVATE, _BIND = 0x4000 | 0x40000, 0x1000  # for the whole tree; one folder in another's place
_PLAIN = 0x2 | 0x4  # nosuid, nodev
_NOEXEC = 0x8
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38
_MOST_CAPABILITIES = 64
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_MOST_FDS = 1 << 16


class NotAllowed(Exception):
    """The kernel or the container's setup does not allow it."""


@dataclass(frozen=True)
class Isolation:
    hidden: Sequence[str]  # folders that are covered
    shown: Sequence[str] = ()  # folders inside those that are still seen


def leave() -> None:
    """The next child that this process forks is in new namespaces.

    Raises:
        NotAllowed: the kernel forbids it.
    """
    if sys.platform != "linux":
        raise NotAllowed("units can be isolated on Linux only")
    wanted, before = _NEWNS | _NEWIPC | _NEWPID, _mounts_of_this()
    uid, gid = os.geteuid(), os.getegid()
    libc = _libc()
    if libc.unshare(wanted) != 0:
        if libc.unshare(wanted | _NEWUSER) != 0:
            raise NotAllowed(f"this system does not let user {uid} make namespaces: {_why()}")
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # of one that is not, /proc/self belongs to root
        for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{file}").write_text(text, encoding="utf-8")
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if _mounts_of_this() == before:
        raise NotAllowed("this system has not made a mount namespace, although it said so")


def _mounts_of_this() -> str:
    return os.readlink("/proc/self/ns/mnt")


def settle(isolation: Isolation) -> None:
    """Inside the namespace: cover the hidden folders, mount an own /proc, and give up the rights that could undo it.

    Raises:
        NotAllowed: the kernel forbids it.
    """
    if os.getpid() != 1:  # outside a namespace a cover would hide the folder from every process
        raise NotAllowed("this process is in no namespace of its own")
    with _said("a mount namespace of its own"):
        _mount("none", "/", None, _PRIVATE)
    shown = [(path, os.open(path, os.O_PATH | os.O_DIRECTORY)) for path in isolation.shown]
    for folder in _outermost(isolation.hidden):
        with _said(f"covering {folder}"):
            _mount("tmpfs", folder, "tmpfs", _PLAIN, "mode=0700,size=64m")
    for path, fd in shown:
        with _said(f"showing {path}"):
            os.makedirs(path, mode=0o700)
            _mount(f"/proc/self/fd/{fd}", path, None, _BIND)
        os.close(fd)
    mounted = _mounted()  # as /proc still says it
    for point in mounted.get("devpts", ()):
        with _said("terminals of its own"):
            _mount("devpts", point, "devpts", 0x2 | _NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    for point in mounted.get("mqueue", ()):
        with _said("message queues of its own"):
            _mount("mqueue", point, "mqueue", _PLAIN | _NOEXEC)
    for point in {*mounted.get("proc", ()), "/proc"}:
        with _said("a /proc of its own"):
            _mount("proc", point, "proc", _PLAIN | _NOEXEC)


def _outermost(folders: Sequence[str]) -> list[str]:
    """Without those inside another: a covered folder has nothing in it that could be covered."""
    return [one for one in folders if not any(Path(other) in Path(one).parents for other in folders)]


def _mounted() -> dict[str, list[str]]:
    """Mount points, by kind, of file systems that show other processes; covered ones are left out."""
    found: dict[str, list[str]] = {}
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            before, _, after = line.partition(b" - ")
            point = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), before.split()[4])
            if os.path.isdir(point):
                found.setdefault(after.split()[0].decode(), []).append(os.fsdecode(point))
    return {kind: sorted(set(points)) for kind, points in found.items()}


def give_up_rights() -> None:
    libc = _libc()
    for capability in range(_MOST_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # beyond the last one it says no
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise NotAllowed(f"it cannot give up its rights: {_why()}")


def be_first(child: int) -> NoReturn:
    """The first process of a namespace, until its program ends: then everything in it does."""
    os.closerange(0, _MOST_FDS)
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _: os.kill(child, number))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _why() -> str:
    return os.strerror(ctypes.get_errno())


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if _libc().mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def _said(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotAllowed(f"this system does not allow {what}: {error.strerror}") from None
