"""Decide which processes may use the keeper.

- Only this user: the socket's folder is closed to others, and the kernel says whose process has connected.
- No descendant of a unit, unless it brings the unit's token: a command that an agent runs in a shell must not
  type into other shells. Everything a unit starts has the anchor among its ancestors, even after a double fork,
  as the anchor is the subreaper.
- Only a living process whose line of parents can be followed to its end. The origin of a process that connected,
  passed its connection on and died is unknown, so it is refused. So is a process of another pid namespace. The kernel
  says which process connected (SO_PEERPIDFD, since Linux 6.5), so that a later process with the same pid is not
  mistaken for it. An older kernel reveals such an exchange only if it happens after the connection was accepted.
- Without /proc (macOS) ancestry cannot be seen, and only the user is checked.

A token is a socket that is connected to nothing: it can be inherited or passed on, but not opened by name,
copied out of /proc or guessed. A process that holds it speaks for the unit it was made for.

Other processes of the same user are not kept out: they could also trace the agent, or read its files.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.keeper.core.anchor_client import Anchored
from perdure.keeper.process import descends, is_dead

_CREDENTIALS = struct.Struct("3i")
_NUMBER = struct.Struct("i")
_SO_PEERPIDFD = 77
_HAS_PROC = os.path.exists("/proc/self/stat")


class Stranger(Exception):
    """A process that may not use the keeper; the message says why."""


def peer_of(sock: socket.socket) -> tuple[int, int]:
    """The process at the other end, and its user; pid 0 where the kernel does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        return pid, uid
    uid = _peer_uid_bsd(sock)
    return 0, uid


def _peer_uid_bsd(sock: socket.socket) -> int:
    # struct xucred: version, uid, …; LOCAL_PEERCRED of SOL_LOCAL
    found = sock.getsockopt(0, 1, 76)
    return int.from_bytes(found[4:8], "little")


def check_user(uid: int) -> None:
    if uid != os.geteuid():
        raise Stranger(f"user {uid} is not the user of this keeper")


def check_descent(sock: socket.socket, pid: int, anchor: int) -> None:
    """Check that no unit of the anchor started the process at the other end.

    Raises:
        Stranger: a unit started it, or that cannot be known.
    """
    if not _HAS_PROC:
        return
    if pid <= 0:
        raise Stranger("its process is in a pid namespace that cannot be seen from here")
    with _peer_process(sock, pid) as process:
        is_one = descends(pid, anchor)
        # It still lives, so what /proc has said was about this process and not about another with its pid.
        if process is not None and _has_ended(process):
            raise Stranger(f"process {pid} has ended, so it cannot be seen what had started it")
    if is_one is None or is_dead(pid):
        raise Stranger(f"process {pid} has ended, so it cannot be seen what had started it")
    if is_one:
        raise Stranger(f"process {pid} was started by a unit and has no token")


@contextmanager
def _peer_process(sock: socket.socket, pid: int) -> Iterator[int | None]:
    """A pidfd of the process that connected; None where the kernel offers none."""
    fd = _peer_pidfd(sock, pid)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def _peer_pidfd(sock: socket.socket, pid: int) -> int | None:
    try:
        fd: int = _NUMBER.unpack(sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, _NUMBER.size))[0]
        return fd
    except ProcessLookupError:
        raise Stranger(f"process {pid} has ended, so it cannot be seen what had started it") from None
    except OSError:  # before Linux 6.5; or of a process that has ended, which the next call finds too
        pass
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise Stranger(f"process {pid} has ended, so it cannot be seen what had started it") from None
    except (AttributeError, OSError):
        return None


def _has_ended(pidfd: int) -> bool:
    looking = select.poll()
    looking.register(pidfd, select.POLLIN)
    return bool(looking.poll(0))


def new_token() -> socket.socket:
    return socket.socket(socket.AF_UNIX)


def token_id(fd: int) -> tuple[int, int]:
    """The identity of a token, valid while any copy of it is open."""
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def tokens_in(anchored: Anchored) -> dict[tuple[int, int], str]:
    """The tokens that a former keeper has given out, and the unit of each."""
    found: dict[tuple[int, int], str] = {}
    for name, _ in anchored.names():
        if name.startswith("token:"):
            fd, unit = anchored.get(name)
            found[token_id(fd)] = str(unit)
            os.close(fd)
    return found
