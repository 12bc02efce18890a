"""Thousands of tasks that wait cost nothing; those whose wait is over go on evenly, each once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path

import pytest

from perdure import Perdure, durable, pause, step
from perdure._ground.clock import MovableClock
from tests.worker.kit import until

ran: list[int] = []
at_once: list[int] = []
running: set[int] = set()


@step
async def wake(number: int) -> None:
    running.add(number)
    at_once.append(len(running))
    ran.append(number)
    await asyncio.sleep(0)
    running.discard(number)


@durable
async def napping(number: int) -> None:
    await pause.wait(hours=1)
    await wake(number)


@pytest.mark.req("R31", "R49")
async def test_a_crowd_whose_wait_is_over_goes_on_evenly_each_once(
    quick_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovableClock(tmp_path / "clock")
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    many = 150
    ran.clear()
    at_once.clear()
    async with Perdure(quick_store) as app:
        async with app.worker(concurrency=25):
            await asyncio.gather(*(app.start(f"nap-{number}", napping, number) for number in range(many)))
            await until(lambda: _paused(app, many))
            assert not app._store.presence.held, "a task that waits holds nothing"
            threads = threading.active_count()
        async with app.worker(concurrency=25), app.worker(concurrency=25):
            clock.advance(hours=2)
            await until(lambda: len(ran) == many)
            await until(lambda: _paused(app, 0))
            assert threading.active_count() <= threads + 2, "waiting takes no threads"
    assert set(Counter(ran).values()) == {1}
    assert max(at_once) <= 50


@pytest.fixture(params=["memory", "sqlite"])
def quick_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}" if request.param == "memory" else f"sqlite://{tmp_path}/store/p.db"


async def _paused(app: Perdure, count: int) -> bool:
    found = await app.tasks.list(status="paused", limit=1000)
    return len(found) == count
