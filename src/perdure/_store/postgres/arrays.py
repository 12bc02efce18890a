"""How Python values go to the server: without a type, so that one statement is one prepared statement.

psycopg would name a type for each value (a small number is a smallint, a missing one is unknown), and
each mix of types is another statement to the server. Our SQL says the type of every parameter itself.

Whole columns go as arrays in PostgreSQL's binary form, which costs less than one call per row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_TEXT, _BIGINT, _BYTEA = 25, 20, 17  # type numbers, fixed since PostgreSQL's beginnings

_header = struct.Struct("!iiIii").pack
_length = struct.Struct("!i").pack
_whole = struct.Struct("!iq").pack


class Column(bytes):
    """An array, ready to be sent."""


def texts(values: Sequence[str]) -> Column:
    return _column(_TEXT, [_length(len(raw)) + raw for raw in (value.encode() for value in values)])


def wholes(values: Sequence[int]) -> Column:
    return _column(_BIGINT, [_whole(8, value) for value in values])


def payloads(values: Sequence[bytes]) -> Column:
    return _column(_BYTEA, [_length(len(value)) + value for value in values])


def _column(kind: int, parts: list[bytes]) -> Column:
    # One dimension, no NULLs, counted from 1.
    return Column(_header(1, 0, kind, len(parts), 1) + b"".join(parts))


class _Whole(Dumper):
    def dump(self, obj: Any) -> bytes:
        return b"%d" % obj


class _Bytes(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Any:
        return obj


def adapt(connection: psycopg.Connection[Any]) -> None:
    adapters = connection.adapters
    adapters.register_dumper(int, _Whole)
    adapters.register_dumper(bool, _Whole)
    adapters.register_dumper(bytes, _Bytes)
    adapters.register_dumper(Column, _Bytes)
