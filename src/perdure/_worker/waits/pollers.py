"""Check addresses, files and commands that tasks wait for, and resume each task whose condition is met.

A worker takes a check before it makes it, by storing when the next one is due. So only one worker makes each check,
and if that worker dies in the middle, the next check is due as usual. No code of a task runs here, and a check takes
none of the worker's slots. A check that needs the task's own code is not made here: the task itself is carried on.

Owns the question "is it there yet?". perdure/_tasks/pauses/checks.py makes a single check.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from datetime import timedelta

from perdure._store import DueQuestion, DueTask
from perdure._tasks import Tasks, read_resets, store_of, take_question, take_task
from perdure._worker.duty import Rest
from perdure._worker.waits.timers import AT_ONCE, LOOK, time_until_next
from perdure.errors import PerdureError

log = logging.getLogger("perdure.worker")

# How many checks may be under way in this process at a time.
MOST = 32


class Pollers:
    name = "pollers"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._loop: asyncio.Task[None] | None = None
        self._under_way: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def round(self) -> timedelta | Rest | None:
        self._end_with(asyncio.current_task())
        store = self._store
        now = await store.wall_ms()
        limit = MOST * 2
        questions = await store.rows(DueQuestion, "due_pauses", namespace=store.namespace, polls=1, limit=limit)
        paused = await store.rows(DueTask, "due_tasks", namespace=store.namespace, polls=1, limit=limit)
        resets = await read_resets(store) if questions or paused else {}
        due: dict[tuple[str, str], Awaitable[bool]] = {}
        for row in questions:
            if row.due_at <= now:
                due[row.uid, row.path] = take_question(store, row, now, resets)
        for uid, due_at in paused:
            if due_at <= now:
                due[uid, ""] = take_task(store, uid, due_at, now, resets)
        left = self._begin(due)
        if left:
            await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
            return AT_ONCE
        next_due = time_until_next([row.due_at for row in questions] + [row.due_at for row in paused], now)
        return min(LOOK, next_due or LOOK) if due or self._under_way else Rest(LOOK, next_due)

    def _end_with(self, loop: asyncio.Task[None] | None) -> None:
        """Cancel the checks under way when the loop that began them ends."""
        if loop is not self._loop and loop is not None:
            self._loop = loop
            loop.add_done_callback(lambda _: self._end())

    def _begin(self, due: dict[tuple[str, str], Awaitable[bool]]) -> int:
        """Begin as many checks as there is room for. Returns how many are left."""
        left = 0
        for key, work in due.items():
            if key in self._under_way or len(self._under_way) >= MOST:
                left += key not in self._under_way
                if asyncio.iscoroutine(work):
                    work.close()
                continue
            self._under_way[key] = asyncio.create_task(self._make(key, work))
        return left

    async def _make(self, key: tuple[str, str], work: Awaitable[bool]) -> None:
        try:
            await work
        except PerdureError as error:
            log.warning("a check failed: %s", error.what)
        finally:
            self._under_way.pop(key, None)

    def _end(self) -> None:
        """Cancel the checks under way; the store knows when the next ones are due."""
        for task in list(self._under_way.values()):
            task.cancel()
