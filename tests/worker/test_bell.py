"""Workers that would look once in an hour find what other processes have for them, because they are rung."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from perdure import durable, pause
from perdure._ground.clock import SystemClock
from perdure._store import bell
from perdure._worker.claims import claimer
from perdure._worker.waits import dependencies, timers
from tests.support.processes import Link, Nursery, say
from tests.support.waiting import look_again
from tests.torture.kills import Home
from tests.worker.kit import opened, quick

HOUR = timedelta(hours=1)


def look_seldom() -> None:
    """Nothing is found by looking: the process has to be rung."""
    SystemClock.longest_wait = HOUR.total_seconds()
    bell._PATIENT = bell._IMPATIENT = HOUR.total_seconds()
    claimer.LOOK = claimer.SOON = timers.LOOK = dependencies.LOOK = HOUR


async def work(link: Link, home: Home, queue: str) -> None:
    look_seldom()
    app = home.open()
    async with app.worker(queues=[queue]):
        while not app._store.bell.is_heard:
            await look_again()
        say(link, "working")
        await asyncio.to_thread(link.recv)
    await app.close()


async def wait_for(link: Link, home: Home, id: str) -> None:
    look_seldom()
    async with opened(home) as app:
        say(link, "waiting")
        say(link, (await app.tasks.wait_for(id)).result)


@durable
async def waits_for(other: str) -> Any:
    return await pause.task(other)


@pytest.mark.req("R54")
async def test_a_task_started_in_one_process_is_done_by_a_second_and_awaited_by_a_third(
    home: Home, children: Nursery
) -> None:
    worker = children.start(work, home, "default")
    assert worker.heard() == "working"
    async with opened(home) as app:
        for number in range(3):
            await app.start(f"task-{number}", quick.options(queue="nobody's"), number)
            waiter = children.start(wait_for, home, f"task-{number}")
            assert waiter.heard() == "waiting"
            await app.start(f"other-{number}", quick, number)
            assert (await app.tasks.wait_for(f"other-{number}")).result == number
            task = await (await app.handle(f"task-{number}", quick)).task()
            await task.complete(number)
            assert waiter.heard() == number
    worker.kill()


@pytest.mark.req("R47")
async def test_a_pause_for_another_task_ends_with_it_in_whatever_process_that_was(
    home: Home, children: Nursery
) -> None:
    one, two = children.start(work, home, "one"), children.start(work, home, "two")
    assert one.heard() == two.heard() == "working"
    async with opened(home) as app:
        waiting = await app.start("waits", waits_for.options(queue="one"), "awaited")
        await app.tasks.wait_for("waits", status="paused")
        await app.start("awaited", quick.options(queue="two"), 7)
        assert await waiting.result() == 7
    one.kill()
    two.kill()
