"""`state.append` inside a durable function: append to a list in the task's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure._durable.attempt import Attempt, appended_before, causes, current, recorded_call
from perdure._durable.progress.checkpoints import APPEND
from perdure._ground import crash_points as crash
from perdure._replay import digest
from perdure._tasks import append_to_state, causes_of
from perdure.errors import InvalidInput


async def append(path: str | Sequence[str | int], item: Any) -> None:
    """Add an item to a list in the task's state, once. The checkpoint it makes stores only the item.

    Without a task nothing is stored.

    Raises:
        InvalidInput: the value at the path is not a list, or it is called inside a step.
        NotStorable, TooLarge: nothing was written.
    """
    scope = current.get()
    if scope is None:
        return
    if scope.is_body:
        raise InvalidInput("state.append is called inside a step", do="call it in the durable function itself")
    attempt, task = scope.attempt, scope.attempt.task
    assert task is not None
    keys = [path] if isinstance(path, str) else list(path)

    async def add(place: str) -> str:
        known = causes(attempt, "append", place)
        before = await attempt.part(_Before).made_for(place, known)
        made_id = before or (await append_to_state(task, path, item, cause=known[0])).id
        crash.place("append.made")
        return made_id

    # Its checkpoint is recorded, so that a fork or a rollback has the items of the calls that it keeps.
    await recorded_call(scope, APPEND, str | None, add, asked=digest((keys,), {}), takes_path=True)


class _Before:
    """Items added by earlier attempts, or by the source of a fork: one may have died before it could record that."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._of_source = appended_before(attempt.entries)
        self._causes: dict[str, str] | None = {} if attempt.epoch == 1 else None

    async def made_for(self, place: str, known: Sequence[str]) -> str | None:
        """The checkpoint that was made for this call, which has one of these causes."""
        if self._causes is None:
            assert self._attempt.task is not None
            self._causes = await causes_of(self._attempt.task)
        made = self._causes
        return next((made[cause] for cause in known if cause in made), self._of_source.get(place))
