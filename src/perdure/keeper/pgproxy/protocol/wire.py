"""Messages of the PostgreSQL protocol, version 3, as bytes. Pure: no socket is read here.

A message is a kind of one letter, a length that counts itself, and a body. Only a client's first message has no
kind. Clients are read in whole messages; what a server says is walked over by session.py without copying it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

LENGTH = struct.Struct("!I")
PROTOCOL = 196608  # 3.0
_CANCEL, _TLS, _GSS = 80877102, 80877103, 80877104
LONGEST_STARTUP = 10_000  # as the server's own limit
LONGEST_MESSAGE = 0x4000_0000  # 1 GiB, as the server's own limit
# A server ends the session of a client that sends other messages, or longer ones of the kinds that carry only names.
_FROM_CLIENTS, _SHORT, _LONGEST_SHORT = frozenset(b"QPBDECSHFdcfX"), frozenset(b"DECSHcfX"), 10_000
# A server's message is kept until it is complete, except rows and the like; an error can carry a long text.
_LONGEST_TOLD, _LONGEST_FACT = 16 << 20, 30_000
_MAY_BE_LONG = frozenset(b"EN")
MOST_PARAMETERS, _MOST_OF_PARAMETERS = 200, 1 << 16

SYNC = b"S\0\0\0\4"
FLUSH = b"H\0\0\0\4"
TERMINATE = b"X\0\0\0\4"


class Broken(Exception):
    """Bytes that are not a message; their sender cannot be understood any more."""


class Startup(NamedTuple):
    """A client's first message."""

    kind: str  # "start", "cancel" or "encrypt"
    minor: int = 0
    parameters: Mapping[str, str] = {}
    pid: int = 0
    key: bytes = b""
    size: int = 0


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + LENGTH.pack(len(body) + 4) + body


def query(sql: str) -> bytes:
    return message(b"Q", sql.encode() + b"\0")


def close_statement(name: bytes) -> bytes:
    return message(b"C", b"S" + name + b"\0")


def close_portal(name: bytes) -> bytes:
    return message(b"C", b"P" + name + b"\0")


def copy_fail(why: str) -> bytes:
    return message(b"f", why.encode() + b"\0")


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def parameter(name: str, value: str) -> bytes:
    return message(b"S", name.encode() + b"\0" + value.encode() + b"\0")


def complaint(kind: bytes, severity: str, code: str, text: str, hint: str = "") -> bytes:
    """An error (`E`) or a notice (`N`) of ours, as a server would say it."""
    fields = {"S": severity, "V": severity, "C": code, "M": text, "H": hint}
    body = b"".join(name.encode() + _without_nul(value) + b"\0" for name, value in fields.items() if value)
    return message(kind, body + b"\0")


