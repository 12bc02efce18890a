"""`span`: a stretch of reasoning with a name, and a checkpoint at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from perdure._durable.scopes import current
from perdure._durable.starting import recorded_call


@asynccontextmanager
async def span(name: str) -> AsyncIterator[None]:
    """Mark a stretch of work; at its end the task gets a checkpoint with this label, once.

    Outside a durable function it does nothing. A stretch that is left by an exception gets none.
    """
    yield
    scope = current.get()
    if scope is None or scope.is_body or scope.run.task is None:
        return
    task = scope.run.task

    async def mark() -> str:
        return (await task.checkpoint(task.state, label=name)).id

    await recorded_call(scope, f"span {name}", str, mark)
