"""What `app.run` does while its task is paused, stopped or with somebody else: says why, once, and tries again what
only the code could settle.

A task that has diverged waits for other code. Whoever runs it again may bring it: the journal is compared anew,
and nothing runs before it fits.
"""

from __future__ import annotations

import logging
from shlex import quote
from typing import Any

from perdure._durable.lifecycle.stopped_task import Stopped
from perdure._model import Pause
from perdure._store import Store, TaskRow
from perdure._tasks import Task, Tasks, fail_overdue, questions_of, store_of
from perdure.errors import InvalidTransition

log = logging.getLogger("perdure.durable")


class Standing:
    """The pauses that one call of `app.run` has met."""

    def __init__(self, tasks: Tasks, task: Task, *, is_quiet: bool = False) -> None:
        self._store, self._task, self._is_quiet = store_of(tasks), task, is_quiet
        self._told: int | None = None  # the version of the task whose pause was told
        self._has_tried = False
        self._knows_deadline = False
        self._deadline_at: int | None = None
        self.why = ""  # what was told last

    def tell(self, why: str) -> None:
        """Say why the task cannot be carried on here just now: once, as long as it stays the same."""
        if why and why != self.why:
            log.warning("task %s is waited for: %s", self._task.id, why)
        self.why = why

    async def look(self, row: TaskRow) -> None:
        """Tell of a pause that is new.

        Raises:
            TimedOut: the time of the whole task is over, and it has failed.
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
            return  # the caller is told by what it gets
        elif asked := await asked_of_a_person(self._store, row):
            log.warning("%s", asked)
        else:
            log.info("task %s waits for %s: %s", row.id, pause.reason, _safe(pause.message))

    async def _hold_to_its_time(self, row: TaskRow) -> None:
        if not self._knows_deadline:
            self._knows_deadline = True
            self._deadline_at = (await self._store.query("get_call", uid=row.uid))[0][9]
        if self._deadline_at is not None and self._deadline_at <= await self._store.wall_ms():
            late = await fail_overdue(self._task, self._deadline_at)
            if late is not None:
                raise late

    async def _try_again(self) -> None:
        log.info("task %s had diverged; its journal is compared with the code as it is now", self._task.id)
        try:
            await self._task.resume()
        except InvalidTransition:
            return  # somebody else was quicker


async def stopped(store: Store, row: TaskRow) -> Stopped[Any]:
    """A paused task, and what ends its pause."""
    pause: Pause | None = store.unseal(row.uid, "pause", row.pause, Pause) if row.pause is not None else None
    open_ = await questions_of(store, row.id, row.uid)
    told = "; ".join(one.waits_for for one in open_) or (f"{pause.reason}: {pause.message}" if pause else "")
    return Stopped(id=row.id, status="paused", pause=pause, waits_for=told)


async def asked_of_a_person(store: Store, row: TaskRow) -> str:
    """What a paused task waits for a person to say, and how they say it; nothing when it waits for something else.

    Nobody who waits for a person should have to guess that they do.
    """
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
    """A question may be a model's words, and a warning goes to a terminal: nothing in it is to act there."""
    return "".join(found if found.isprintable() else repr(found)[1:-1] for found in text)
