"""Limits of bodies: one timer for all of them, and the same end as by `asyncio.timeout`."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest

from perdure._durable.limits import Limits, limits_of


class Hours:
    """The two things of a loop that limits use, with a time that is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[_Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, act: Callable[[], None], *, context: object) -> _Timer:
        self.timers.append(_Timer(when, act))
        return self.timers[-1]

    @property
    def armed(self) -> list[float]:
        return [timer.when for timer in self.timers]

    def move(self, seconds: float) -> None:
        self.now += seconds
        for timer in [timer for timer in self.timers if timer.when <= self.now]:
            self.timers.remove(timer)
            if not timer.is_cancelled:
                timer.act()


class _Timer:
    def __init__(self, when: float, act: Callable[[], None]) -> None:
        self.when, self.act, self.is_cancelled = when, act, False

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.fixture
def hours() -> Hours:
    return Hours()


@pytest.fixture
def limits(hours: Hours) -> Limits:
    return Limits(hours)  # type: ignore[arg-type]


async def begun(limits: Limits, seconds: float, body: Callable[[], Any] | None = None) -> asyncio.Task[Any]:
    """A task inside a block with that limit."""
    inside = asyncio.Event()

    async def run() -> Any:
        task = asyncio.current_task()
        assert task is not None
        with limits.limit(task, seconds):
            inside.set()
            return await (body or asyncio.Event().wait)()

    task = asyncio.ensure_future(run())
    await inside.wait()
    return task


async def test_many_that_end_in_time_share_one_timer_and_leave_nothing(limits: Limits, hours: Hours) -> None:
    async def at_once() -> str:
        return "done"

    for _ in range(5):
        assert await (await begun(limits, 60, at_once)) == "done"
        hours.now += 1
    assert hours.armed == [160.0]
    assert not limits.live
    hours.move(60)
    assert hours.armed == []  # nobody is left to set it for


async def test_only_those_whose_time_is_over_are_ended_and_the_others_have_theirs(limits: Limits, hours: Hours) -> None:
    late, soon, sooner = [await begun(limits, seconds) for seconds in (60, 20, 10)]
    assert min(hours.armed) == 110.0
    hours.move(10)
    with pytest.raises(TimeoutError):
        await sooner
    assert not late.done() and not soon.done()
    hours.move(10)
    with pytest.raises(TimeoutError):
        await soon
    assert not late.done()
    hours.move(40)
    with pytest.raises(TimeoutError):
        await late
    assert late.cancelling() == 0


async def test_who_is_cancelled_besides_is_cancelled(limits: Limits, hours: Hours) -> None:
    task = await begun(limits, 10)
    hours.move(10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_body_that_answers_its_end_with_an_error_of_its_own_has_that_error(
    limits: Limits, hours: Hours
) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise KeyError("mine") from None

    task = await begun(limits, 10, stubborn)
    hours.move(10)
    with pytest.raises(KeyError):
        await task
    assert task.cancelling() == 0


def test_the_limits_of_a_loop_are_one_and_do_not_keep_it_alive() -> None:
    loop = asyncio.new_event_loop()
    run: Any = SimpleNamespace(loop=loop)
    limits = limits_of(run)
    assert limits_of(run) is limits
    loop.close()
    kept = ref(loop)
    del loop, run, limits
    gc.collect()
    assert kept() is None
