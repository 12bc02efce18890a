"""When a process is taken for silent, and when it only cannot be heard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._worker.losses.reaper import Reaper
from perdure._worker.losses.silence_clock import SilenceClock
from tests.crash.conftest import env_of
from tests.crash.hands import ID, obey, order
from tests.support.processes import Nursery
from tests.torture.kills import Home
from tests.worker.kit import kinds_of, opened, until

LEASE = 5.0


@pytest.mark.req("R55", "R111")
async def test_a_heart_goes_on_while_a_write_waits_for_somebodys_rows(
    database: str, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    async with Perdure(database, namespace="hearts") as app:
        task = await app.tasks.open("task", state={"n": 0})
        async with task.attempt():
            with psycopg.connect(database) as somebody:
                somebody.execute("SELECT 1 FROM perdure.tasks WHERE namespace = 'hearts' FOR UPDATE")
                before = await _beats(app)
                writing = asyncio.ensure_future(task.checkpoint({"n": 1}))

                async def has_beaten() -> bool:
                    clock.advance(seconds=0.2)
                    return await _beats(app) >= before + 3

                await until(has_beaten)
                assert not writing.done()
            await writing


async def _beats(app: Perdure) -> int:
    (beats,) = [row[1] for row in await app._store.query("read_workers") if row[0] == app._store.presence.worker]
    return int(beats)


@pytest.mark.req("R55", "R110", "R111")
async def test_nobody_is_silent_to_one_whose_own_beats_do_not_come_through(
    home: Home, children: Nursery, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    hand = children.start(obey, home, env=env_of(clock))
    hand.heard()
    order(hand, "begin")
    async with opened(home) as app:
        reaper, presence = Reaper(app.tasks, lambda: None), app._store.presence
        await presence.register()
        await reaper.round()
        hand.stop()
        for _ in range(20):
            clock.advance(seconds=1)
            await reaper.round()
        assert "worker_lost" not in await kinds_of(app, ID)

        presence.hold()  # from here on they do

        async def has_been_lost() -> bool:
            clock.advance(seconds=0.2)
            await reaper.round()
            return "worker_lost" in await kinds_of(app, ID)

        await until(has_been_lost)
        presence.let_go()
        reaper.watch.close()
        hand.go_on()


def test_time_is_listened_through_while_our_own_beats_are_heard() -> None:
    listening = SilenceClock()
    assert listening.look(100.0, 7, LEASE) == 0.0
    assert listening.look(102.0, 7, LEASE) == 2.0
    assert listening.look(103.0, 8, LEASE) == 2.5  # half a lease after our last beat we would hear nobody
    assert listening.look(104.0, 8, LEASE) == 3.5


def test_a_store_that_takes_no_beats_of_ours_is_listened_to_for_half_a_lease() -> None:
    listening = SilenceClock()
    listening.look(100.0, 7, LEASE)
    for second in range(1, 60):
        assert listening.look(100.0 + second, 7, LEASE) <= LEASE / 2
    assert listening.look(160.0, 8, LEASE) == LEASE / 2
    assert listening.look(161.0, 8, LEASE) == LEASE / 2 + 1


def test_before_the_first_beat_nothing_is_listened_through() -> None:
    listening = SilenceClock()
    for second in range(10):
        assert listening.look(100.0 + second, None, LEASE) == 0.0
