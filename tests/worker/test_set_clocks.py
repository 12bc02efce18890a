"""A wall clock that is set, or that goes wrong on one machine: nothing waits longer for it, nothing comes too soon."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from perdure import Perdure, Retry, durable, effect, step
from perdure._ground.clock import MovableClock, SystemClock
from perdure._worker.deadlines import Deadlines
from perdure._worker.schedules import Schedules
from tests.support.waiting import look_again
from tests.worker.kit import quick

HOUR = timedelta(hours=1)
_PATIENT = Retry(3, wait=timedelta(seconds=10))
_tries: list[str] = []


@step(retry=_PATIENT)
async def stumble() -> str:
    _tries.append("step")
    if len(_tries) == 1:
        raise OSError("not yet")
    return "done"


@effect(retry=_PATIENT, failed_on=(OSError,))
async def stumble_outside() -> str:
    _tries.append("effect")
    if len(_tries) == 1:
        raise OSError("not yet")
    return "done"


@durable
async def walk_on(outside: bool) -> str:
    return await (stumble_outside() if outside else stumble())


@pytest.fixture
def movable(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    clock = MovableClock(f"{tmp_path}/clock")
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    _tries.clear()
    return clock


@pytest.mark.req("R110")
@pytest.mark.parametrize("outside", [False, True], ids=["step", "effect"])
async def test_a_retry_does_not_wait_for_a_clock_that_was_set_back(
    movable: MovableClock, outside: bool, tmp_path: object
) -> None:
    began = movable.boottime()
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        going = asyncio.ensure_future(app.run("task", walk_on, outside))
        while not _tries:
            await look_again()
        movable.set_wall(-HOUR)
        while not going.done():
            movable.advance(seconds=0.5)
            await look_again()
        assert await going == "done"
    assert 10 <= movable.boottime() - began < 1000


@pytest.mark.req("R50", "R110")
async def test_a_worker_whose_clock_is_ahead_of_the_servers_ends_and_starts_nothing_too_soon(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(database, namespace="ahead") as app:
        await app.start("task", quick.options(timeout=timedelta(minutes=30)), 1)
        await (await app.schedule("ticks", quick, 1)).every(timedelta(minutes=30))
        monkeypatch.setattr(SystemClock, "now_ms", lambda self: time.time_ns() // 1_000_000 + 3_600_000)
        await Deadlines(app.tasks, lambda uid: None).round()
        await Schedules(app.tasks).round()
        record, schedule = await app.tasks.get("task"), await app.schedules.get("ticks")
        assert record is not None and record.status == "running"
        assert schedule is not None and schedule.runs == 0 and not schedule.open
