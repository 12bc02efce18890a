"""Who may speak to the keeper.

- Only this user: the socket's folder is closed to others, and the kernel says whose process has connected.
- No descendant of a unit, unless it brings the unit's token: a command that an agent runs in a shell must not
  type into other shells. Everything a unit starts has the anchor among its ancestors, even after a double fork,
  as the anchor is the subreaper.
- Where /proc is not (macOS), ancestry cannot be seen and only the user is checked.

A token is a socket that is connected to nothing: it can be inherited or passed on, but not opened by name,
copied out of /proc or guessed. Who holds it speaks for the unit it was made for.

Other processes of the same user are not kept out: they could also trace the agent, or read its files.
"""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


class Stranger(Exception):
    """Somebody the keeper does not speak with; the words say why."""


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


def is_below(pid: int, ancestor: int) -> bool:
    """Whether a process was started by another one, by way of however many others."""
    seen = 0
    while pid > 1 and seen < 1000:
        pid, seen = parent_of(pid), seen + 1
        if pid == ancestor:
            return True
    return False


def parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def new_token() -> socket.socket:
    return socket.socket(socket.AF_UNIX)


def token_id(fd: int) -> tuple[int, int]:
    """What a token is known by, while any copy of it is open."""
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
