"""A worker with nothing to do asks the store for nothing until something is written to it, or is due."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from perdure._ground.clock import MovableClock
from perdure._worker import duty
from perdure._worker.duty import LONGEST_IDLE, DutyLoop
from perdure._worker.worker import Settings, Worker
from tests.crash.conftest import env_of
from tests.support.processes import Link, Nursery, say
from tests.torture.kills import Home
from tests.worker.kit import opened, quick, until

HOUR = timedelta(hours=1)
# What all duties ask once, while there is nothing in the store.
A_LOOK = 20


@durable
async def naps(seconds: float) -> str:
    await pause.wait(seconds=seconds)
    return "rested"


class Looks:
    """What a worker asks the store, and how its loops wait."""

    def __init__(self, worker: Worker, app: Perdure, monkeypatch: pytest.MonkeyPatch) -> None:
        self._worker = worker
        self.asked: Counter[str] = Counter()
        self._waits: Counter[str] = Counter()
        self._rounds: Counter[str] = Counter()
        engine, query = app._store.engine, app._store.engine.query
        wait, be_idle = DutyLoop._wait, DutyLoop._be_idle

        def count_query(name: str, params: Any) -> Any:
            self.asked[name] += 1
            return query(name, params)

        async def count_wait(loop: DutyLoop, answer: timedelta | None, rest: float) -> None:
            self._waits[loop.duty.name] += 1
            await wait(loop, answer, rest)

        async def count_round(loop: DutyLoop, *what: Any) -> None:
            self._rounds[loop.duty.name] += 1
            await be_idle(loop, *what)

        monkeypatch.setattr(engine, "query", count_query)
        monkeypatch.setattr(DutyLoop, "_wait", count_wait)
        monkeypatch.setattr(DutyLoop, "_be_idle", count_round)

    def _names(self) -> list[str]:
        return [loop.duty.name for loop in self._worker._loops]

    async def until_idle(self) -> None:
        await until(lambda: all(loop._is_resting and not loop._is_stirred for loop in self._worker._loops))

    async def until_all_have_looked(self) -> None:
        await until(lambda: all(self._rounds[name] for name in self._names()))
        await self.until_idle()

    async def let_waits_pass(self) -> None:
        """Let each loop see the clock three times."""
        self._waits.clear()
        await until(lambda: all(self._waits[name] >= 3 for name in self._names()))

    def forget(self) -> None:
        self.asked.clear()
        self._rounds.clear()


@asynccontextmanager
async def working(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Perdure, Looks]]:
    async with opened(home) as app:
        await app.tasks.open("some task")  # the store is there
        worker = Worker(app.tasks, Settings())
        looks = Looks(worker, app, monkeypatch)
        async with worker:
            await looks.until_idle()
            looks.forget()
            yield app, looks


@pytest.fixture
def slow_clock(clock: MovableClock, monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    for name, value in env_of(clock).items():
        monkeypatch.setenv(name, value)
    return clock


async def test_an_idle_worker_asks_four_times_a_second(
    home: Home, slow_clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(home, monkeypatch) as (_, looks):
        await looks.let_waits_pass()
        assert not looks.asked
        for _ in range(3):
            looks.forget()
            slow_clock.advance(LONGEST_IDLE)  # its heart beats meanwhile: no news for itself
            await looks.until_all_have_looked()
            await looks.let_waits_pass()
            assert looks.asked.total() <= A_LOOK, looks.asked


async def test_a_wait_ends_when_it_is_due_and_nothing_is_asked_before(
    home: Home, slow_clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(home, monkeypatch) as (app, looks):
        await app.start("naps", naps, 3.0)
        await until(lambda: looks.asked["find_claimable"])
        await until(lambda: _is_paused(app, "naps"))
        await looks.until_idle()
        await looks.let_waits_pass()
        await looks.until_idle()
        looks.forget()
        slow_clock.advance(seconds=2.9)
        await looks.let_waits_pass()
        assert not looks.asked
        slow_clock.advance(seconds=0.11)
        assert (await app.tasks.wait_for("naps")).result == "rested"


async def test_a_start_that_is_put_off_is_made_when_it_is_due(
    home: Home, slow_clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(home, monkeypatch) as (app, looks):
        await app.start("later", quick.options(debounce=timedelta(seconds=3)), 5)
        await looks.until_idle()
        await looks.let_waits_pass()
        await looks.until_idle()
        slow_clock.advance(seconds=2.9)
        await looks.let_waits_pass()
        slow_clock.advance(seconds=0.11)
        assert (await app.tasks.wait_for("later")).result == 5


async def idle(link: Link, home: Home) -> None:
    """A worker that looks for what nothing tells of only once in an hour."""
    duty.LONGEST_IDLE = HOUR
    async with opened(home) as app:
        worker = Worker(app.tasks, Settings())
        async with worker:
            await until(lambda: app._store.bell.is_heard and all(loop._is_resting for loop in worker._loops))
            say(link, app._store.presence.worker)
            await worker.drained.wait()
            say(link, "drained")
            await asyncio.to_thread(link.recv)


async def test_a_worker_that_rests_hears_what_another_process_asks_of_it(home: Home, children: Nursery) -> None:
    child = children.start(idle, home)
    worker = child.heard()
    async with opened(home) as app:
        await app.workers.drain([worker])
        assert child.heard() == "drained"


async def _is_paused(app: Perdure, id: str) -> bool:
    record = await app.tasks.get(id)
    return record is not None and record.status == "paused"
