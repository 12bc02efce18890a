"""Thought frames inside a durable function: `frames.push(…)`, `frames.resume()`. Each call happens once.

After a crash the function is replayed and gets the same frames again. Outside of a durable function, use `task.frames`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure._durable.attempt import current, recorded_call
from perdure._ground.durations import Duration
from perdure._model import Frame
from perdure._replay import digest
from perdure._tasks import TaskFrames
from perdure.errors import InvalidInput, NoTask


async def push(
    name: str,
    *,
    goal: str,
    done: Sequence[str] = (),
    next: Sequence[str] = (),
    because: str = "",
    expires: Duration | None = "1d",
) -> Frame:
    """Set a line of thought aside, with its finished steps and its next ones."""
    what: dict[str, Any] = {"goal": goal, "done": done, "next": next, "because": because, "expires": expires}
    made: Frame = await _recorded("push frame", Frame, name, lambda kept: kept.push(name, **what))
    return made


async def acknowledge(name: str) -> None:
    """Note that the interruption is dealt with."""
    await _recorded("acknowledge frame", None, name, lambda kept: kept.acknowledge(name))


async def resume(name: str | None = None) -> Frame | None:
    """Take up a frame again: the named one, or the newest; None when there is none."""
    found: Frame | None = await _recorded("resume frame", Frame | None, name, lambda kept: kept.resume(name))
    return found


async def drop(name: str, *, why: str) -> None:
    """Give a frame up, with a reason that is stored."""
    await _recorded("drop frame", None, name, lambda kept: kept.drop(name, why=why))


async def _recorded(what: str, as_type: Any, name: str | None, act: Callable[[TaskFrames], Awaitable[Any]]) -> Any:
    scope = current.get()
    if scope is None:
        raise NoTask(f"frames: {what}")
    if scope.is_body:
        raise InvalidInput(f"{what} is called inside a step", do="call it between steps")
    attempt = scope.attempt

    async def body() -> Any:
        await attempt.flush()
        return await act(TaskFrames(attempt.store, attempt.task_id, attempt.uid))

    return await recorded_call(scope, what, as_type, body, asked=digest((name,), {}))
