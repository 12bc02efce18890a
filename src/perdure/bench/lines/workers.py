"""Lines about workers: the time until a dead one is noticed, the rate of tasks, the delay of waits."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

from perdure._store import PauseRow, TaskRow
from perdure._tasks import store_of
from perdure.bench.figures import Budget, Figure, Series, figure_of
from perdure.bench.rounds import middle_ms, take_turns
from perdure.bench.stage import Plot

if TYPE_CHECKING:
    from perdure._app import Perdure

_CHILD = "perdure.bench.child"
_LOOK, _SELDOM = 0.002, 0.05
# Tasks through a worker must reach this share of the speed in one process.
_OF_ONE_PROCESS = 0.6
TASKS, STEPS = 100, 20
_ONE_AFTER_THE_OTHER = {"sqlite": 20_000.0}
# One-step tasks per second through the queue of a peer (DBOS 3.3, same durability) on a machine with two cores.
_PEERS_QUEUE = {"sqlite": 266.0, "postgres": 184.0}
_LATE_MS = 100.0


# ── handing over ─────────────────────────────────────────────────────────────────────────────────


async def handover(plot: Plot, quick: bool) -> list[Figure]:
    """Time from SIGKILL of a worker until its loss is recorded, and until its task's step runs elsewhere."""
    noticed, going_on, floor = [], [], []
    logging.getLogger("perdure.worker").setLevel(logging.ERROR)  # losing workers is what is measured
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
            "its task continued elsewhere",
            "ms",
            going_rounds,
            floor_is=floor_is,
            budget=Budget(1000.0, "≤ 1 s"),
        ),
    ]


