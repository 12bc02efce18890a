"""Limits of effects: one timer for all of a loop, and the same end as by `asyncio.timeout`."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest

from perdure import Perdure, Retry, durable, effect
from perdure._durable.attempt.calls.current_task import running_effect
from perdure._durable.effects.effect_in_progress import Limited
from perdure._durable.effects.effect_walk import Walk
from perdure._durable.effects.running_effects import AtWork, Limits, all_under_way, at_work_of
from perdure.errors import EffectUncertain


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
def at_work(hours: Hours) -> AtWork:
    return AtWork(Limits(hours), time.monotonic, time.time_ns)  # type: ignore[arg-type]


class _Task:
    def __init__(self) -> None:
        self.cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


def begun(at_work: AtWork, seconds: float) -> Any:
    """Work that has so long, as an effect begins."""
    task: Any = _Task()
    work: Any = Limited(task=task)
    at_work.walks.add(work)
    limits = at_work.limits
    work.when = limits.time() + seconds
    if work.when < limits.earliest:
        limits.set_for(work.when)
    return work


def test_many_that_end_in_time_share_one_timer_and_leave_nothing(at_work: AtWork, hours: Hours) -> None:
    for _ in range(5):
        at_work.walks.discard(begun(at_work, 60))
        hours.now += 1
    assert hours.armed == [160.0]
    hours.move(60)
    assert hours.armed == []  # nobody is left to set it for


def test_only_those_whose_time_is_over_are_cut_off_and_the_others_have_theirs(at_work: AtWork, hours: Hours) -> None:
    works = late, soon, sooner = [begun(at_work, seconds) for seconds in (60, 20, 10)]
    waiting: Any = Limited()  # for its intent: its time has not begun
    at_work.walks.add(waiting)
    assert min(hours.armed) == 110.0
    hours.move(10)
    assert [work.is_late for work in works] == [False, False, True]
    hours.move(10)
    assert [work.is_late for work in works] == [False, True, True]
    hours.move(40)
    assert [work.task.cancelled for work in works] == [1, 1, 1]  # once, though they are still at work
    assert not waiting.is_late and hours.armed == []
    assert late.is_late and soon.is_late and sooner.is_late


def test_the_limits_of_a_loop_are_one_and_do_not_keep_it_alive() -> None:
    loop = asyncio.new_event_loop()
    clock = SimpleNamespace(boottime=None, now_ms=None)
    attempt: Any = SimpleNamespace(
        loop=loop, activity=SimpleNamespace(effects=None), store=SimpleNamespace(clock=clock)
    )
    other: Any = SimpleNamespace(loop=loop, activity=SimpleNamespace(effects=None), store=SimpleNamespace(clock=clock))
    assert at_work_of(attempt) is at_work_of(attempt)
    assert at_work_of(other).limits is at_work_of(attempt).limits
    loop.close()
    kept = ref(loop)
    del loop, attempt, other
    gc.collect()
    assert kept() is None


# ── what an effect makes of it ───────────────────────────────────────────────────────────────────


def cut_off_now() -> None:
    """As the timer does when the time of the effect that runs here is over."""
    walk = running_effect.get()
    assert isinstance(walk, Walk) and walk in all_under_way()
    walk.cut_off()


async def test_an_effect_that_took_too_long_is_uncertain_and_its_task_goes_on(quick_url: str) -> None:
    @effect(on_uncertain="fail")
    async def touch() -> None:
        cut_off_now()
        await asyncio.Event().wait()

    @durable
    async def chain() -> list[Any]:
        with pytest.raises(EffectUncertain, match="TimeoutError"):
            await touch()
        task = asyncio.current_task()
        return [task is not None and task.cancelling(), len(all_under_way())]

    async with Perdure(quick_url) as app:
        assert await app.run("t", chain) == [0, 0]


async def test_one_that_is_cancelled_besides_is_cancelled(quick_url: str) -> None:
    @effect(on_uncertain="fail")
    async def touch() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        cut_off_now()
        await asyncio.Event().wait()

    @durable
    async def chain() -> str:
        try:
            await touch()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            return f"cancelled {task.uncancel() + 1} times"
        return "went on"

    async with Perdure(quick_url) as app:
        assert await app.run("t", chain) == "cancelled 1 times"


async def test_one_that_answers_with_an_error_of_its_own_has_that_error_and_is_uncertain(quick_url: str) -> None:
    @effect(on_uncertain="fail", failed_on=[KeyError])
    async def touch() -> None:
        cut_off_now()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise KeyError("mine") from None

    @durable
    async def chain() -> Any:
        with pytest.raises(EffectUncertain, match="KeyError"):
            await touch()
        task = asyncio.current_task()
        return task is not None and task.cancelling()

    async with Perdure(quick_url) as app:
        assert await app.run("t", chain) == 0


async def test_one_that_was_done_all_the_same_is_done(quick_url: str) -> None:
    @effect
    async def touch() -> str:
        cut_off_now()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        return "never"

    @durable
    async def chain() -> list[Any]:
        done = await touch()
        task = asyncio.current_task()
        return [done, task is not None and task.cancelling()]

    async with Perdure(quick_url) as app:
        assert await app.run("t", chain) == ["done", 0]


async def test_its_next_try_has_a_time_of_its_own_which_begins_with_its_body(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[float] = []
    inside: list[float] = []
    intend = Walk._intend

    def intending(walk: Walk, now: int) -> Any:
        before.append(walk.when)
        return intend(walk, now)

    monkeypatch.setattr(Walk, "_intend", intending)

    @effect(failed_on=[KeyError], retry=Retry(3, wait=timedelta(0)))
    async def touch() -> int:
        walk = running_effect.get()
        assert isinstance(walk, Walk)
        inside.append(walk.when)
        if len(inside) < 3:
            raise KeyError
        return len(inside)

    @durable
    async def chain() -> int:
        return await touch()

    async with Perdure(quick_url) as app:
        assert await app.run("t", chain) == 3
    assert before == [math.inf] * 3
    assert inside == sorted(set(inside)) and inside[-1] < math.inf
