"""Ask the server something of our own, on a connection where nothing else is under way."""

from __future__ import annotations

import socket
from functools import cache
from pathlib import Path
from struct import pack

from perdure.keeper.pgproxy.login import upstream as login
from perdure.keeper.pgproxy.protocol import wire

_NAME = b"perdure_own"
# In the folder of the proxy: one of an earlier version that still runs reads them from there.
_FOLDER = Path(__file__).parents[1] / "queries"


class QueryFailed(Exception):
    """The server has answered with an error; `code` is its SQLSTATE."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields, self.code = fields, fields.get("C", "")
        super().__init__(fields.get("M", "the server refused"))


@cache
def sql(name: str) -> bytes:
    return (_FOLDER / f"{name}.sql").read_bytes()


def messages(name: str, *values: str) -> bytes:
    """The query of this name with its values, up to a Sync.

    Under names of its own: a simple query would close the unnamed statement, which may be a client's.
    """
    texts = [value.encode() for value in values]
    bound = pack("!hh", 0, len(texts)) + b"".join(pack("!i", len(text)) + text for text in texts) + pack("!h", 0)
    return (
        wire.message(b"P", _NAME + b"\0" + sql(name) + b"\0" + pack("!h", 0))
        + wire.message(b"B", _NAME + b"\0" + _NAME + b"\0" + bound)
        + wire.message(b"E", _NAME + b"\0" + pack("!i", 0))
        + wire.close_portal(_NAME)
        + wire.close_statement(_NAME)
        + wire.SYNC
    )


def row_of(body: bytes) -> list[str | None]:
    """The columns of a DataRow, as text."""
    (count,), at, found = (int.from_bytes(body[:2]),), 2, []
    for _ in range(count):
        size = int.from_bytes(body[at : at + 4], signed=True)
        at += 4
        found.append(None if size < 0 else body[at : at + size].decode("utf-8", "replace"))
        at += max(size, 0)
    return found


def ask(link: socket.socket, name: str, *values: str) -> list[str | None] | None:
    """The first row of the answer; None when there is none.

    Raises:
        QueryFailed: the server refuses.
        OSError: the connection broke.
    """
    link.sendall(messages(name, *values))
    row: list[str | None] | None = None
    problem: QueryFailed | None = None
    for kind, body in login.messages(link):
        if kind == 0x44:  # D
            row = row or row_of(body)
        elif kind == 0x45:  # E
            problem = problem or QueryFailed(wire.fields(body))
        elif kind == 0x5A:  # Z
            break
    if problem is not None:
        raise problem
    return row