async def _hand_over(app: Perdure, plot: Plot, number: int) -> tuple[float, float]:
    from perdure.bench.errands import begun, held

    id, path = f"held-{number}", plot.folder / f"held-{number}"
    async with _worker(plot.url) as child:
        handle = await app.start(id, held, str(path))
        while not path.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(_LOOK)
        async with app.worker():
            await asyncio.sleep(0.3)  # so that it has seen the other worker, as in a running fleet
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
async def _worker(url: str, *, waits: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a worker process; with `waits` it begins when it reads a line."""
    command = [sys.executable, "-m", _CHILD, "work", url, *(["wait"] if waits else [])]
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
    """Run waiting one-step tasks through one worker; on PostgreSQL also through two processes."""
    from perdure.bench.errands import errand

    many = 200 if quick else 2_000
    ids = (f"lap-{lap}" for lap in itertools.count())
    async with plot.app() as app:

        async def here() -> float:
            lap = next(ids)
            began = time.perf_counter()
            await asyncio.gather(*(app.run(f"{lap}-{number}", errand, number) for number in range(many)))
            return many / (time.perf_counter() - began)

        async def by(workers: int) -> float:
            return await _through(app, plot.url, next(ids), many, workers)

        rounds = 2 if quick else 5
        found = await take_turns(rounds, {"floor": here, "ours": lambda: by(1)}, warm=not quick)
        floor = found["floor"].median
        figures = [
            figure_of(
                "worker",
                f"one-step tasks through a worker, {many:,} waiting",
                "/s",
                found,
                floor_is="the same by app.run, all at once in one process",
                budget=Budget(_OF_ONE_PROCESS * floor, f"≥ {_OF_ONE_PROCESS} × floor", at_least=True),
                times_a_peers_queue=found["ours"].median / _PEERS_QUEUE[plot.engine],
            )
        ]
        if plot.engine == "postgres":
            both = await take_turns(rounds, {"floor": lambda: by(1), "ours": lambda: by(2)}, warm=not quick)
            what = f"the same through two workers, {os.cpu_count()} cores"
            bound = Budget(both["floor"].median, "≥ one worker", at_least=True)
            figures.append(figure_of("worker", what, "/s", both, floor_is="through one worker", budget=bound))
        figures.append(await _one_after_the_other(app, plot, ids, quick))
    return figures


async def _one_after_the_other(app: Perdure, plot: Plot, ids: Iterator[str], quick: bool) -> Figure:
    """Start tasks in a loop, each start on disk before the next, while a worker of this process runs them. Gives steps
    per second from the first start to the last end."""
    from perdure.bench.programs import crowded

    async def ours() -> float:
        lap = next(ids)
        began = time.perf_counter()
        handles = [await app.start(f"{lap}-{number}", crowded, STEPS) for number in range(TASKS)]
        await asyncio.gather(*(handle.result() for handle in handles))
        return TASKS * STEPS / (time.perf_counter() - began)

    def floor() -> float:
        """The time of the starts alone, as bare commits."""
        began = time.perf_counter()
        for _ in range(TASKS):
            plot.bare.commit()
        return TASKS * STEPS / (time.perf_counter() - began)

    async with app.worker():
        found = await take_turns(2 if quick else 7, {"floor": floor, "ours": ours}, warm=not quick)
    bound = _ONE_AFTER_THE_OTHER.get(plot.engine)
    return figure_of(
        "worker",
        f"{TASKS} tasks started one after the other × {STEPS} @step",
        "/s",
        found,
        floor_is=f"as many steps in the time of {TASKS} × {plot.bare.name}",
        budget=Budget(bound, f"≥ {bound:,.0f}/s", at_least=True) if bound is not None else None,
    )


async def _through(app: Perdure, url: str, name: str, many: int, workers: int) -> float:
    """Tasks per second, from the start of the workers until the last task has ended."""
    from contextlib import AsyncExitStack

    from perdure.bench.errands import errand

    handles = await asyncio.gather(*(app.start(f"{name}-{number}", errand, number) for number in range(many)))
    uids = [handle._uid for handle in handles]
    async with AsyncExitStack() as stack:
        children = await asyncio.gather(*(stack.enter_async_context(_worker(url, waits=True)) for _ in range(workers)))
        began = time.time()
        for child in children:
            assert child.stdin is not None
            child.stdin.write(b"go\n")
        # Looks now and then, because a caller that waits for results is not measured here.
        while await store_of(app.tasks).query("find_live", uids=json.dumps(uids)):  # noqa: ASYNC110 - other processes end them
            await asyncio.sleep(_SELDOM)
    return many / max(await _last_end(app, uids) - began, 1e-9)


async def _last_end(app: Perdure, uids: list[str]) -> float:
    """The moment the last of these tasks ended, as its row says, in seconds since 1970."""
    rows = await store_of(app.tasks).query("tasks_of", uids=json.dumps(uids))
    return max(TaskRow(*row).finished_at or 0 for row in rows) / 1000


# ── waking up ────────────────────────────────────────────────────────────────────────────────────


async def waking(plot: Plot, quick: bool) -> list[Figure]:
    """Measure waits that are over at the same moment, while the worker also runs other tasks."""
    many = 50 if quick else 1_000
    late: list[float] = []
    async with plot.app() as app:
        from perdure.bench.errands import errand, nap

        async with app.worker():
            wait = 2.0 if quick else 6.0
            handles = await asyncio.gather(*(app.start(f"nap-{number}", nap, wait) for number in range(many)))
            await asyncio.gather(*(app.start(f"load-{number}", errand, number) for number in range(many)))
            for handle in handles:
                up = await handle.result()
                due = await _due(app, handle._uid)
                late.append(max(up - due, 0.0001) * 1000)
        floor = Series([middle_ms(plot.bare.commit, 20) for _ in range(3)])
    late.sort()
    what = f"{many:,} waits over at once, under load: how late, median"
    detail: dict[str, Any] = {"p99_ms": late[int(len(late) * 0.99) - 1], "most_ms": late[-1]}
    rounds = {"floor": floor, "ours": Series([median(late)])}
    budget = Budget(_LATE_MS, f"≤ {_LATE_MS:.0f} ms")
    return [figure_of("waking", what, "ms", rounds, floor_is=plot.bare.name, budget=budget, **detail)]


async def _due(app: Perdure, uid: str) -> float:
    """The moment the wait ends, as its question says. Under load the question reaches the disk some time after it was
    asked."""
    rows = await store_of(app.tasks).rows(PauseRow, "read_pauses", uid=uid)
    return float(rows[0].due_at or 0) / 1000
