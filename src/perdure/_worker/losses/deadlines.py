"""Fail tasks that exceed their `options(timeout=…)`, whether they are running, paused or waiting."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from perdure._store import OverdueTask
from perdure._tasks import Tasks, fail_overdue, store_of, task_by_uid
from perdure._worker.duty import Rest
from perdure.errors import NotFound

log = logging.getLogger("perdure.worker")

_PAGE = 100
# The clock of the machine that started a task may be behind ours by up to this much.
_SKEW_MS = 600_000
LOOK = timedelta(seconds=0.2)


class Deadlines:
    name = "deadlines"

    def __init__(self, tasks: Tasks, cancel: Callable[[str], None]) -> None:
        self._tasks, self._store, self._cancel = tasks, store_of(tasks), cancel
        self._since = 0  # deadlines before this moment are done

    async def round(self) -> timedelta | Rest | None:
        now = await self._store.wall_ms()
        rows = await self._store.rows(
            OverdueTask, "find_overdue", namespace=self._store.namespace, since=self._since, limit=_PAGE
        )
        overdue = [row for row in rows if row.deadline_at <= now]
        for uid, id, deadline_at in overdue:
            await self._end(uid, id, deadline_at)
        if len(overdue) == _PAGE:
            return timedelta(0)
        self._since = max(now - _SKEW_MS, 0)
        if overdue:
            return LOOK
        later = next((row.deadline_at for row in rows if row.deadline_at > now), None)
        return Rest(LOOK, None if later is None else timedelta(milliseconds=later - now))

    async def _end(self, uid: str, id: str, deadline_at: int) -> None:
        try:
            task = await task_by_uid(self._tasks, uid)
        except NotFound:
            return
        error = await fail_overdue(task, deadline_at)
        if error is not None:
            log.warning("%s", error.what)
            self._cancel(uid)
