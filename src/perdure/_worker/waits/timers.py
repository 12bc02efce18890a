"""End pauses that are due: waits, rate limits, expired questions, and pauses until another task ends.

Every worker looks. Only one of them ends each pause, because the store refuses the write of the others
(perdure/_tasks/pauses/due_pauses.py). Each worker goes through the due pauses in its own order, so that a thousand
timers of one moment are shared, and takes a hundred at a time, so that none of them delays the rest.

Owns the question "which pauses are over?". Checks of the outside world take longer; pollers.py makes them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable
from datetime import timedelta

from perdure._store import DueQuestion, DueTask, EndedWait
from perdure._tasks import Tasks, read_resets, store_of, take_after_task, take_question, take_task
from perdure._worker.duty import Rest

# A timer set by another process is seen within this time; one set by this worker's tasks at once, by the bell.
LOOK = timedelta(seconds=0.5)
AT_ONCE = timedelta(0)
# How many due pauses a round reads, and how many of them it takes at the same time.
WINDOW, TOGETHER = 400, 100


class Timers:
    name = "timers"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)

    async def round(self) -> timedelta | Rest | None:
        store = self._store
        now = await store.wall_ms()
        questions = await store.rows(DueQuestion, "due_pauses", namespace=store.namespace, polls=0, limit=WINDOW)
        paused = await store.rows(DueTask, "due_tasks", namespace=store.namespace, polls=0, limit=WINDOW)
        ended = await store.rows(EndedWait, "due_after_tasks", namespace=store.namespace, limit=WINDOW)
        due_questions = [row for row in questions if row.due_at <= now]
        due_tasks = [row for row in paused if row.due_at <= now]
        resets = await read_resets(store) if due_questions or due_tasks else {}
        await take_all(
            [
                *(take_question(store, due, now, resets) for due in due_questions),
                *(take_task(store, uid, due_at, now, resets) for uid, due_at in due_tasks),
                *(take_after_task(store, row) for row in ended),
            ]
        )
        if max(len(due_questions), len(due_tasks), len(ended)) == WINDOW:
            return AT_ONCE
        next_due = time_until_next([row.due_at for row in questions] + [row.due_at for row in paused], now)
        is_idle = not (due_questions or due_tasks or ended)
        return Rest(LOOK, next_due) if is_idle else min(LOOK, next_due or LOOK)


async def take_all(work: Iterable[Awaitable[bool]]) -> None:
    """Await all of `work`, a hundred at a time; if there is more, in random order, so that workers share it."""
    waiting = list(work)
    if len(waiting) > TOGETHER:
        random.shuffle(waiting)
    for first in range(0, len(waiting), TOGETHER):
        answers = await asyncio.gather(*waiting[first : first + TOGETHER], return_exceptions=True)
        trouble = [answer for answer in answers if isinstance(answer, BaseException)]
        if trouble:
            for rest in waiting[first + TOGETHER :]:
                if asyncio.iscoroutine(rest):
                    rest.close()
            raise trouble[0]


def time_until_next(moments: Iterable[int], now: int) -> timedelta | None:
    """The time until the first of these moments that is not over; None if all are over."""
    later = min((moment for moment in moments if moment > now), default=None)
    return None if later is None else timedelta(milliseconds=later - now)
