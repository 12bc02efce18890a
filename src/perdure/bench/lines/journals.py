"""Lines about the journal: a chain of entries, many tasks at once, reading it back, its size."""

from __future__ import annotations

import asyncio
import time

from perdure._tasks import store_of
from perdure.bench.bare import per_second, thousand_commits_ms
from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.inside import SMALL, Journal
from perdure.bench.rounds import Contestant, take_turns
from perdure.bench.stage import Plot

TASKS, ENTRIES = 100, 20
_TOGETHER = {"sqlite": 40_000.0, "postgres": 20_000.0}


async def chain(plot: Plot, quick: bool) -> list[Figure]:
    """Append 1,000 entries of one task: first waiting for the last one only, then for each."""
    waited_for = 300 if quick else 1000
    async with plot.app() as app, plot.pipeline() as bare_pipeline:
        journal = await Journal.of(app, "chain")

        async def pipelined() -> float:
            began = time.perf_counter()
            for _ in range(999):
                journal.append()
                await asyncio.sleep(0)  # as after a step, other tasks get their turn
            await journal.append(urgent=True)
            return (time.perf_counter() - began) * 1000

        async def each() -> float:
            began = time.perf_counter()
            for _ in range(waited_for):
                await journal.append(urgent=True)
            return (time.perf_counter() - began) * 1000 * (1000 / waited_for)

        floor: dict[str, Contestant] = {"floor": lambda: thousand_commits_ms(plot.bare, 200 if quick else 500)}
        first: dict[str, Contestant] = {**floor, "ours": pipelined}
        second: dict[str, Contestant] = {**floor, "ours": each}
        if bare_pipeline is not None:
            position = 0
            await bare_pipeline.start("chain")

            async def prototype() -> float:
                nonlocal position
                began = time.perf_counter()
                for _ in range(999):
                    position += 1
                    bare_pipeline.append("chain", position, SMALL)
                    await asyncio.sleep(0)
                position += 1
                await bare_pipeline.append_and_wait("chain", position, SMALL)
                return (time.perf_counter() - began) * 1000

            async def prototype_each() -> float:
                nonlocal position
                began = time.perf_counter()
                for _ in range(waited_for):
                    position += 1
                    await bare_pipeline.append_and_wait("chain", position, SMALL)
                return (time.perf_counter() - began) * 1000 * (1000 / waited_for)

            first, second = {**first, "prototype": prototype}, {**second, "prototype": prototype_each}
        chained = await take_turns(3 if quick else 9, first)
        singly = await take_turns(2 if quick else 5, second)
    bare_is = f"1,000 × {plot.bare.name}"
    return [
        figure_of(
            "chain",
            "1,000 entries of a chain, one barrier",
            "ms",
            chained,
            floor_is=bare_is,
            budget=Budget(0.2 * chained["floor"].median, "≤ 0.2 × floor"),
            us_per_entry=chained["ours"].median,
        ),
        figure_of(
            "chain",
            "1,000 entries, each waited for",
            "ms",
            singly,
            floor_is=bare_is,
            us_per_entry=singly["ours"].median,
        ),
    ]


async def together(plot: Plot, quick: bool) -> list[Figure]:
    """Append 20 entries for each of 100 tasks, all at once in one process."""
    async with plot.app() as app, plot.pipeline() as bare_pipeline:
        journals = await asyncio.gather(*(Journal.of(app, f"task-{number}") for number in range(TASKS)))
        committer = store_of(app.tasks).committer

        async def work(journal: Journal) -> None:
            for _ in range(ENTRIES - 1):
                journal.append()
                await asyncio.sleep(0)
            await journal.append(urgent=True)

        async def ours() -> float:
            began = time.perf_counter()
            await asyncio.gather(*map(work, journals))
            return TASKS * ENTRIES / (time.perf_counter() - began)

        contestants: dict[str, Contestant] = {
            "floor": lambda: per_second(plot.bare, 200 if quick else 500),
            "ours": ours,
        }
        if bare_pipeline is not None:
            lap = 0
            for number in range(TASKS):
                await bare_pipeline.start(f"task-{number}")

            async def bare_work(task: str, first: int) -> None:
                for position in range(first, first + ENTRIES - 1):
                    bare_pipeline.append(task, position, SMALL)
                    await asyncio.sleep(0)
                await bare_pipeline.append_and_wait(task, first + ENTRIES - 1, SMALL)

            async def prototype() -> float:
                nonlocal lap
                lap += 1
                began = time.perf_counter()
                await asyncio.gather(*(bare_work(f"task-{number}", lap * ENTRIES) for number in range(TASKS)))
                return TASKS * ENTRIES / (time.perf_counter() - began)

            contestants["prototype"] = prototype
        batches, writes = committer.batches, committer.writes
        rounds = await take_turns(5 if quick else 15, contestants)
        per_batch = (committer.writes - writes) / max(committer.batches - batches, 1)
    bound = _TOGETHER[plot.engine]
    return [
        figure_of(
            "together",
            f"{TASKS} tasks × {ENTRIES} entries at once",
            "/s",
            rounds,
            floor_is=plot.bare.name,
            budget=Budget(bound, f"≥ {bound:,.0f}/s", at_least=True),
            entries_per_commit=per_batch,
        )
    ]


async def read(plot: Plot, quick: bool) -> list[Figure]:
    """Read a long journal in one query, unseal and decode it."""
    entries = 5_000 if quick else 20_000
    async with plot.app() as app:
        journal = await Journal.of(app, "long")
        for _ in range(entries - 1):
            journal.append()
        await journal.append(urgent=True)
        plot.bare.fill(entries)

        async def ours() -> float:
            began = time.perf_counter()
            found = len(await journal.read())
            return found / (time.perf_counter() - began)

        def floor() -> float:
            began = time.perf_counter()
            found = plot.bare.read()
            return found / (time.perf_counter() - began)

        rounds = await take_turns(5 if quick else 11, {"floor": floor, "ours": ours})
    what = f"journal of {entries:,} entries read and decoded"
    return [figure_of("read", what, "/s", rounds, floor_is="a bare SELECT of as many rows of 40 bytes")]


async def size(plot: Plot, quick: bool) -> list[Figure]:
    """Measure the stored size of a trivial entry."""
    entries = 5_000 if quick else 20_000
    async with plot.app() as app:
        await Journal.of(app, "first")
    before = plot.bytes_stored()
    async with plot.app() as app:
        journal = await Journal.of(app, "sized")
        for _ in range(entries - 1):
            journal.append()
        await journal.append(urgent=True)
        own = len(store_of(app.tasks).seal("", "entry", SMALL))
    each = (plot.bytes_stored() - before) / entries
    what = f"size of the store per trivial entry (of {entries:,})"
    return [
        Figure(name="size", what=what, unit="B", figure=each, floor=float(own), floor_is="the sealed entry's own bytes")
    ]