def fatal(text: str, *, code: str = "57P01", hint: str = "") -> bytes:
    return complaint(b"E", "FATAL", code, text, hint)


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice, by their letter."""
    parts = bytes(body).split(b"\0")
    return {chr(part[0]): part[1:].decode("utf-8", "replace") for part in parts if part}


def text(body: bytes, at: int = 0) -> tuple[bytes, int]:
    """The string that begins there, and where the next thing begins."""
    end = body.find(b"\0", at)
    if end < 0:
        raise Broken("a string does not end")
    return body[at:end], end + 1


def number(body: bytes | bytearray, at: int = 0) -> int:
    """The unsigned number of four bytes at this place.

    Raises:
        Broken: the message ends before it.
    """
    if len(body) < at + 4:
        raise Broken("a message that ends too early")
    return int(LENGTH.unpack_from(body, at)[0])


def check_from_client(kind: int, size: int) -> None:
    """Refuse messages that would make a server end the whole session.

    Raises:
        Broken: no client sends this.
    """
    if kind not in _FROM_CLIENTS:
        raise Broken(f"no client sends messages of kind {chr(kind)!r}")
    if kind in _SHORT and size > _LONGEST_SHORT:
        raise Broken(f"a message of kind {chr(kind)!r} with {size} bytes")


def check_from_server(kind: int, size: int) -> None:
    """Of messages that are kept until they are whole; `size` as it is written in them.

    Raises:
        Broken: no server sends this.
    """
    if not 4 <= size <= (_LONGEST_TOLD if kind in _MAY_BE_LONG else _LONGEST_FACT):
        raise Broken(f"the server announces a message of kind {chr(kind)!r} with {size} bytes")


def set_parameter(parameters: dict[str, str], body: bytes) -> None:
    """Take note of what a ParameterStatus says.

    Raises:
        Broken: it is none, or there are more of them than any server has.
    """
    name, at = text(body)
    parameters[name.decode("utf-8", "replace")] = text(body, at)[0].decode("utf-8", "replace")
    if len(parameters) > MOST_PARAMETERS or sum(map(len, parameters.values())) > _MOST_OF_PARAMETERS:
        raise Broken("the server reports parameters without end")


def startup_message(parameters: Mapping[str, str]) -> bytes:
    pairs = b"".join(k.encode() + b"\0" + _without_nul(v) + b"\0" for k, v in parameters.items())
    body = LENGTH.pack(PROTOCOL) + pairs + b"\0"
    return LENGTH.pack(len(body) + 4) + body


def cancel_message(pid: int, key: bytes) -> bytes:
    body = LENGTH.pack(_CANCEL) + LENGTH.pack(pid) + key
    return LENGTH.pack(len(body) + 4) + body


def ask_for_tls() -> bytes:
    return LENGTH.pack(8) + LENGTH.pack(_TLS)


def read_startup(data: bytes | bytearray) -> Startup | None:
    """A client's first message, or None while it is not whole.

    Raises:
        Broken: it is none.
    """
    if len(data) < 8:
        return None
    size, code = struct.unpack_from("!II", data)
    if not 8 <= size <= LONGEST_STARTUP:
        raise Broken("this is not a PostgreSQL client")
    if len(data) < size:
        return None
    body = bytes(data[8:size])
    if code in (_TLS, _GSS):
        return Startup("encrypt", size=size)
    if code == _CANCEL:
        if len(body) < 8:
            raise Broken("a cancel request without a key")
        return Startup("cancel", pid=LENGTH.unpack_from(body)[0], key=body[4:], size=size)
    if code >> 16 != PROTOCOL >> 16:
        raise Broken(f"protocol {code >> 16}.{code & 0xFFFF} is not spoken here")
    return Startup("start", minor=code & 0xFFFF, parameters=_pairs(body), size=size)


def _pairs(body: bytes) -> dict[str, str]:
    parts = body.rstrip(b"\0").split(b"\0")
    texts = [part.decode("utf-8", "replace") for part in parts]
    return dict(zip(texts[::2], texts[1::2], strict=False))


def _without_nul(value: str) -> bytes:
    return value.encode("utf-8", "replace").replace(b"\0", b"?")


class Frames:
    """Whole messages out of pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Each whole message, its kind beside it.

        Raises:
            Broken: the bytes are not messages.
        """
        self._rest += data
        rest, at, end = self._rest, 0, len(self._rest)
        try:
            while at + 5 <= end:
                size = LENGTH.unpack_from(rest, at + 1)[0]
                if not 4 <= size <= LONGEST_MESSAGE:
                    raise Broken(f"a message of {size} bytes")
                stop = at + 1 + size
                if stop > end:
                    break
                found = bytes(rest[at:stop])
                at = stop
                yield found[0], found
        finally:
            del rest[:at]

    @property
    def is_between(self) -> bool:
        """True if no message is incomplete."""
        return not self._rest

    def rest(self) -> bytes:
        """The beginning of a message that is not whole yet; it is given once."""
        rest, self._rest = bytes(self._rest), bytearray()
        return rest
