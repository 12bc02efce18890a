"""`span`: a named part of the work, with a checkpoint at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from perdure._durable.attempt import causes, current, recorded_call
from perdure._ground import crash_points as crash
from perdure._tasks import checkpoint_once


@asynccontextmanager
async def span(name: str) -> AsyncIterator[None]:
    """Name a part of the work. At its end the task gets one checkpoint with this label.

    Outside a durable function it does nothing. A span that ends with an exception makes no checkpoint.
    """
    yield
    scope = current.get()
    if scope is None or scope.is_body or scope.attempt.task is None:
        return
    attempt, task = scope.attempt, scope.attempt.task

    async def mark(place: str) -> str:
        # An earlier attempt may have made the checkpoint and died before it could record it.
        made = await checkpoint_once(
            task, label=name, causes=causes(attempt, "span", place), may_be_there=attempt.epoch > 1
        )
        crash.place("span.marked")
        return made

    await recorded_call(scope, f"span {name}", str, mark, takes_path=True)
