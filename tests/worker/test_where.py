"""Why does nobody work on it? `where` knows."""

from __future__ import annotations

import asyncio
import re

import pytest

from perdure import Perdure, durable, effect
from perdure._durable import where
from perdure._durable.declare.versions import _known
from perdure._tasks import read_holder
from perdure._worker.losses.reaper import SILENT
from tests.support.processes import Link, Nursery
from tests.torture.kills import Home
from tests.worker.kit import opened, quick, until, work


@durable
async def unknown_elsewhere() -> None: ...


async def other_code(number: str) -> None: ...


async def next_of(app: Perdure, id: str) -> str:
    return (await where(app.tasks, id)).next


async def _is(app: Perdure, id: str, words: str) -> bool:
    return words in await next_of(app, id)


@pytest.mark.req("R94")
async def test_a_task_whose_code_no_live_worker_knows_says_so(home: Home, children: Nursery) -> None:
    async with opened(home) as app:
        await app.start("task", unknown_elsewhere)
        assert "no worker is running" in await next_of(app, "task")
        worker = children.start(work, home)
        worker.heard()
        await until(lambda: _is(app, "task", "no live worker knows unknown_elsewhere"))
        worker.kill()
        assert "no worker is running" in await next_of(app, "task")


@pytest.mark.req("R94")
async def test_a_task_that_its_worker_cannot_begin_says_why(home: Home, children: Nursery) -> None:
    worker = children.start(work, home)
    worker.heard()
    async with opened(home) as app:
        known = _known.pop(("quick", 1))
        try:
            await app.start("task", durable(name="quick")(other_code), "no number")
        finally:
            _known["quick", 1] = known
        await until(lambda: _is(app, "task", "could not begin: the stored value does not fit"))
        assert f"(pid {worker.pid} on " in await next_of(app, "task")


async def test_another_version_or_queue_is_named(home: Home, children: Nursery) -> None:
    newer = durable(name="quick", version=2)(quick.function)
    try:
        worker = children.start(work, home)
        worker.heard()
        async with opened(home) as app:
            await app.start("newer", newer, 1)
            await app.start("elsewhere", quick.options(queue="slow"), 1)
            await until(lambda: _is(app, "newer", "no live worker knows quick version 2; they know version 1"))
            assert "no live worker takes tasks of queue 'slow'" in await next_of(app, "elsewhere")
    finally:
        del _known["quick", 2]


async def test_old_and_new_workers_side_by_side_take_what_they_know(home: Home, children: Nursery) -> None:
    old = children.start(work, home)
    old.heard()
    newer = durable(name="quick", version=2)(quick.function)
    try:
        async with opened(home) as app, app.worker():
            handles = [await app.start(f"new-{n}", newer, n) for n in range(5)]
            handles += [await app.start(f"old-{n}", quick, n) for n in range(5)]
            for handle in handles:
                await handle.result()
            for n in range(5):
                attempts = (await (await app.tasks.handle(f"new-{n}")).record()).attempts
                assert old.pid not in [attempt.pid for attempt in attempts]
    finally:
        del _known["quick", 2]


# ── an effect of unknown outcome ─────────────────────────────────────────────────────────────────


@effect(timeout="40m")
async def hang() -> None:
    await asyncio.Event().wait()


@durable(name="where: hanging")
async def hanging() -> None:
    await hang()


async def hang_there(link: Link, home: Home) -> None:
    app = home.open()
    await app.start("task", hanging)
    async with app.worker():
        await asyncio.to_thread(link.recv)


async def _is_open(app: Perdure) -> bool:
    if await app.tasks.get("task") is None:
        return False
    return [frame.name for frame in (await where(app.tasks, "task")).frames] == ["hang"]


async def reap(app: Perdure) -> None:
    """What a reaper does that has not heard from the process for a whole lease."""
    task = await app.tasks.open("task")
    holder = await read_holder(app._store, task.uid)
    seen = {"seen_epoch": holder.epoch, "seen_worker": holder.worker, "seen_beats": None, "ended": SILENT}
    params = {**app._store.event(task.uid, "worker_lost", {}), **seen}
    params |= {"losses": 0, "lost_position": 0, "not_before": None}
    assert await app._store.verb("reap", task.uid, params, key="task") is not None


@pytest.mark.req("R94")
async def test_an_open_effect_of_a_process_that_may_be_alive_says_until_when_it_waits(
    home: Home, children: Nursery
) -> None:
    child = children.start(hang_there, home)
    async with opened(home) as app:
        await until(lambda: _is_open(app))
        under_way = await where(app.tasks, "task")
        assert under_way.frames[0].state == "under way" and under_way.frames[0].until is None
        child.stop()
        await reap(app)
        found = await where(app.tasks, "task")
        (frame,) = found.frames
        assert frame.state == "uncertain" and frame.since is not None and frame.until is not None
        waits = (frame.until - frame.since).total_seconds()
        assert 40 * 60 < waits < 40 * 60 + 60, "its time-out and a lease"
        words = f"which may still be alive, or at {frame.until:%Y-%m-%d %H:%M:%S} UTC at the latest"
        assert found.next.startswith("whether hang happened is settled first when its process has ended, " + words)
        child.kill()
        after = await where(app.tasks, "task")
        assert after.frames[0].until is None and "at the latest" not in after.next


@pytest.mark.req("R94")
async def test_that_no_worker_knows_the_version_is_said_also_when_an_effect_is_open(
    home: Home, children: Nursery
) -> None:
    child = children.start(hang_there, home)
    async with opened(home) as app:
        await until(lambda: _is_open(app))
        child.kill()
        assert "And no worker is running" in await next_of(app, "task")
        known = _known.pop(("where: hanging", 1))
        try:
            worker = children.start(work, home)
        finally:
            _known["where: hanging", 1] = known
        worker.heard()
        await until(lambda: _is(app, "task", "And no live worker knows where: hanging: start one that has its code"))
        assert re.match("whether hang happened is settled first", await next_of(app, "task"))
