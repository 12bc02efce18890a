"""Shared parts of the programs that hold one session: a private socket, and the answer to the starting process."""

from __future__ import annotations

import contextlib
import ctypes
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
    """Take the lock of a session's folder; None if another process holds the session."""
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def read_config() -> dict[str, Any]:
    """What standard input says, with credentials: read once. It is emptied behind us, as a file in memory would be
    there to be read for as long as we live, and the copies that were made on the way are overwritten."""
    data = bytearray()
    while not data.endswith(b"\n") and (part := os.read(0, 1 << 16)):
        data += part
        wipe(part)
    text = data.decode()
    data[:] = bytes(len(data))
    config: dict[str, Any] = json.loads(text)
    wipe(text)
    with contextlib.suppress(OSError):  # a pipe has nothing left
        size = os.fstat(0).st_size
        os.pwrite(0, bytes(size), 0)
        os.ftruncate(0, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return config


def forget_passwords(options: dict[str, str]) -> None:
    """Drop the credentials of a session that is logged in."""
    for name in [name for name in options if "password" in name]:
        wipe(options.pop(name))


def wipe(secret: str | bytes) -> None:
    """Overwrite a text in memory. CPython only, and only this copy: copies made by libraries, the interpreter or the
    system stay until that memory is used again."""
    if sys.implementation.name != "cpython" or len(secret) < 2 or (isinstance(secret, str) and not secret.isascii()):
        return  # texts of one character are shared by all who have them
    # The characters stand at the end of the object, before a zero byte.
    ctypes.memset(id(secret) + sys.getsizeof(secret) - len(secret) - 1, 0, len(secret))


def tell_starter(what: dict[str, Any]) -> None:
    """Tell the starting process, which waits for the end of this message, not of this process."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
