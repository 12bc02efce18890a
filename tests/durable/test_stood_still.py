"""An attempt that stood still for longer than its lease begins nothing more once another one has taken over."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure._durable.attempt.pipeline import OLDEST_SECONDS
from perdure._ground.clock import MovableClock
from perdure.errors import LeaseLost
from tests.support.processes import Child, Link, nursery, say
from tests.support.waiting import look_again

ran: list[str] = []
taker: list[Child] = []


@step
async def work(name: str) -> str:
    ran.append(name)
    return name


@step
def plain_work(name: str) -> str:
    ran.append(name)
    return name


async def take_over(link: Link, url: str) -> None:
    async with Perdure(url) as app:
        say(link)
        await asyncio.to_thread(link.recv)
        task = await app.tasks.open("job")
        async with task.attempt(take_over=True):
            say(link)
            await asyncio.to_thread(link.recv)


@durable
async def stands_still(clock: str, is_plain: bool) -> None:
    await work("before")
    MovableClock(clock).advance(seconds=60)
    await asyncio.to_thread(taker[-1].ask)
    woken = perf_counter() + 2 * OLDEST_SECONDS
    while perf_counter() < woken:  # a process that was stopped has been so for longer than this
        await look_again()
    if is_plain:
        plain_work("after")
    else:
        await work("after")


@pytest.mark.req("R55")
@pytest.mark.parametrize("is_plain", [False, True])
async def test_no_step_begins_after_a_take_over(shared_url: str, clock: Any, is_plain: bool) -> None:
    ran.clear()
    with nursery() as children:
        taker.append(children.start(take_over, shared_url, env={"PERDURE_TEST_CLOCK": str(clock.path)}))
        taker[-1].heard()
        async with Perdure(shared_url) as app:
            with pytest.raises(LeaseLost):
                await app.run("job", stands_still, str(clock.path), is_plain)
    assert ran == ["before"]
