"""What a checkpoint is, and what changed between two of them.

`diff` is pure: it compares two decoded states and names each place that differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

Json = Any


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


class Change(Struct, frozen=True):
    """One place where two states differ; `path` reads like `files[3].name`."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before: Json = None
    after: Json = None


def checkpoint_id(uid: str, seq: int) -> str:
    return f"{uid}.{seq}"


def seq_of(uid: str, name: str) -> int | None:
    """The number behind a checkpoint's id, or behind the bare number a person typed; None if neither."""
    prefix, dot, number = name.rpartition(".")
    if dot and prefix != uid:
        return None
    return int(number) if number.isascii() and number.isdigit() else None


def diff(before: Json, after: Json, path: str = "") -> Iterator[Change]:
    """Each place that differs, in the order of the keys and positions."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _diff_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _diff_lists(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield Change(path, "changed", before, after)


def _diff_maps(before: dict[Any, Any], after: dict[Any, Any], path: str) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        place = f"{path}.{key}" if path else str(key)
        if key not in after:
            yield Change(place, "removed", before[key])
        elif key not in before:
            yield Change(place, "added", None, after[key])
        else:
            yield from diff(before[key], after[key], place)


def _diff_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Change]:
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        yield from diff(old, new, f"{path}[{index}]")
    for index in range(len(after), len(before)):
        yield Change(f"{path}[{index}]", "removed", before[index])
    for index in range(len(before), len(after)):
        yield Change(f"{path}[{index}]", "added", None, after[index])
