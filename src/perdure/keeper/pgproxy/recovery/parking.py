"""Descriptors that outlive the proxy, in another process.

`Parking` is the interface to the process that holds them: the keeper's anchor, or `python -m …parking` for a proxy
without a keeper. A parked descriptor is the same open connection; it stays open when the proxy is killed.

The messages of the separate process: four bytes of length, JSON, and at most one descriptor beside it.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import selectors
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from perdure.keeper.core import TOKEN_FD, Channel

_LENGTH = struct.Struct(">I")
_LONGEST = 4 << 20
_MOST_HELD = 512


class Parking(Protocol):
    def put(self, name: str, fd: int, facts: bytes = b"") -> None:
        """Hold a descriptor under a name, instead of what was there."""
        ...

    def take(self, name: str) -> tuple[int, bytes] | None:
        """A copy of it and its facts; it stays where it is."""
        ...

    def drop(self, name: str) -> None:
        """Close it."""
        ...


class Nowhere:
    """For connections that could not be used by a successor anyway."""

    def put(self, name: str, fd: int, facts: bytes = b"") -> None:
        pass

    def take(self, name: str) -> tuple[int, bytes] | None:
        return None

    def drop(self, name: str) -> None:
        pass


class SocketParking:
    """A parking process at the other end of a unix socket."""

    def __init__(self, path: str) -> None:
        self._link = socket.socket(socket.AF_UNIX)
        self._link.settimeout(10)
        self._link.connect(path)

    def put(self, name: str, fd: int, facts: bytes = b"") -> None:
        self._ask({"do": "put", "name": name, "facts": facts.hex()}, fd)

    def take(self, name: str) -> tuple[int, bytes] | None:
        answer, fd = self._ask({"do": "take", "name": name})
        return None if fd is None else (fd, bytes.fromhex(answer["facts"]))

    def drop(self, name: str) -> None:
        self._ask({"do": "drop", "name": name})

    def close(self) -> None:
        self._link.close()

    def _ask(self, what: dict[str, Any], fd: int | None = None) -> tuple[dict[str, Any], int | None]:
        send(self._link, what, fd)
        answer = receive(self._link)
        if answer is None:
            raise ConnectionError("the parking process has ended")
        return answer


class KeeperParking:
    """The keeper's anchor, asked for by a process that the keeper has started."""

    def __init__(self, path: str) -> None:
        self._channel = Channel(path, token=TOKEN_FD)

    def put(self, name: str, fd: int, facts: bytes = b"") -> None:
        self._channel.put(name, fd, facts.hex())

    def take(self, name: str) -> tuple[int, bytes] | None:
        try:
            fd, facts = self._channel.get(name)
        except KeyError:
            return None
        return fd, bytes.fromhex(facts or "")

    def drop(self, name: str) -> None:
        self._channel.drop(name)


def parking_of(config: Mapping[str, Any]) -> Parking:
    """The parking place in a process's configuration."""
    if config.get("channel"):
        return KeeperParking(config["channel"])
    return SocketParking(config["parking"]) if config.get("parking") else Nowhere()


# ── messages with a descriptor ───────────────────────────────────────────────────────────────────


def send(link: socket.socket, what: dict[str, Any], fd: int | None = None) -> None:
    body = json.dumps(what).encode()
    beside = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    link.sendmsg([_LENGTH.pack(len(body))], beside)
    link.sendall(body)


def receive(link: socket.socket) -> tuple[dict[str, Any], int | None] | None:
    """A message and its descriptor; None at the end, or if it is not a message."""
    head, beside, _, _ = link.recvmsg(4, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    for fd in fds:
        os.set_inheritable(fd, False)
    try:
        what = _read_object(link, head)
    except BaseException:
        _close(fds)
        raise
    if what is None or len(fds) > 1:
        _close(fds)
        return None
    return what, fds[0] if fds else None


def _read_object(link: socket.socket, head: bytes) -> dict[str, Any] | None:
    if len(head) < 4 or _LENGTH.unpack(head)[0] > _LONGEST:
        return None
    left, body = _LENGTH.unpack(head)[0], bytearray()
    while left > len(body):
        part = link.recv(left - len(body))
        if not part:
            return None
        body += part
    try:
        what = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return what if isinstance(what, dict) else None


def _close(fds: array.array[int]) -> None:
    for fd in fds:
        os.close(fd)


# ── the separate process ─────────────────────────────────────────────────────────────────────────


def serve(listener: socket.socket) -> None:
    """Hold descriptors until the process is ended."""
    held: dict[str, tuple[int, str]] = {}
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            link = key.fileobj
            assert isinstance(link, socket.socket)
            if link is listener:
                client, _ = listener.accept()
                client.settimeout(10)
                selector.register(client, selectors.EVENT_READ)
                continue
            asked = None
            with contextlib.suppress(OSError, ValueError):
                asked = receive(link)
            if asked is None:
                selector.unregister(link)
                link.close()
                continue
            with contextlib.suppress(OSError):
                _answer(link, held, *asked)


def _answer(link: socket.socket, held: dict[str, tuple[int, str]], asked: dict[str, Any], fd: int | None) -> None:
    name, what, out, facts = str(asked.get("name", "")), asked.get("do"), None, ""
    if what == "take":
        out, facts = held.get(name, (None, ""))
    elif what in ("put", "drop") and name in held:
        os.close(held.pop(name)[0])
    if what == "put" and fd is not None and len(held) < _MOST_HELD:
        held[name] = (fd, str(asked.get("facts", "")))
    elif fd is not None:
        os.close(fd)
    send(link, {"facts": facts}, out)


if __name__ == "__main__":
    place = socket.socket(socket.AF_UNIX)
    os.umask(0o177)
    place.bind(sys.argv[1])
    place.listen(16)
    sys.stdout.write("ready\n")
    sys.stdout.close()
    serve(place)
