"""The answer of a statement as the server's own messages, from what psycopg made of them. Pure.

An answer in a task's journal is handed to the proxy, which gives it to the driver in the server's place: so a replayed
statement has the same rows, types and row count, whatever the cursor's class and row factory are.
"""

from __future__ import annotations

import struct
from typing import Any

from psycopg.pq import ExecStatus

from perdure.keeper import pgproxy

_COLUMN = struct.Struct("!IHIhiH")


def only_tag(tag: str) -> bytes:
    return pgproxy.message(b"C", tag.encode() + b"\0")


def answer_of(cursor: Any) -> bytes:
    """The answers of all statements that the cursor has just executed."""
    return b"".join(_answer(result) for result in cursor._results)


def _answer(result: Any) -> bytes:
    if result.status == ExecStatus.EMPTY_QUERY:
        return pgproxy.message(b"I")
    parts = []
    if result.status == ExecStatus.TUPLES_OK:
        parts.append(_description(result))
        parts += [_row(result, row) for row in range(result.ntuples)]
    tag = result.command_status or b""
    return b"".join(parts) + pgproxy.message(b"C", tag + b"\0")


def _description(result: Any) -> bytes:
    parts = [struct.pack("!H", result.nfields)]
    for column in range(result.nfields):
        parts.append((result.fname(column) or b"") + b"\0")
        parts.append(
            _COLUMN.pack(
                result.ftable(column),
                result.ftablecol(column),
                result.ftype(column),
                result.fsize(column),
                result.fmod(column),
                result.fformat(column),
            )
        )
    return pgproxy.message(b"T", b"".join(parts))


def _row(result: Any, row: int) -> bytes:
    parts = [struct.pack("!H", result.nfields)]
    for column in range(result.nfields):
        value = result.get_value(row, column)
        parts.append(b"\xff\xff\xff\xff" if value is None else struct.pack("!I", len(value)) + value)
    return pgproxy.message(b"D", b"".join(parts))
