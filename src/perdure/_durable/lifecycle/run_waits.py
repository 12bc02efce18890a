"""What `app.run` does while its task is paused, stopped, or held by another process: it logs the reason once.

A task that has diverged waits for other code, and a new `app.run` may bring it. So the journal is compared again, once
per call. No step runs before the code fits the journal.

`app.run_until_paused` returns what it met as a `Stopped` instead of waiting.
"""

from __future__ import annotations

import logging
from shlex import quote
from typing import Any, Generic, TypeVar

from msgspec import Struct

from perdure._model import Pause, Status
from perdure._store import CallRow, Store, TaskRow
from perdure._tasks import Task, Tasks, fail_overdue, questions_of, store_of
from perdure.errors import Conflict, InvalidTransition

R = TypeVar("R")
log = logging.getLogger("perdure.durable")


class Stopped(Struct, Generic[R], frozen=True, kw_only=True):
    """A task that has completed, is paused, or is pending because it depends on other tasks."""

    id: str
    status: Status
    pause: Pause | None = None  # why it is paused: reason, message, since, due_at
    waits_for: str = ""  # one line: what ends the wait; empty when completed
    value: Any = None

    @property
    def is_paused(self) -> bool:
        return self.status == "paused"

    @property
    def is_finished(self) -> bool:
        return self.status == "completed"

    @property
    def result(self) -> R:
        """What the function returned.

        Raises:
            Conflict: it has not returned yet.
        """
        if not self.is_finished:
            raise Conflict(
                f"task {self.id!r} is {self.status} and has no result yet: {self.waits_for}",
                kept="the task as it is",
                do="check `stopped.is_paused` first; call run_until_paused again once it can continue",
            )
        value: R = self.value
        return value


class WaitNotices:
    """The pauses that one call of `app.run` has already logged."""

    def __init__(self, tasks: Tasks, task: Task, *, is_quiet: bool = False) -> None:
        self._store, self._task, self._is_quiet = store_of(tasks), task, is_quiet
        self._told: int | None = None  # the task's version when its pause was logged
        self._has_tried = False
        self._knows_deadline = False
        self._deadline_at: int | None = None
        self.why = ""  # the last reason logged

    def tell(self, why: str) -> None:
        """Log why the task cannot be carried on here now; once, while the reason stays the same."""
        if why and why != self.why:
            log.warning("waiting for task %s: %s", self._task.id, why)
        self.why = why

    async def look(self, row: TaskRow) -> None:
        """Log a new pause.

        Raises:
            TimedOut: the time-out of the task is over, and it has failed.
        """
        await self._hold_to_its_time(row)
        if row.version == self._told or row.pause is None:
            return
        self._told = row.version
        pause: Pause = self._store.unseal(row.uid, "pause", row.pause, Pause)
        if pause.details.get("diverged") and not self._has_tried:
            self._has_tried = True
            await self._try_again()
        elif self._is_quiet:
            return  # the caller learns it from the return value
        elif asked := await asked_of_a_person(self._store, row):
            log.warning("%s", asked)
        else:
            log.info("task %s waits for %s: %s", row.id, pause.reason, _safe(pause.message))

    async def _hold_to_its_time(self, row: TaskRow) -> None:
        if not self._knows_deadline:
            self._knows_deadline = True
            self._deadline_at = (await self._store.rows(CallRow, "get_call", uid=row.uid))[0].deadline_at
        if self._deadline_at is not None and self._deadline_at <= await self._store.wall_ms():
            late = await fail_overdue(self._task, self._deadline_at)
            if late is not None:
                raise late

    async def _try_again(self) -> None:
        log.info("task %s had diverged; comparing its journal with the current code", self._task.id)
        try:
            await self._task.resume()
        except InvalidTransition:
            return  # another process has already resumed it


async def stopped(store: Store, row: TaskRow) -> Stopped[Any]:
    """A paused task, with what ends its pause."""
    pause: Pause | None = store.unseal(row.uid, "pause", row.pause, Pause) if row.pause is not None else None
    open_ = await questions_of(store, row.id, row.uid)
    told = "; ".join(one.waits_for for one in open_) or (f"{pause.reason}: {pause.message}" if pause else "")
    return Stopped(id=row.id, status="paused", pause=pause, waits_for=told)


async def asked_of_a_person(store: Store, row: TaskRow) -> str:
    """The question a paused task asks a person, and the command that answers it; empty when it waits for something
    else. A program that waits for a person must say so."""
    pause: Pause | None = store.unseal(row.uid, "pause", row.pause, Pause) if row.pause is not None else None
    if pause is None or pause.reason not in ("human_approval", "human_input"):
        return ""
    if "effect" in pause.details:
        why = str(pause.details.get("why")).partition("\n")[0]
        what, way = _safe(f"{pause.message} ({why})"), f"perdure answer {quote(row.id)} done|retry|fail"
        return f"task {row.id} waits: {what}; settle it: {way}"
    open_ = await questions_of(store, row.id, row.uid)
    way = open_[0].way_on if open_ else f"perdure resume {quote(row.id)}"
    return f"task {row.id} waits for {pause.reason}: {_safe(pause.message)}; {way}"


def _safe(text: str) -> str:
    """Escapes control characters: a question may come from a model, and a warning is printed on a terminal."""
    return "".join(found if found.isprintable() else repr(found)[1:-1] for found in text)
