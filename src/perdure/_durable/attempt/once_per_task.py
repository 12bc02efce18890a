"""Do something once in a task's life: inside a durable function it is recorded, and a replay only reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure._durable.attempt.recorded_calls import recorded_call
from perdure._durable.attempt.scopes import current

T = TypeVar("T")


async def once(name: str, as_type: type[T], body: Callable[[], Awaitable[T]]) -> T:
    """What `body` gives: from the journal if it is there, else done now. Outside a durable function it is just done."""
    scope = current.get()
    if scope is None or scope.is_body:
        return await body()

    async def after_all_before_it() -> T:
        await scope.attempt.flush()  # what it sees and leaves behind must not depend on a step that is not on disk
        return await body()

    found: T = await recorded_call(scope, name, as_type, after_all_before_it)
    return found
