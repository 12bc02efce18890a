"""A wall clock that is set, or that goes wrong on one machine: nothing waits longer for it, nothing comes too soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from perdure import Perdure, Retry, durable, effect, step
from perdure._durable.effects import settlement
from perdure._ground.bridge import Nap
from perdure._ground.clock import MovableClock, SystemClock
from perdure._worker.losses.deadlines import Deadlines
from perdure._worker.waits.schedules import Schedules
from perdure.effects import Happened
from perdure.types import TaskRecord
from tests.crash.conftest import env_of
from tests.support.processes import Link, Nursery, say
from tests.support.waiting import look_again
from tests.torture.kills import Home
from tests.worker.kit import opened, quick, until

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
        await app.schedule("ticks", quick, 1).every(timedelta(minutes=30))
        monkeypatch.setattr(SystemClock, "now_ms", lambda self: time.time_ns() // 1_000_000 + 3_600_000)
        await Deadlines(app.tasks, lambda uid: None).round()
        await Schedules(app.tasks).round()
        record, schedule = await app.tasks.get("task"), await app.schedules.get("ticks")
        assert record is not None and record.status == "running"
        assert schedule is not None and schedule.runs == 0 and not schedule.open


@effect(verify=lambda: Happened("sent"), timeout=timedelta(minutes=10))
async def send_for_ever() -> str:
    _tries.append("sent")
    await asyncio.Event().wait()
    return "sent"


@durable
async def send_and_stay() -> str:
    return await send_for_ever()


async def stay(link: Link, home: Home) -> None:
    async with home.open() as app, app.worker():
        say(link, "working")
        await asyncio.to_thread(link.recv)


@pytest.mark.req("R110", "R55")
async def test_an_effect_of_a_worker_that_is_only_silent_is_not_settled_sooner_by_a_clock_that_was_set(
    movable: MovableClock, home: Home, children: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []
    monkeypatch.setattr(settlement, "Nap", lambda seconds: naps.append(seconds) or Nap(seconds))
    silent = children.start(stay, home, env=env_of(movable))
    silent.heard()
    async with opened(home) as app:
        await app.start("task", send_and_stay)
        await until(lambda: _is_open(app))
        async with app.worker():
            silent.stop()
            await until(lambda: _moved(app, movable, 0.2, lambda record: bool(naps)))
            before = movable.boottime()
            movable.set_wall(HOUR)
            await until(lambda: _moved(app, movable, 2.0, lambda record: record.status == "completed"))
            assert movable.boottime() - before > 500
            silent.go_on()


async def _is_open(app: Perdure) -> bool:
    return [one.state for one in await app.effects.of("task")] == ["uncertain"]


async def _moved(app: Perdure, clock: MovableClock, seconds: float, is_so: Callable[[TaskRecord], bool]) -> bool:
    clock.advance(seconds=seconds)
    record = await app.tasks.get("task")
    return record is not None and is_so(record)
