"""Start the tasks of schedules, one per tick, however many workers there are.

The id of a tick's task is derived from the schedule and the moment, so two workers that fire the same tick start the
same task. The tick is marked done afterwards; if a worker dies in between, the next one finds the task already there.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from perdure._durable import function_for
from perdure._durable import schedules as scheduling
from perdure._ground import crash_points as crash
from perdure._model import Plan, tick_id
from perdure._tasks import Kept, Tasks, store_of
from perdure._worker.duty import Rest

# A tick should fire well within a second of its moment.
LOOK = timedelta(seconds=0.2)
_PAGE = 1000


class Schedules:
    name = "schedules"

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._store = store_of(tasks)
        self._shelf = scheduling.shelf_of(self._store)

    async def round(self) -> timedelta | Rest | None:
        now = await self._store.wall_ms()
        due = await self._shelf.due(now, limit=_PAGE)
        for kept in due:
            await self._serve(kept, now)
        return LOOK if due else Rest(LOOK, await self._shelf.until_next(now))

    async def _serve(self, kept: Kept[Plan], now: int) -> None:
        if function_for(kept.value.function, kept.value.version, kept.value.module) is None:
            return  # another worker knows it, or one that is not deployed yet
        plan = await scheduling.with_results(self._store, kept.value)
        ticks: list[int] = []
        if not plan.is_paused:
            ticks, plan = plan.due(now)
        for tick in ticks:
            await scheduling.fire(self._tasks, kept.key, plan, tick)
            crash.place("schedules.fired")
        plan = replace(plan, open=[*plan.open, *(tick_id(kept.key, tick) for tick in ticks)])
        if plan != kept.value:
            await self._shelf.change(kept, plan, due_at=scheduling.next_look(plan))
