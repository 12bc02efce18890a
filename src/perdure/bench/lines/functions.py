"""Lines about durable functions, through the public API: steps, effects, starting, replaying, model calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

from perdure.bench.bare import per_second, thousand_commits_ms
from perdure.bench.bare_functions import BareFunctions
from perdure.bench.figures import Budget, Figure, figure_of
from perdure.bench.programs import crowded, effects, one_step, plain_effects, replayed, replayed_scopes, steps, talk
from perdure.bench.rounds import Contestant, take_turns
from perdure.bench.stage import Plot

TASKS, STEPS = 100, 20
_TOGETHER = {"sqlite": 40_000.0, "postgres": 20_000.0}
_TASKS = {"sqlite": 8_000.0, "postgres": 4_000.0}


class _Ids:
    """A new id for each run."""

    def __init__(self, name: str) -> None:
        self._name, self._number = name, 0

    def __call__(self) -> str:
        self._number += 1
        return f"{self._name}-{self._number}"


async def chains(plot: Plot, quick: bool) -> list[Figure]:
    """Run 1,000 steps and 1,000 effects one after the other, and 1,000 effects of a plain function, which commits
    itself."""
    many = 300 if quick else 1000
    async with plot.app() as app, plot.pipeline() as pipeline:
        ids, bare = _Ids("chain"), BareFunctions(pipeline)

        async def stepping() -> float:
            return await _ms(app.run(ids(), steps, 1000))

        async def effecting() -> float:
            return await _ms(app.run(ids(), effects, many)) * (1000 / many)

        async def plainly() -> float:
            return await _ms(app.run(ids(), plain_effects, many)) * (1000 / many)

        async def bare_stepping() -> float:
            return await bare.chain_ms(1000, each_is_waited_for=False)

        async def bare_effecting() -> float:
            return await bare.chain_ms(many, each_is_waited_for=True) * (1000 / many)

        floor: dict[str, Contestant] = {"floor": lambda: thousand_commits_ms(plot.bare, 200 if quick else 500)}
        stepped = await take_turns(3 if quick else 9, bare.beside({**floor, "ours": stepping}, bare_stepping))
        effected = await take_turns(2 if quick else 5, bare.beside({**floor, "ours": effecting}, bare_effecting))
        plain = await take_turns(2 if quick else 5, bare.beside({**floor, "ours": plainly}, bare_effecting))
    floor_is = f"1,000 × {plot.bare.name}"
    return [
        figure_of(
            "steps",
            f"1,000 {kind} one after the other",
            "ms",
            found,
            floor_is=floor_is,
            budget=Budget(limit * found["floor"].median, f"≤ {limit} × floor"),
            us_each=found["ours"].median,
        )
        for kind, found, limit in (
            ("@step", stepped, 0.2),
            ("@effect", effected, 1.8),
            ("@effect of a plain function", plain, 1.8),
        )
    ]


async def _ms(work: Any) -> float:
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * 1000


async def crowd(plot: Plot, quick: bool) -> list[Figure]:
    """Run 100 tasks of 20 steps each at once, and tasks of one step from their start to their result."""
    many = 200 if quick else 1000
    async with plot.app() as app, plot.pipeline() as pipeline:
        ids, bare = _Ids("task"), BareFunctions(pipeline)

        async def all_steps() -> float:
            named = [ids() for _ in range(TASKS)]
            ms = await _ms(asyncio.gather(*(app.run(id, crowded, STEPS) for id in named)))
            return TASKS * STEPS / ms * 1000

        async def all_tasks() -> float:
            named = [ids() for _ in range(many)]
            return many / await _ms(asyncio.gather(*(app.run(id, one_step, 1) for id in named))) * 1000

        async def bare_steps() -> float:
            return TASKS * STEPS / await bare.tasks_seconds(TASKS, STEPS)

        async def bare_tasks() -> float:
            return many / await bare.tasks_seconds(many, 1)

        floor: dict[str, Contestant] = {"floor": lambda: per_second(plot.bare, 200 if quick else 500)}
        stepped = await take_turns(3 if quick else 9, bare.beside({**floor, "ours": all_steps}, bare_steps))
        started = await take_turns(2 if quick else 5, bare.beside({**floor, "ours": all_tasks}, bare_tasks))
    bounds = _TOGETHER[plot.engine], _TASKS[plot.engine]
    budgets = [Budget(bound, f"≥ {bound:,.0f}/s", at_least=True) for bound in bounds]
    what = f"{TASKS} tasks × {STEPS} @step at once", f"tasks of one @step, start to result, {many} at once"
    return [
        figure_of("crowd", what[0], "/s", stepped, floor_is=plot.bare.name, budget=budgets[0]),
        figure_of("crowd", what[1], "/s", started, floor_is=plot.bare.name, budget=budgets[1]),
    ]


async def replay(plot: Plot, quick: bool) -> list[Figure]:
    """Replay recorded steps: in one scope, and in a function with many asyncio tasks."""
    many = 2_000 if quick else 10_000
    async with plot.app() as app:

        async def in_one() -> float:
            return await _replays(app, "one", replayed, many)

        async def in_many() -> float:
            return await _replays(app, "many", replayed_scopes, many)

        plot.bare.fill(many)

        def floor() -> float:
            began = time.perf_counter()
            return plot.bare.read() / (time.perf_counter() - began)

        rounds = await take_turns(3 if quick else 7, {"floor": floor, "one": in_one, "many": in_many})
    floor_is = "a bare SELECT of as many rows of 40 bytes"
    what = f"replay of {many:,} steps in one scope", f"replay of {many:,} steps in 100 scopes"
    budgets = [Budget(bound, f"≥ {bound:,.0f}/s", at_least=True) for bound in (200_000.0, 50_000.0)]
    return [
        figure_of("replay", what[0], "/s", {**rounds, "ours": rounds["one"]}, floor_is=floor_is, budget=budgets[0]),
        figure_of("replay", what[1], "/s", {**rounds, "ours": rounds["many"]}, floor_is=floor_is, budget=budgets[1]),
        await _first_step(plot, quick),
    ]


async def _replays(app: Any, id: str, function: Any, many: int) -> float:
    """Resume a task that waits for an answer, and time its code up to the wait."""
    from perdure.bench import programs

    task = await (await app.start(id, function, many)).task()
    if task.is_paused:
        await task.resume()
    programs.took.clear()
    work = asyncio.ensure_future(app.run(id, function, many))
    await app.tasks.wait_for(id, status="paused")
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    return many / programs.took[-1]


async def _first_step(plot: Plot, quick: bool) -> Figure:
    """The time in which a process that has imported the code continues a task of 1,000 recorded steps, until its first
    new step."""
    async with plot.app() as app:
        await _replays(app, "first", replayed, 1000)
    code = (
        "import asyncio, sys, time; from perdure import Perdure; from perdure.bench import programs\n"
        "began = time.perf_counter()\n"
        "asyncio.run(programs.take_up(sys.argv[1], began))"
    )

    def ours() -> float:
        found = subprocess.run(
            [sys.executable, "-c", code, plot.url], capture_output=True, text=True, check=True, encoding="utf-8"
        )
        return float(json.loads(found.stdout)["ms"])

    def floor() -> float:
        began = time.perf_counter()
        plot.bare.read()
        return (time.perf_counter() - began) * 1000

    rounds = await take_turns(2 if quick else 5, {"floor": floor, "ours": ours})
    what = "first new step of a new process, 1,000 recorded"
    return figure_of("replay", what, "ms", rounds, floor_is="the bare SELECT above", budget=Budget(300.0, "≤ 300 ms"))


async def conversation(plot: Plot, quick: bool) -> list[Figure]:
    """The stored bytes of 100 model calls of one growing conversation. They must grow with its messages, not with their
    square."""
    from perdure.streams import stored_bytes

    async with plot.app() as app:
        calls = 100
        said = await app.run("talk", talk, calls)
        kept = await stored_bytes(app, "talk")
    what = f"journal of {calls} model calls of a growing conversation"
    return [
        Figure(
            name="conversation",
            what=what,
            unit="B",
            figure=float(kept),
            floor=float(said),
            floor_is="the bytes of all messages, once",
            budget=Budget(2.0 * said, "≤ 2 × floor"),
        )
    ]
