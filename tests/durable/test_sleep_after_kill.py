"""A process that sleeps in a durable function is killed: the next one sleeps for the rest of the time only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Perdure, durable, step
from perdure._durable.control import control_watch as wishes
from tests.support.processes import Link, Nursery, say
from tests.support.waiting import look_again

HOUR = 3600
doze = asyncio.sleep


@step(flush=True)
async def begin() -> None: ...


async def nap() -> None:
    await doze(10 * HOUR)


@durable(name="sleeps in its body")
async def body() -> str:
    await begin()
    await doze(10 * HOUR)
    return "slept"


@durable(name="sleeps at first")
async def at_first() -> str:
    await doze(10 * HOUR)
    return "slept"


@durable(name="sleeps in a helper")
async def helper() -> str:
    await begin()
    await nap()
    return "slept"


@durable(name="sleeps in a group")
async def group() -> str:
    await begin()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(nap())
        tasks.create_task(doze(10 * HOUR))
    return "slept"


FUNCTIONS = {"body": body, "at first": at_first, "helper": helper, "group": group}


async def sleeper(link: Link, url: str, name: str) -> None:
    """Say how long each sleep will last; asked to, have them all be over, and say the result."""
    loop: Any = asyncio.get_running_loop()
    async with Perdure(url) as app:
        running = asyncio.create_task(app.run("nap", FUNCTIONS[name]))
        while len(naps := _naps(loop)) < (2 if name == "group" else 1):
            await look_again()
        (attempt,) = (attempt for watch in wishes._watches.values() for attempt in watch.attempts.values())
        await attempt.flush()  # what is on its way to the disk gets there in some milliseconds
        say(link, [timer.when() - loop.time() for timer in naps])
        await asyncio.to_thread(link.recv)
        for timer in _naps(loop):
            timer._run()
            timer.cancel()
        say(link, await running)


def _naps(loop: Any) -> list[Any]:
    return [one for one in loop._scheduled if not one.cancelled() and one.when() - loop.time() > HOUR]


@pytest.mark.req("R67")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_that_has_passed_is_not_slept_again(shared_url: str, clock: Any, children: Nursery, name: str) -> None:
    env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    first = children.start(sleeper, shared_url, name, env=env)
    assert [round(left / HOUR, 2) for left in first.heard()] == [10] * (2 if name == "group" else 1)
    clock.advance(hours=6)
    first.kill()
    second = children.start(sleeper, shared_url, name, env=env)
    assert [round(left / HOUR, 2) for left in second.heard()] == [4] * (2 if name == "group" else 1)
    assert second.ask() == "slept"
