"""Which attempt of which task the running code belongs to, for what is kept beside its journal."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from msgspec import Struct

from perdure._durable.attempt.scopes import current
from perdure._store import Store


class KeyedEffect(Protocol):
    """An effect whose body runs here."""

    @property
    def key(self) -> str: ...


running_effect: ContextVar[KeyedEffect] = ContextVar("perdure_effect")


class Inside(Struct, frozen=True):
    """A durable function that is running here; `is_body`: in the body of one of its steps or effects."""

    store: Store
    task_id: str
    uid: str
    epoch: int
    is_body: bool


def inside() -> Inside | None:
    """The durable function that is running here, if one is.

    Raises:
        Paused: its attempt is being unwound.
        PerdureError: its attempt was closed.
    """
    scope = current.get()
    if scope is None:
        return None
    attempt = scope.attempt
    attempt.check()
    return Inside(attempt.store, attempt.task_id, attempt.uid, attempt.epoch, scope.is_body)


def is_in_effect() -> bool:
    """Whether the running code is an effect's own: what it does is part of that effect."""
    return running_effect.get(None) is not None
