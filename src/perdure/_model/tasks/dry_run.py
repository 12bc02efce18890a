"""What a cancel, a rollback or a fork of a task would do, without doing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct


class EffectAtStake(Struct, frozen=True, kw_only=True):
    """An effect that a verb would undo, leave as it is, or have to settle first."""

    name: str
    call: str  # with its arguments, as a person reads it
    key: str
    path: str
    has_undo: bool


class ChildAtStake(Struct, frozen=True, kw_only=True):
    """A task that this one has started and that has not ended."""

    id: str
    status: str


class DryRun(Struct, frozen=True, kw_only=True):
    """The consequences of a verb."""

    undone: Sequence[EffectAtStake] = ()  # the newest first, as they would be undone
    kept: Sequence[EffectAtStake] = ()  # they happened, and would stay so
    uncertain: Sequence[EffectAtStake] = ()  # whether they happened would be settled first, perhaps by a person
    children: Sequence[ChildAtStake] = ()  # they are not ended with it


class ForkPlan(DryRun, frozen=True, kw_only=True):
    """What a fork would begin with; every value of it can be set to another one."""

    arguments: Mapping[str, Any] = {}  # without secrets
    takes: Mapping[str, Any] | None = None  # JSON Schema of the arguments; None: no worker has announced it
    state: Any = None
