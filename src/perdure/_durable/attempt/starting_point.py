"""Where an attempt begins, when it does not replay its journal from the start."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Saved(Struct, array_like=True, frozen=True):
    """A recorded save: the checkpoint's number, and how many calls and scopes the main scope had made, by name."""

    seq: int
    calls: dict[str, int]
    scopes: dict[str, int]
    is_begun_at: bool = True  # the function calls `checkpoint.last`; one that does not is replayed from its start


class Point(Struct, frozen=True):
    """The place where an attempt begins."""

    position: int
    saved: Saved
    state: Any
