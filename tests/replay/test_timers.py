"""Journals that were written before timers were recorded: time-outs of plain asyncio run out when they did, no earlier.

In a replay of such a journal steps take no time and sleeps do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heapify
from typing import Any

import pytest
from msgspec.structs import replace

from perdure._durable.declare.functions import step
from perdure._replay import TIMERS, WAKING
from perdure.errors import ReplayDiverged
from tests.replay.kit import Journal, play, until_rest

ended: dict[str, asyncio.Event] = {}
doze = asyncio.sleep  # nobody waits for it here: pass_time has its timer run out


@step
async def fetch(what: str) -> str:
    await ended.setdefault(what, asyncio.Event()).wait()
    return what


def pass_time(seconds: float) -> None:
    """Have the timer run out that was set to this length."""
    loop: Any = asyncio.get_running_loop()
    for timer in list(loop._scheduled):
        if not timer.cancelled() and abs(timer.when() - loop.time() - seconds) < 60:
            loop._scheduled.remove(timer)
            heapify(loop._scheduled)
            timer._run()


def dated(journal: Journal, *moments: int) -> Journal:
    """The journal of its calls, as if these seconds had passed from the beginning to each of them."""
    calls = [(p, entry) for p, entry in journal if entry.op not in WAKING | {TIMERS}]
    return [(p, replace(entry, at=at * 1000)) for (p, entry), at in zip(calls, moments, strict=True)]


async def within_timeout(work: Awaitable[str]) -> str:
    async with asyncio.timeout(3600):
        return await work


async def within_a_group(work: Awaitable[str]) -> str:
    async with asyncio.timeout(3600):
        return (await asyncio.gather(work))[0]


async def within_wait_for(work: Awaitable[str]) -> str:
    return await asyncio.wait_for(work, 3600)


async def within_wait(work: Awaitable[str]) -> str:
    done, _ = await asyncio.wait([asyncio.ensure_future(work)], timeout=3600)
    for task in done:
        return task.result()
    raise TimeoutError


Within = Callable[[Awaitable[str]], Awaitable[str]]


def made(within: Within) -> Callable[[], Awaitable[list[str]]]:
    async def program() -> list[str]:
        async def other() -> str:
            await doze(5400)
            return await fetch("other")

        task = asyncio.create_task(other())
        heard = [await fetch("first")]
        try:
            heard.append(await within(fetch("in time")))
        except TimeoutError:
            heard.append("too late")
        return [*heard, await fetch("last"), await task]

    return program


@pytest.fixture(autouse=True)
def _nothing_has_ended() -> None:
    ended.clear()


async def end(what: str) -> None:
    await until_rest()
    ended[what].set()
    await until_rest()


@pytest.mark.parametrize("within", [within_timeout, within_a_group, within_wait_for, within_wait])
async def test_a_time_out_does_not_run_out_before_another_branch_has_slept(within: Within) -> None:
    """The first call took an hour. So the limit of the second, another hour, came after what the other branch did."""
    program = made(within)
    playing = asyncio.create_task(play(program))
    await end("first")
    pass_time(5400)
    for what in ("other", "in time", "last"):
        await end(what)
    first = await playing
    assert first.result() == ["first", "in time", "last", "other"]

    journal = dated(first.journal, 3600, 5400, 6000, 6100)
    for count in (3, 4):
        replaying = asyncio.create_task(play(program, journal=journal[:count]))
        await until_rest(50)
        pass_time(3600)
        await until_rest(50)
        pass_time(5400)
        assert (await replaying).result() == first.result()


async def test_a_time_out_that_ran_out_first_runs_out_first_again() -> None:
    program = made(within_timeout)
    playing = asyncio.create_task(play(program))
    await end("first")
    pass_time(3600)
    await end("last")
    pass_time(5400)
    await end("other")
    first = await playing
    assert first.result() == ["first", "too late", "last", "other"]

    journal = dated(first.journal, 600, 4200, 4300, 5400)
    replaying = asyncio.create_task(play(program, journal=journal))
    await until_rest(50)
    pass_time(3600)
    await until_rest(50)
    pass_time(5400)
    assert (await replaying).result() == first.result()


async def test_a_time_out_that_nothing_comes_before_any_more_runs_out_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other branch is gone from the code: then nobody waits for ever."""
    monkeypatch.setattr("perdure._durable.attempt.delivery_order.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("perdure._durable.attempt.delivery_order._POLL_SECONDS", 600.0)
    playing = asyncio.create_task(play(made(within_timeout)))
    await end("first")
    pass_time(5400)
    for what in ("other", "in time", "last"):
        await end(what)
    journal = dated((await playing).journal, 3600, 3700, 3710, 3720)

    async def without() -> list[str]:
        beside = asyncio.create_task(doze(5400))
        heard = [await fetch("first"), await within_timeout(fetch("in time")), await fetch("last")]
        beside.cancel()
        return heard

    replaying = asyncio.create_task(play(without, journal=journal))
    await until_rest(50)
    pass_time(3600)
    await until_rest(50)
    assert not replaying.done(), "it is kept back"
    pass_time(600)
    error = (await replaying).error
    assert isinstance(error, ReplayDiverged) and "TimeoutError" in str(error)


async def test_a_branch_that_works_without_perdure_is_waited_for_as_long_as_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure._durable.attempt.delivery_order.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("perdure._durable.attempt.delivery_order._POLL_SECONDS", 0.0)
    works: list[asyncio.Event] = []

    async def program() -> list[str]:
        heard: list[str] = []
        work = asyncio.Event()
        works.append(work)

        async def slow() -> None:
            heard.append(await fetch("one"))
            await work.wait()
            heard.append(await fetch("two"))

        async def beside() -> None:
            heard.append(await fetch("beside"))

        await asyncio.gather(slow(), beside())
        return heard

    playing = asyncio.create_task(play(program))
    await end("one")
    works[-1].set()
    await end("two")
    await end("beside")
    first = await playing
    assert first.result() == ["one", "two", "beside"]

    replaying = asyncio.create_task(play(program, journal=dated(first.journal, 1, 3600, 3601)))
    await until_rest(200)
    works[-1].set()
    assert (await replaying).result() == first.result()


async def test_a_replay_leaves_nothing_behind_in_its_loop() -> None:
    async def program() -> list[str]:
        return list(await asyncio.gather(*(within_timeout(fetch(what)) for what in ("one", "two"))))

    playing = asyncio.create_task(play(program))
    for what in ("one", "two"):
        await end(what)
    first = await playing
    for count in (1, 2):
        assert (await play(program, journal=first.journal[:count])).result() == ["one", "two"]
    loop: Any = asyncio.get_running_loop()
    assert not [timer for timer in loop._scheduled if not timer.cancelled()]


async def test_a_timer_is_dated_without_a_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five thousand branches with a time-out each took a minute to replay, when each look went through all timers."""
    looked = 0

    class Counted(list[Any]):
        def __iter__(self) -> Any:
            nonlocal looked
            looked += 1
            return super().__iter__()

    names = [f"{number}" for number in range(200)]

    async def program() -> list[str]:
        return list(await asyncio.gather(*(within_timeout(fetch(what)) for what in names)))

    for what in names:
        ended[what] = asyncio.Event()
        ended[what].set()
    first = await play(program)
    loop: Any = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "_scheduled", Counted(loop._scheduled))
    assert (await play(program, journal=first.journal)).result() == names
    assert looked < 10


async def test_a_timer_set_in_a_replay_does_not_wait_for_the_time_that_the_record_took() -> None:
    """The code's clock follows the dates of the entries. By the loop's clock none of these two hours has passed."""

    async def program() -> list[str]:
        async def other() -> str:
            await doze(10)
            return "slept"

        heard = [await fetch("first"), await fetch("second")]
        task = asyncio.create_task(other())
        return [*heard, await fetch("third"), await task]

    playing = asyncio.create_task(play(program))
    for what in ("first", "second", "third"):
        await end(what)
    pass_time(10)
    first = await playing
    journal = dated(first.journal, 0, 7200, 7300)

    replaying = asyncio.create_task(play(program, journal=journal))
    await until_rest(50)
    loop: Any = asyncio.get_running_loop()
    assert [round(timer.when() - loop.time()) for timer in loop._scheduled if not timer.cancelled()] == [10]
    pass_time(10)
    assert (await replaying).result() == first.result()
