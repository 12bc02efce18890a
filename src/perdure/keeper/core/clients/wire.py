"""The messages between the keeper and its clients. Standard library only: small child processes use it too.

A frame is two lengths of four bytes, big-endian, a header in JSON and a body of raw bytes; descriptors ride on
its first byte, and the header says how many. There are four kinds of messages:

    Request   an id, a verb and its arguments; the client numbers its requests
    Reply     the answer to one request, by its id
    Refusal   instead of a reply: an error code with values; nothing was done
    News      unasked, about a topic that the client has subscribed to

The first request is `hello` with the versions the client speaks; the answer names the version to use. Without a
common version the keeper refuses and lists its own. It then still answers `status`, `replace` and `stop`.
"""

from __future__ import annotations

import array
import json
import os
import re
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from perdure.keeper.json_text import to_json

VERSIONS = (1,)
# Among the secrets of an HTTP request: its address, if that has some. No header has a name like it.
REAL_URL = ":url"
LARGEST_HEADER = 1 << 20
LARGEST_BODY = 16 << 20
MOST_FDS = 16
DEEPEST = 100  # nesting of a header, far from where a recursive reader or writer gives up
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[^][{}]')  # everything that is not a bracket
# Bytes per read: few enough that no new memory has to be requested from the system.
_MOST_AT_ONCE = 1 << 15
_FDS_SPACE = socket.CMSG_SPACE(MOST_FDS * array.array("i").itemsize)
# As plain numbers: the enumeration of flags costs more than the system call.
_CLOEXEC, _CUT_OFF = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0)), int(socket.MSG_CTRUNC)
AT_ONCE = int(socket.MSG_DONTWAIT)
_LENGTHS = struct.Struct(">II")


class BadFrame(Exception):
    """The bytes are not a frame, or the frame is too large; the connection cannot be used any more."""


# One message per keystroke: not frozen, because freezing makes each ten times slower.


@dataclass(slots=True)
class Request:
    id: int
    verb: str
    args: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    fds: tuple[int, ...] = ()


@dataclass(slots=True)
class Reply:
    id: int
    args: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    fds: tuple[int, ...] = ()


@dataclass(slots=True)
class Refusal:
    id: int
    error: str
    args: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    fds: tuple[int, ...] = ()


@dataclass(slots=True)
class News:
    topic: str
    args: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    fds: tuple[int, ...] = ()


Message = Request | Reply | Refusal | News
_read_json = json.JSONDecoder().raw_decode


def encode(message: Message) -> bytes:
    """The frame's bytes; its descriptors are sent with the first of them.

    Raises:
        BadFrame: the other end would refuse it as too large.
    """
    head: dict[str, Any]
    match message:
        case Reply():
            head = {"re": message.id, "args": message.args}
        case Request():
            head = {"ask": message.id, "verb": message.verb, "args": message.args}
        case Refusal():
            head = {"re": message.id, "error": message.error, "args": message.args}
        case News():
            head = {"news": message.topic, "args": message.args}
    if message.fds:
        head["fds"] = len(message.fds)
    header = to_json(head).encode()
    if len(header) > LARGEST_HEADER or len(message.body) > LARGEST_BODY or len(message.fds) > MOST_FDS:
        raise BadFrame(f"a frame of {len(header)} + {len(message.body)} bytes and {len(message.fds)} descriptors")
    return b"".join((_LENGTHS.pack(len(header), len(message.body)), header, message.body))


class Decoder:
    """Turn bytes and descriptors, as they arrive, into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._fds: deque[int] = deque()

    def feed(self, data: bytes, fds: Sequence[int] = ()) -> Iterator[Message]:
        """The messages that are complete now.

        Raises:
            BadFrame: the bytes are not a frame; `close` closes descriptors that came with them.
        """
        self._bytes += data
        self._fds.extend(fds)
        if len(self._fds) > 2 * MOST_FDS:  # those of the last frame, and of one that is incomplete
            raise BadFrame(f"{len(self._fds)} descriptors that no frame has claimed")
        while len(self._bytes) >= _LENGTHS.size:
            head, body = _LENGTHS.unpack_from(self._bytes)
            if head > LARGEST_HEADER or body > LARGEST_BODY:
                raise BadFrame(f"a frame of {head} + {body} bytes")
            middle = _LENGTHS.size + head
            end = middle + body
            if len(self._bytes) < end:
                return
            header = self._bytes[_LENGTHS.size : middle]
            content = bytes(self._bytes[middle:end]) if body else b""
            del self._bytes[:end]
            yield self._message(header, content)

    def _message(self, header: bytearray, body: bytes) -> Message:
        try:
            text = header.decode()
            if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST:
                raise BadFrame("a header that is nested too deeply")
            head, end = _read_json(text)
            args, count = head.get("args", {}), head.get("fds", 0)
            if end != len(text) or not isinstance(args, dict) or not 0 <= count <= len(self._fds):
                raise BadFrame("a header that does not fit its frame")
            fds = tuple(islice(self._fds, count)) if count else ()
            message = _made(head, args, body, fds)
            for _ in fds:  # claimed only now: those of a message that is none are closed with the rest
                self._fds.popleft()
            return message
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise BadFrame(f"an invalid header: {error}") from None

    def close(self) -> None:
        """Close the descriptors that no message has claimed."""
        while self._fds:
            os.close(self._fds.popleft())


def _made(head: dict[str, Any], args: dict[str, Any], body: bytes, fds: tuple[int, ...]) -> Message:
    if "ask" in head:
        return Request(_id(head["ask"]), str(head["verb"]), args, body, fds)
    if "news" in head:
        return News(str(head["news"]), args, body, fds)
    if "error" in head:
        return Refusal(_id(head["re"]), str(head["error"]), args, body, fds)
    return Reply(_id(head["re"]), args, body, fds)


def _id(given: object) -> int:
    if not isinstance(given, int) or given.bit_length() > 63:
        raise BadFrame("an id that is not a number")
    return given


def _depth(text: str) -> int:
    """The depth of nested brackets, ignoring those in strings."""
    depth = deepest = 0
    for bracket in _BRACKETS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def receive(sock: socket.socket, how: int = 0) -> tuple[bytes, list[int]]:
    """Bytes and descriptors that have arrived; b"" at the end. No child process inherits them. `how`: AT_ONCE or 0.

    Raises:
        BadFrame: this process could not receive all descriptors.
    """
    data, extra, flags, _ = sock.recvmsg(_MOST_AT_ONCE, _FDS_SPACE, _CLOEXEC | how)
    if not extra and not flags & _CUT_OFF:
        return data, []
    fds = array.array("i")
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    if flags & _CUT_OFF:
        for fd in fds:
            os.close(fd)
        raise BadFrame("more descriptors than a frame may have, or than this process may open")
    return data, list(fds)


def send(sock: socket.socket, message: Message) -> None:
    """Send all of it; for sockets that block."""
    data = encode(message)
    sent = socket.send_fds(sock, [data], list(message.fds)) if message.fds else sock.send(data)
    if sent < len(data):
        sock.sendall(memoryview(data)[sent:])


def common_version(ours: Sequence[int], theirs: Sequence[Any]) -> int | None:
    """The newest version both sides speak."""
    return max((version for version in ours if version in theirs), default=None)
