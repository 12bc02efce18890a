"""The task of the running code: which attempt it is, what is done once in its life, and standing still for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from msgspec import Struct

from perdure._durable.attempt.calls.recorded_calls import recorded_call
from perdure._durable.attempt.scopes import current, current_attempt
from perdure._store import Store

T = TypeVar("T")


class KeyedEffect(Protocol):
    """An effect whose body is running in this context."""

    @property
    def key(self) -> str: ...


running_effect: ContextVar[KeyedEffect] = ContextVar("perdure_effect")


class Inside(Struct, frozen=True):
    """A durable function that is running in this context; `is_body`: inside the body of one of its steps or effects."""

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
    """True if the running code belongs to an effect: its calls are then part of that effect."""
    return running_effect.get(None) is not None


async def once(name: str, as_type: type[T], body: Callable[[], Awaitable[T]]) -> T:
    """Return what `body` gives: from the journal if it was recorded, else by running it now. Outside a durable function
    it just runs."""
    scope = current.get()
    if scope is None or scope.is_body:
        return await body()

    async def after_all_before_it() -> T:
        await scope.attempt.flush()  # what it reads and writes must not depend on a step that is not on disk
        return await body()

    found: T = await recorded_call(scope, name, as_type, after_all_before_it)
    return found


async def stand_still() -> None:
    """Give the task up until it is resumed, and then begin anew: does not return. Elsewhere it just returns.

    Nothing is recorded: whether the call has to wait here depends on the world, and can differ in the next replay.
    """
    attempt = current_attempt()
    if attempt is not None:
        attempt.unwinding.drain()
        await attempt.unwinding.suspend("~still")
