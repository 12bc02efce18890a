"""Lines about workers: how soon a dead one is noticed, how many tasks they carry, how late they wake."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from perdure.cli.bench.figures import Budget, Figure, Series, figure_of
from perdure.cli.bench.rounds import middle_ms, take_turns
from perdure.cli.bench.stage import Plot

if TYPE_CHECKING:
    from perdure._app import Perdure

_CHILD = "perdure.cli.bench.child"
_LOOK = 0.002


# ── handing over ─────────────────────────────────────────────────────────────────────────────────


async def handover(plot: Plot, quick: bool) -> list[Figure]:
    """From SIGKILL of a worker until its loss is on record, and until its task's step runs elsewhere."""
    noticed, going_on, floor = [], [], []
    logging.getLogger("perdure.worker").setLevel(logging.ERROR)  # that workers are lost is the measurement
    async with plot.app() as app:
        for number in range(2 if quick else 7):
            floor.append(await _death_ms())
            first, second = await _hand_over(app, plot, number)
            noticed.append(first)
            going_on.append(second)
    floor_is = "a bare process killed, until its pidfd says so"
    rounds = {"floor": Series(floor)}
    noticed_rounds, going_rounds = {**rounds, "ours": Series(noticed)}, {**rounds, "ours": Series(going_on)}
    return [
        figure_of(
            "handover",
            "a dead local worker noticed",
            "ms",
            noticed_rounds,
            floor_is=floor_is,
            budget=Budget(200.0, "≤ 200 ms"),
        ),
        figure_of(
            "handover",
            "its task going on elsewhere",
            "ms",
            going_rounds,
            floor_is=floor_is,
            budget=Budget(1000.0, "≤ 1 s"),
        ),
    ]


async def _hand_over(app: Perdure, plot: Plot, number: int) -> tuple[float, float]:
    from perdure.cli.bench.errands import begun, held

    id, path = f"held-{number}", plot.folder / f"held-{number}"
    async with _worker(plot.url) as child:
        handle = await app.start(id, held, str(path))
        while not path.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(_LOOK)
        async with app.worker():
            await asyncio.sleep(0.3)  # so that it has seen the other, as in a fleet at work
            killed = time.time()
            child.send_signal(signal.SIGKILL)
            await handle.result()
    lost = next(event for event in await app.tasks.events(id) if event.kind == "worker_lost")
    return max(lost.at.timestamp() - killed, 0.0) * 1000, (begun[-1] - killed) * 1000


async def _death_ms() -> float:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=subprocess.PIPE)
    fd = os.pidfd_open(process.pid)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, ended.set)
    try:
        began = time.perf_counter()
        process.kill()
        await ended.wait()
        return (time.perf_counter() - began) * 1000
    finally:
        loop.remove_reader(fd)
        os.close(fd)
        await process.wait()


@asynccontextmanager
async def _worker(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    command = [sys.executable, "-m", _CHILD, "work", url]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


# ── carrying many ────────────────────────────────────────────────────────────────────────────────


async def carried(plot: Plot, quick: bool) -> list[Figure]:
    """One-step tasks that were started before, through one worker; on PostgreSQL also through two processes."""
    many = 200 if quick else 2_000
    lap = 0
    async with plot.app() as app:

        async def here() -> float:
            nonlocal lap
            lap += 1
            from perdure.cli.bench.errands import errand

            began = time.perf_counter()
            await asyncio.gather(*(app.run(f"run-{lap}-{number}", errand, number) for number in range(many)))
            return many / (time.perf_counter() - began)

        async def by(workers: int) -> float:
            nonlocal lap
            lap += 1
            return await _through(app, plot.url, f"lap-{lap}", many, workers)

        rounds = 2 if quick else 5
        found = await take_turns(rounds, {"floor": here, "ours": lambda: by(1)}, warm=not quick)
        what = f"one-step tasks through a worker, {many:,} waiting"
        figures = [figure_of("worker", what, "/s", found, floor_is="the same by app.run, all at once in one process")]
        if plot.engine == "postgres":
            both = await take_turns(rounds, {"floor": lambda: by(1), "ours": lambda: by(2)}, warm=not quick)
            what = f"the same through two workers, {os.cpu_count()} cores"
            figures.append(figure_of("worker", what, "/s", both, floor_is="through one worker"))
    return figures


async def _through(app: Perdure, url: str, name: str, many: int, workers: int) -> float:
    """Tasks a second, from the moment the workers are up until the last task has ended."""
    from contextlib import AsyncExitStack

    from perdure.cli.bench.errands import errand

    handles = await asyncio.gather(*(app.start(f"{name}-{number}", errand, number) for number in range(many)))
    async with AsyncExitStack() as stack:
        began = time.perf_counter()
        await asyncio.gather(*(stack.enter_async_context(_worker(url)) for _ in range(workers)))
        up = time.perf_counter()
        await handles[0].result()
        for handle in reversed(handles):
            await handle.result()
        ended = time.perf_counter()
    return many / max(ended - max(began, up - 0.05), 1e-9)


# ── waking up ────────────────────────────────────────────────────────────────────────────────────


async def waking(plot: Plot, quick: bool) -> list[Figure]:
    """Tasks whose wait is over at the same moment, while the worker also has others to carry."""
    many = 50 if quick else 1_000
    late: list[float] = []
    async with plot.app() as app:
        from perdure.cli.bench.errands import errand, nap

        async with app.worker():
            wait = 2.0 if quick else 6.0
            handles = await asyncio.gather(*(app.start(f"nap-{number}", nap, wait) for number in range(many)))
            await asyncio.gather(*(app.start(f"load-{number}", errand, number) for number in range(many)))
            for handle in handles:
                up = await handle.result()
                due = await _due(app, handle.id, wait)
                late.append(max(up - due, 0.0001) * 1000)
        floor = Series([middle_ms(plot.bare.commit, 20) for _ in range(3)])
    late.sort()
    what = f"{many:,} waits over at once, under load: how late, median"
    detail: dict[str, Any] = {"p99_ms": late[int(len(late) * 0.99) - 1], "most_ms": late[-1]}
    rounds = {"floor": floor, "ours": Series([median(late)])}
    return [figure_of("waking", what, "ms", rounds, floor_is=plot.bare.name, **detail)]


async def _due(app: Perdure, id: str, wait: float) -> float:
    """The moment it asked to be up again: it was paused at the end of its first attempt."""
    paused = next(event for event in await app.tasks.events(id) if event.kind == "paused")
    return paused.at.timestamp() + wait
