"""Timers: each pause that is due is taken by exactly one of those who look, and a thousand of one moment are shared."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from perdure import Perdure, durable, pause
from perdure._ground.clock import MovableClock
from perdure._store import DueQuestion
from perdure._tasks import take_question, take_task
from perdure._worker.waits.timers import WINDOW, Timers
from tests.support import engines
from tests.support.processes import Link, Nursery
from tests.support.waiting import look_again

clock = engines.clock  # which moves this process too, not only its children


async def work(link: Link, url: str) -> None:
    async with Perdure(url) as app, app.worker():
        link.send(("said", "ready"))
        await asyncio.Event().wait()


async def make_paused(app: Perdure, count: int) -> None:
    for number in range(count):
        task = await app.tasks.open(f"t{number}", state={"n": number})
        await task.pause("later", reason="scheduled_wait", duration=timedelta(hours=1))


@pytest.mark.req("R49")
async def test_a_hundred_due_tasks_are_resumed_a_hundred_times_by_three_processes(
    shared_url: str, clock: MovableClock, children: Nursery
) -> None:
    workers = [children.start(work, shared_url, env={"PERDURE_TEST_CLOCK": str(clock.path)}) for _ in range(3)]
    assert [worker.heard() for worker in workers] == ["ready"] * 3
    async with Perdure(shared_url) as app:
        await make_paused(app, 100)
        clock.advance(hours=2)
        async with asyncio.timeout(120):
            while len(await app.tasks.list(status="paused")):
                await look_again()
        resumed = Counter[str]()
        for number in range(100):
            resumed.update(event.kind for event in await app.tasks.events(f"t{number}"))
        assert resumed["resumed"] == 100


@pytest.mark.req("R49")
async def test_of_many_who_take_the_same_pause_one_does(url: str, clock: MovableClock) -> None:
    @durable
    async def waits() -> None:
        await pause.wait(hours=1)

    async with Perdure(url) as app:
        task = await app.tasks.open("plain", state={})
        await task.pause("later", reason="scheduled_wait", duration=timedelta(hours=1))
        handle = await app.start("durable", waits)
        async with app.worker():
            async with asyncio.timeout(120):
                while not (await (await handle.task()).record()).is_paused:
                    await look_again()
        clock.advance(hours=2)
        now, store = clock.now_ms(), app._store
        [row] = await store.query("due_pauses", namespace="default", polls=0, limit=10)
        [(uid, due_at)] = await store.query("due_tasks", namespace="default", polls=0, limit=10)
        won = await asyncio.gather(*(take_question(app._store, DueQuestion(*row), now, {}) for _ in range(5)))
        assert sum(won) == 1
        won = await asyncio.gather(*(take_task(app._store, uid, due_at, now, {}) for _ in range(5)))
        assert sum(won) == 1


@pytest.mark.req("R41", "R49")
async def test_who_read_a_check_as_due_before_the_code_made_it_wakes_the_task_no_more(
    url: str, clock: MovableClock
) -> None:
    looked: list[int] = []

    async def is_there() -> str | None:
        looked.append(1)
        return None

    @durable
    async def waits() -> None:
        await pause.poll(is_there, every=timedelta(minutes=1))

    async with Perdure(url) as app:
        handle = await app.start("polls", waits)
        rows = []
        async with app.worker(), asyncio.timeout(120):
            while not (await (await handle.task()).record()).is_paused:
                await look_again()
            rows = await app._store.query("due_pauses", namespace="default", polls=0, limit=10)
            clock.advance(minutes=2)
            while len(looked) < 2 or not (await (await handle.task()).record()).is_paused:
                await look_again()
        assert not await take_question(app._store, DueQuestion(*rows[0]), clock.now_ms(), {})
        record = await (await handle.task()).record()
        assert record.is_paused and len(record.attempts) == 2


@pytest.mark.req("R41")
async def test_a_check_that_made_room_for_others_is_still_made_when_its_task_gets_its_turn(
    url: str, clock: MovableClock
) -> None:
    looked: list[int] = []

    async def is_there() -> str | None:
        looked.append(1)
        return None

    @durable
    async def waits() -> None:
        await pause.poll(is_there, every=timedelta(minutes=1))

    async with Perdure(url) as app:
        handle = await app.start("polls", waits)
        task = await handle.task()
        async with app.worker(), asyncio.timeout(120):
            while not (await task.record()).is_paused:
                await look_again()
        clock.advance(minutes=2)
        [row] = await app._store.query("due_pauses", namespace="default", polls=0, limit=10)
        woken, pushed = [await take_question(app._store, DueQuestion(*row), clock.now_ms(), {}) for _ in range(2)]
        assert woken and pushed, "it goes on, and is out of the way until somebody has time for it"
        async with app.worker(), asyncio.timeout(120):
            while not (await task.record()).is_paused:
                await look_again()
        assert len(looked) == 2 and len((await task.record()).attempts) == 2


async def test_more_than_a_window_of_one_moment_are_all_taken_and_the_rest_is_left(clock: MovableClock) -> None:
    async with Perdure("memory://many-timers") as app:
        await make_paused(app, WINDOW + 50)
        later = await app.tasks.open("later", state={})
        await later.pause("later", reason="scheduled_wait", duration=timedelta(hours=3))
        clock.advance(hours=2)
        both = [Timers(app.tasks), Timers(app.tasks)]
        first = await asyncio.gather(*(timers.round() for timers in both))
        assert timedelta(0) in first, "there is more, so it looks again at once"
        await asyncio.gather(*(timers.round() for timers in both))
        left = await app.tasks.list(status="paused")
        assert [record.id for record in left] == ["later"]


async def test_timers_of_tasks_that_have_ended_are_put_out_of_the_way(url: str, clock: MovableClock) -> None:
    @durable
    async def waits() -> None:
        await pause.wait(hours=1)

    async with Perdure(url) as app:
        handle = await app.start("waits", waits)
        task = await handle.task()
        async with app.worker():
            async with asyncio.timeout(120):
                while not (await task.record()).is_paused:
                    await look_again()
        await app._store.verb("move_task", task.uid, _cancelled(app, task.uid), key=task.id)
        clock.advance(hours=2)
        await Timers(app.tasks).round()
        assert await app._store.query("due_pauses", namespace="default", polls=0, limit=10) == []
        assert (await task.record()).status == "cancelled"


def _cancelled(app: Perdure, uid: str) -> dict[str, object]:
    from perdure._tasks.lifecycle.status_moves import _NO_COLUMNS
    from perdure._tasks.state.snapshots import NO_FRAME

    event = app._store.event(uid, "cancelled", {})
    how = {"after": "cancelled", "befores": "paused", "finished_at": event["at"], "ends": 1, "ended": "cancelled"}
    return {**_NO_COLUMNS, **NO_FRAME, **event, **how}
