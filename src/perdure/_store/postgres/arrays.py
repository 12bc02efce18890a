"""Whole columns as arrays in PostgreSQL's binary form, which costs less than one statement per row. Pure."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_TEXT, _BIGINT, _BYTEA = 25, 20, 17  # type numbers, fixed since PostgreSQL's beginnings

_header = struct.Struct("!iiIii").pack
_length = struct.Struct("!i").pack
_whole = struct.Struct("!iq").pack


def texts(values: Sequence[str]) -> bytes:
    return _column(_TEXT, [_length(len(raw)) + raw for raw in (value.encode() for value in values)])


def wholes(values: Sequence[int]) -> bytes:
    return _column(_BIGINT, [_whole(8, value) for value in values])


def payloads(values: Sequence[bytes]) -> bytes:
    return _column(_BYTEA, [_length(len(value)) + value for value in values])


def _column(kind: int, parts: list[bytes]) -> bytes:
    # One dimension, no NULLs, counted from 1.
    return _header(1, 0, kind, len(parts), 1) + b"".join(parts)
