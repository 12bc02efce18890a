"""The one loop that every duty of a worker runs in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from perdure._ground.clock import MovableClock, SystemClock
from perdure._worker.duty import DutyLoop, Rest
from perdure.errors import PerdureError, StoreUnreachable
from tests.support.waiting import look_again


class Counting:
    """A duty that does what it is told, round by round; after the last it has nothing to do."""

    name = "counting"

    def __init__(self, *rounds: Exception | timedelta | None) -> None:
        self._rounds = list(rounds)
        self.count = 0
        self._seen = asyncio.Condition()

    async def round(self) -> timedelta | None:
        self.count += 1
        async with self._seen:
            self._seen.notify_all()
        answer = self._rounds.pop(0) if self._rounds else timedelta(days=1)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def reaches(self, count: int) -> None:
        async with self._seen:
            await self._seen.wait_for(lambda: self.count >= count)


@asynccontextmanager
async def going(duty: Counting, clock: MovableClock | SystemClock, *, calm: bool = False) -> AsyncIterator[DutyLoop]:
    loop = DutyLoop(duty, clock, calm=calm)
    running = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        running.cancel()
        await asyncio.wait([running])


class Patient(SystemClock):
    longest_wait = 3600.0


async def test_a_round_follows_when_its_answer_has_passed() -> None:
    duty = Counting(timedelta(0), timedelta(0))
    async with going(duty, Patient()):
        await duty.reaches(3)


async def test_a_ring_makes_a_duty_look_at_once() -> None:
    duty = Counting()
    async with going(duty, Patient()) as loop:
        await duty.reaches(1)
        loop.ring()
        await duty.reaches(2)


async def test_a_calm_duty_rests_between_rings_and_comes_to_all_of_them() -> None:
    duty = Counting()
    async with going(duty, Patient(), calm=True) as loop:
        for count in (1, 2, 3):
            await duty.reaches(count)
            loop.ring()
        await duty.reaches(4)


async def test_a_moved_clock_is_noticed(clock: MovableClock) -> None:
    duty = Counting()
    async with going(duty, clock):
        await duty.reaches(3)


@pytest.mark.req("R112")
async def test_a_store_out_of_reach_is_told_once_and_ridden_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure._worker.duty.FIRST_REST", 0.001)
    away = StoreUnreachable("the server is gone", kept="all", do="wait")
    duty = Counting(away, away, away, timedelta(0))
    with caplog.at_level(logging.WARNING, "perdure.worker"):
        async with going(duty, Patient()):
            await duty.reaches(5)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["counting failed: the server is gone; trying again", "counting works again"]


@pytest.mark.parametrize("error", [PerdureError("odd"), ValueError("a fault of ours")])
async def test_no_error_ends_the_loop(error: Exception) -> None:
    duty = Counting(error)
    async with going(duty, Patient()):
        await duty.reaches(2)


class Slow:
    """A duty that is still reading when the clock is moved; what it read is due in four seconds."""

    name = "slow"

    def __init__(self) -> None:
        self.is_reading, self.may_end = asyncio.Event(), asyncio.Event()
        self.count = 0

    async def round(self) -> Rest:
        self.count += 1
        self.is_reading.set()
        await self.may_end.wait()
        return Rest(timedelta(0), timedelta(seconds=4))


async def test_what_is_due_is_not_put_off_when_the_clock_is_moved_during_the_round(clock: MovableClock) -> None:
    duty = Slow()
    loop = DutyLoop(duty, clock, hears=lambda: True)
    running = asyncio.create_task(loop.run())
    await duty.is_reading.wait()
    clock.advance(seconds=4)
    duty.may_end.set()
    while duty.count < 2:
        await look_again()
    running.cancel()
    await asyncio.wait([running])
