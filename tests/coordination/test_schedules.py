"""Schedules: every tick once among all workers, over both changes of the clock, with state from run to run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from perdure import Perdure, durable, step
from perdure._ground.clock import MovableClock
from perdure._ground.cron import next_cron
from perdure._model import Plan
from perdure.automation import scheduled
from perdure.errors import InvalidInput, NotFound
from tests.coordination.team import note, noted, run_worker
from tests.support.processes import Nursery
from tests.support.waiting import look_again

LONG = 60.0
MINUTE = timedelta(minutes=1)


async def until(holds: Callable[[], Awaitable[Any]]) -> Any:
    """Look until it holds; the time only turns a hang into a failure."""
    async with asyncio.timeout(LONG):
        while not (found := await holds()):
            await look_again()
    return found


async def ran(app: Perdure, id: str, runs: int) -> Any:
    """The schedule, once so many runs of it have begun and all of them have ended."""

    async def holds() -> Any:
        found = await app.schedules.get(id)
        return found if found is not None and found.runs >= runs and not found.open else None

    return await until(holds)


@step
async def count(place: str, at: str) -> None:
    note(place, at)


@durable(name="sched.counting")
async def counting(place: str) -> dict[str, int]:
    tick = await scheduled()
    assert tick is not None
    await count(place, f"{tick.at:%H:%M:%S}")
    return {"counter": (tick.state or {"counter": 0})["counter"] + 1}


@durable(name="sched.moody")
async def moody(place: str) -> int:
    tick = await scheduled()
    assert tick is not None
    await count(place, str(tick.state))
    if tick.at.minute % 2:
        raise ValueError("not this time")
    return (tick.state or 0) + 1


# ── when ticks are ───────────────────────────────────────────────────────────────────────────────


def ticks(cron: str, zone: str, after: str, number: int) -> list[str]:
    """So many ticks after a local moment, as local times with their offset."""
    tz = ZoneInfo(zone)
    now = datetime.fromisoformat(after).replace(tzinfo=tz)
    found = []
    for _ in range(number):
        nxt = next_cron(cron, zone, now)
        assert nxt is not None and nxt > now.astimezone(UTC)
        now = nxt
        found.append(nxt.astimezone(tz).isoformat())
    return found


@pytest.mark.req("R51")
def test_a_daily_tick_in_the_hour_that_is_skipped_runs_right_after_the_jump_and_once():
    assert ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


@pytest.mark.req("R51")
def test_a_daily_tick_in_the_hour_that_comes_twice_runs_once():
    assert ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    assert ticks("30 1 * * *", "America/New_York", "2026-10-31T12:00", 2) == [
        "2026-11-01T01:30:00-04:00",
        "2026-11-02T01:30:00-05:00",
    ]


@pytest.mark.req("R51")
def test_an_hourly_tick_follows_the_time_that_really_passes():
    for day, zone in (("2026-10-25T00:30", "Europe/Berlin"), ("2026-03-29T00:30", "Europe/Berlin")):
        found = [datetime.fromisoformat(text) for text in ticks("0 * * * *", zone, day, 6)]
        assert {b - a for a, b in pairwise(found)} == {timedelta(hours=1)}


@pytest.mark.req("R51")
def test_nine_in_the_morning_stays_nine_in_the_morning_all_year():
    found = ticks("0 9 * * *", "Europe/Berlin", "2026-01-01T00:00", 365)
    assert {text[11:16] for text in found} == {"09:00"} and len({text[:10] for text in found}) == 365


def test_asked_for_in_the_second_of_two_equal_hours_the_next_tick_lies_ahead():
    second = datetime(2026, 10, 25, 2, 10, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    assert next_cron("30 2 * * *", "Europe/Berlin", second).isoformat() == "2026-10-26T01:30:00+00:00"


def plan(**how: Any) -> Plan:
    return Plan(function="f", version=1, arguments=b"", queue="q", priority=0, **{"every_ms": 60_000, **how})


def test_missed_ticks_are_skipped_made_up_for_once_or_each():
    four_late = 4 * 60_000 + 30_000
    assert plan(missed="once").due(four_late)[0] == [240_000]
    assert plan(missed="skip").due(four_late)[0] == [240_000]  # on time, for half a minute
    assert plan(missed="skip", every_ms=600_000).due(700_000)[0] == []
    assert plan(missed="all", overlaps=True).due(four_late)[0] == [60_000, 120_000, 180_000, 240_000]
    fired, after = plan(missed="all").due(four_late)
    assert fired == [60_000] and after.last == 60_000
    assert plan(missed="all", open=["run"]).due(four_late)[0] == []
    _, after = plan(missed="skip", every_ms=600_000).due(700_000)
    assert (after.last, after.skipped, after.runs) == (600_000, 1, 0)


def test_a_clock_that_is_set_back_makes_no_tick_come_round_again():
    fired, after = plan().due(61_000)
    assert fired == [60_000]
    assert after.due(30_000)[0] == [] and after.due(60_500)[0] == [] and after.due(120_000)[0] == [120_000]


@pytest.mark.parametrize(
    "cron, tz", [("61 * * * *", "UTC"), ("* * *", "UTC"), ("0 9 * * *", "Mars/Olympus"), ("0 0 30 2 *", "UTC")]
)
async def test_what_is_never_or_cannot_be_understood_is_refused(quick_url: str, cron: str, tz: str):
    async with Perdure(quick_url) as app:
        draft = await app.schedule("s", counting, "x")
        with pytest.raises(InvalidInput):
            await draft.cron(cron, tz=tz)
        with pytest.raises(InvalidInput):
            await draft.every(timedelta(milliseconds=10))
        with pytest.raises(InvalidInput):
            await draft.every(MINUTE, missed="perhaps")
        assert await app.schedules.list() == []


# ── firing ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R51")
async def test_three_ticks_and_the_counter_in_its_state_is_three(url, clock: MovableClock, tmp_path: Path):
    async with Perdure(url) as app, app.worker():
        await app.schedule("count", counting, str(tmp_path / "log")).every(MINUTE)
        for n in range(1, 4):
            clock.advance(MINUTE)
            found = await ran(app, "count", n)
            assert found.state == {"counter": n}
        assert found.runs == 3 and found.skipped == 0
        assert len(noted(tmp_path / "log")) == 3
        tasks = await app.tasks.list(tags={"schedule": "count"})
        assert [record.status for record in tasks] == ["completed"] * 3


@pytest.mark.req("R51")
@pytest.mark.parametrize(
    "missed, runs, state", [("skip", 0, None), ("once", 1, {"counter": 1}), ("all", 4, {"counter": 4})]
)
async def test_what_was_missed_while_no_worker_was_there(
    quick_url: str, clock: MovableClock, tmp_path: Path, missed: Any, runs: int, state: Any
):
    async with Perdure(quick_url) as app:
        draft = await app.schedule("count", counting, str(tmp_path / "log"))
        await draft.every(timedelta(minutes=10), missed=missed)
        clock.advance(minutes=45)
        async with app.worker():
            if runs:
                found = await ran(app, "count", runs)
            else:
                found = await until(lambda: _skipped(app, 4))
        assert found.state == state and found.runs == runs and found.runs + found.skipped == 4
        assert len(noted(tmp_path / "log")) == runs


async def _skipped(app: Perdure, number: int) -> Any:
    found = await app.schedules.get("count")
    return found if found is not None and found.skipped == number else None


@pytest.mark.req("R51", "R49")
async def test_of_three_workers_one_fires_each_tick(shared_url, clock: MovableClock, tmp_path: Path, children: Nursery):
    env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    workers = [children.start(run_worker, shared_url, env=env) for _ in range(3)]
    for worker in workers:
        worker.heard()
    async with Perdure(shared_url) as app:
        place = tmp_path / "log"
        for n in range(4):
            await app.schedule(f"count-{n}", counting, str(place)).cron("* * * * *", tz="Europe/Berlin")
        for n in range(1, 4):
            clock.advance(MINUTE)
            for which in range(4):
                assert (await ran(app, f"count-{which}", n)).state == {"counter": n}
    assert len(noted(place)) == 12


@pytest.mark.req("R51")
async def test_a_worker_that_dies_between_starting_a_run_and_writing_the_tick_off_starts_nothing_twice(
    shared_url, clock: MovableClock, tmp_path: Path, children: Nursery
):
    env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    place = tmp_path / "log"
    async with Perdure(shared_url) as app:
        await app.schedule("count", counting, str(place)).every(MINUTE)
        dying = children.start(run_worker, shared_url, "schedules.fired", env=env)
        dying.heard()
        clock.advance(MINUTE)
        dying.wait()
        assert (await app.schedules.get("count")).runs == 0
        children.start(run_worker, shared_url, env=env).heard()
        clock.advance(seconds=30)
        assert (await ran(app, "count", 1)).state == {"counter": 1}
    assert len(noted(place)) == 1


async def test_a_run_that_fails_leaves_the_state_as_it_was(quick_url: str, clock: MovableClock, tmp_path: Path):
    async with Perdure(quick_url) as app, app.worker():
        await app.schedule("count", moody, str(tmp_path / "log")).cron("* * * * *")
        for n in range(1, 5):
            clock.advance(MINUTE)
            found = await ran(app, "count", n)
        assert found.state == 2 and noted(tmp_path / "log") == ["None", "None", "1", "1"]


async def test_paused_it_starts_nothing_and_resumed_it_makes_up_for_nothing(
    quick_url: str, clock: MovableClock, tmp_path: Path
):
    async with Perdure(quick_url) as app, app.worker():
        place = tmp_path / "log"
        await app.schedule("count", counting, str(place)).every(MINUTE, missed="all")
        paused = await app.schedules.pause("count")
        assert paused.is_paused and paused.next_at is None
        clock.advance(minutes=10)
        back = await app.schedules.resume("count")
        assert back.next_at is not None
        clock.advance(MINUTE)
        assert (await ran(app, "count", 1)).runs == 1
        await app.schedules.remove("count")
        assert await app.schedules.list() == [] and len(noted(place)) == 1
        with pytest.raises(NotFound):
            await app.schedules.pause("count")


async def test_said_again_the_same_it_ticks_on_and_said_otherwise_it_changes(
    quick_url: str, clock: MovableClock, tmp_path: Path
):
    async with Perdure(quick_url) as app, app.worker():
        place = str(tmp_path / "log")
        first = await app.schedule("count", counting, place).every(timedelta(minutes=10))
        clock.advance(minutes=5)
        again = await app.schedule("count", counting, place).every(timedelta(minutes=10))
        assert again.next_at == first.next_at
        clock.advance(minutes=5)
        await ran(app, "count", 1)
        changed = await app.schedule("count", counting, place).every(timedelta(minutes=2))
        assert changed.next_at - again.next_at == timedelta(minutes=2) and changed.state == {"counter": 1}


async def test_a_run_beside_the_ticks_is_started_by_hand(quick_url: str, clock: MovableClock, tmp_path: Path):
    async with Perdure(quick_url) as app, app.worker():
        await app.schedule("count", counting, str(tmp_path / "log")).every(MINUTE)
        id = await app.schedules.run_now("count")
        assert (await app.tasks.wait_for(id, timeout=timedelta(seconds=LONG))).result == {"counter": 1}


async def test_outside_a_schedule_there_is_no_tick(quick_url: str):
    @durable(name="sched.alone")
    async def alone() -> bool:
        return await scheduled() is None

    async with Perdure(quick_url) as app:
        assert await app.run("x", alone)
