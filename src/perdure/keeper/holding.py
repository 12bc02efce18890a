"""What processes that hold one session have in common: a private socket, and the answer to whoever started them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
from typing import Any


def listen(path: str) -> socket.socket:
    """A socket at this path that only its own user can connect to, in place of one that a dead process left."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(64)
    return listener


def hold_lock(folder: str) -> int | None:
    """The lock of a session's folder, which says that it has a process; None if another one has it."""
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def tell_starter(what: dict[str, Any]) -> None:
    """Tell whoever started us; they wait for the end of this, not of us."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
