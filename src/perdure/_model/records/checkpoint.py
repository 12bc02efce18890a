"""A checkpoint. state_diff.py describes the changes between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

Json = Any
_MOST_DIGITS = 18  # of a number that both engines store


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool call that was under way when the checkpoint was made: pending, not lost and not done."""

    id: str
    tool: str
    arguments: Json = None
    started_at: datetime | None = None


class Checkpoint(Struct, frozen=True, kw_only=True):
    """An immutable snapshot of a task's state."""

    id: str
    seq: int
    timestamp: datetime
    data: Json
    label: str
    cause: str  # explicit, pause, resume, fork, span, …
    depth: int
    size: int  # bytes of the whole snapshot, before compression
    valid: bool
    plan: Json = None
    memory: Json = None
    partial: Json = None
    pending: Sequence[ToolCall] = ()
    parent: str | None = None
    line: int = 1
    superseded: bool = False  # a rollback went back before it
    pinned: bool = False
    author: Mapping[str, Any] | None = None
    checksum: str = ""


class CheckpointInfo(Struct, frozen=True, kw_only=True):
    """A checkpoint without what it holds."""

    id: str
    seq: int
    timestamp: datetime
    label: str
    cause: str
    depth: int
    size: int  # bytes of the whole snapshot, before compression
    stored: int  # bytes in the store
    valid: bool
    parent: str | None
    line: int
    superseded: bool
    pinned: bool
    author: Mapping[str, Any] | None


def checkpoint_id(uid: str, seq: int) -> str:
    return f"{uid}.{seq}"


def seq_of(uid: str, name: str) -> int | None:
    """The number in a checkpoint's id, or the bare number a person typed; None if it is neither."""
    prefix, dot, number = name.rpartition(".")
    if dot and prefix != uid:
        return None
    return int(number) if number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS else None
