"""Whole columns as arrays in PostgreSQL's binary form, which costs less than one statement per row. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain, repeat

_TEXT, _BIGINT, _BYTEA = 25, 20, 17  # type numbers, fixed since PostgreSQL's beginnings

_header = struct.Struct("!iiIii").pack
_length = struct.Struct("!i").pack
_whole = struct.Struct("!iq").pack


def texts(values: Sequence[str]) -> bytes:
    return _column(_TEXT, len(values), _sized(list(map(str.encode, values))))


def wholes(values: Sequence[int]) -> bytes:
    return _column(_BIGINT, len(values), map(_whole, repeat(8), values))


def payloads(values: Sequence[bytes]) -> bytes:
    return _column(_BYTEA, len(values), _sized(values))


def _sized(values: Sequence[bytes]) -> Iterable[bytes]:
    return chain.from_iterable(zip(map(_length, map(len, values)), values, strict=True))


def _column(kind: int, many: int, parts: Iterable[bytes]) -> bytes:
    # One dimension, no NULLs, counted from 1.
    return _header(1, 0, kind, many, 1) + b"".join(parts)
