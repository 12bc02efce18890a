"""Lines about tasks from start to finish, and the share of the engine in their time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from perdure._tasks import store_of
from perdure.bench.bare import per_second
from perdure.bench.figures import Figure, figure_of
from perdure.bench.inside import SMALL, counted
from perdure.bench.rounds import Contestant, take_turns
from perdure.bench.stage import Plot


async def tasks(plot: Plot, quick: bool) -> list[Figure]:
    """Open and complete many tasks at once from one process."""
    many = 200 if quick else 500
    async with plot.app() as app, plot.pipeline() as bare_pipeline:
        lap = 0

        async def one(id: str) -> None:
            task = await app.tasks.open(id)
            await task.complete({"done": True})

        async def ours() -> float:
            nonlocal lap
            lap += 1
            began = time.perf_counter()
            await asyncio.gather(*(one(f"task-{lap}-{number}") for number in range(many)))
            return many / (time.perf_counter() - began)

        contestants: dict[str, Contestant] = {
            "floor": lambda: per_second(plot.bare, 200 if quick else 500),
            "ours": ours,
        }
        if bare_pipeline is not None:
            contestants["prototype"] = _prototype(bare_pipeline, many)
        rounds = await take_turns(3 if quick else 7, contestants)
        where = await _where_time_goes(app, one, many)
    return [
        figure_of(
            "tasks",
            f"tasks, open to complete, {many} at once",
            "/s",
            rounds,
            floor_is=plot.bare.name,
            budget=None,  # `crowd` measures tasks of one step
            **where,
        )
    ]


def _prototype(pipeline: Any, many: int) -> Contestant:
    lap = 0

    async def one(id: str) -> None:
        await pipeline.start(id)
        pipeline.append(id, 1, SMALL)
        await pipeline.finish(id)

    async def all_of_them() -> float:
        nonlocal lap
        lap += 1
        began = time.perf_counter()
        await asyncio.gather(*(one(f"task-{lap}-{number}") for number in range(many)))
        return many / (time.perf_counter() - began)

    return all_of_them


async def _where_time_goes(app: Any, one: Any, many: int) -> dict[str, float]:
    """The calls of the engine for one task, and the milliseconds of each second that they took."""
    with counted(store_of(app.tasks)) as tally:
        began, on_cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one(f"counted-{number}") for number in range(many)))
        taken, on_cpu = time.perf_counter() - began, time.process_time() - on_cpu
    return {
        "reads_per_task": tally.reads / many,
        "writes_per_task": tally.writes / many,
        "writes_per_commit": tally.writes / max(tally.commits, 1),
        "ms_per_task": taken / many * 1000,
        "ms_cpu_per_task": on_cpu / many * 1000,
        "ms_reading_per_task": tally.read_seconds / many * 1000,
        "ms_committing_per_task": tally.commit_seconds / many * 1000,
    }
