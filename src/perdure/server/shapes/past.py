"""The past of a task as callers see it: fields that agents wrote are absent without `data:read`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

from perdure._durable import EffectRecord
from perdure._model import CheckpointInfo
from perdure.server.http import Caller

Json = Any
S = TypeVar("S", bound=Struct)


class Effect(Struct, frozen=True, kw_only=True):
    """One effect of a task, as it stands."""

    name: str
    state: str  # done, failed, uncertain, undone
    key: str
    tries: int
    began_at: datetime
    ended_at: datetime | None
    undone_at: datetime | None
    settled: str
    has_undo: bool
    is_inherited: bool
    digest: str
    path: str
    line: int
    call: Json | UnsetType = UNSET
    error: Json | UnsetType = UNSET
    traceback: Json | UnsetType = UNSET


class CheckpointSummary(Struct, frozen=True, kw_only=True):
    """A checkpoint without what it holds."""

    id: str
    seq: int
    timestamp: datetime
    cause: str
    depth: int
    size: int  # bytes of the whole snapshot, before compression
    stored: int  # bytes in the store
    valid: bool
    parent: str | None
    line: int
    superseded: bool
    pinned: bool
    author: Mapping[str, Json] | None
    label: str | UnsetType = UNSET


def effect_for(caller: Caller, effect: EffectRecord) -> Effect:
    return _shown(caller, effect, Effect, "call", "error", "traceback")


def checkpoint_for(caller: Caller, info: CheckpointInfo) -> CheckpointSummary:
    return _shown(caller, info, CheckpointSummary, "label")


def _shown(caller: Caller, record: Struct, shape: type[S], *written: str) -> S:
    hidden = () if caller.reads_data else written
    return shape(**{name: getattr(record, name) for name in shape.__struct_fields__ if name not in hidden})
