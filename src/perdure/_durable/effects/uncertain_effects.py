"""`app.effects`: what is uncertain across tasks, and settling it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from perdure._durable.effects.ledger import EffectRecord, read_ledger
from perdure._ground.ids import check_id
from perdure._model import FINISHED
from perdure._store import TaskRow
from perdure._tasks import (
    Task,
    Tasks,
    all_questions,
    answer_question,
    choose_question,
    current_row,
    find_row,
    questions_of,
    store_of,
)
from perdure.errors import InvalidInput, NotFound

Json = Any
Choice = Literal["done", "retry", "fail"]


class UncertainEffect(Struct, frozen=True, kw_only=True):
    """An effect that may have happened. A person has to look at its target, by its key."""

    task_id: str
    name: str
    call: str  # with its arguments, as a person reads it
    key: str
    why: str
    since: datetime
    traceback: str = ""  # where the exception was raised that left its outcome open
    is_waited_for: bool  # the task is paused for it; else its code has gone on, and only the record is open


class Effects:
    """The uncertain effects in one namespace of one store, and the verbs that settle them."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)

    async def list(self, *, limit: int = 1000) -> Sequence[UncertainEffect]:
        """The effects that wait for a person, oldest first. An effect whose process has just died is not listed yet:
        the next attempt first tries to settle it by itself."""
        found = await all_questions(self._store, limit=limit)
        return [
            UncertainEffect(
                task_id=one.task_id,
                name=str(one.details.get("name", "")),
                call=str(one.details.get("call", one.text)),
                key=str(one.details.get("key", "")),
                why=str(one.details.get("why", "")),
                since=one.asked_at,
                traceback=str(one.details.get("traceback", "")),
                is_waited_for=bool(one.details.get("waits", True)),
            )
            for one in found
            if one.is_about_effect
        ]

    async def of(self, task_id: str | Task) -> Sequence[EffectRecord]:
        """The ledger of a task: every effect it began, in order, with its key and state."""
        row = await self._row(task_id)
        return await read_ledger(self._store, row.uid, row.line)

    async def settle(
        self, task_id: str, choice: Choice, *, value: Json = None, key: str | None = None, by: str = ""
    ) -> None:
        """Say what became of an uncertain effect: `done` (with its result), `retry` it, or it is to `fail`.

        Raises:
            NotFound: nothing of this task is uncertain (under this key).
            InvalidInput: several are, and no key says which; or the choice does not fit.
            Conflict: another answer was first, and it stands.
        """
        store, row = self._store, await self._row(task_id)
        found = [one for one in await questions_of(store, row.id, row.uid) if one.is_about_effect]
        question = choose_question(found, task_id, store, key=key)
        if choice == "retry" and row.status in FINISHED:
            raise InvalidInput(
                f"task {task_id!r} is {row.status}: it will not be tried again", do="answer done or fail"
            )
        await answer_question(store, question, {"choice": choice, "value": value}, by=by or store.presence.acting_user)

    async def _row(self, task_id: str | Task) -> TaskRow:
        if isinstance(task_id, Task):
            return await current_row(self._store, task_id.id, task_id.uid)
        row = await find_row(self._store, check_id(task_id))
        if row is None:
            raise NotFound("task", task_id, self._store.place)
        return row
