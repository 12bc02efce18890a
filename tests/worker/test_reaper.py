"""A worker that dies is noticed, said, and its tasks go on elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect
from perdure._ground.clock import MovableClock
from perdure._ground.ids import this_process
from perdure._tasks import forget_lease, take_lease
from perdure._worker.losses.process_watch import ProcessWatch
from perdure._worker.losses.reaper import Reaper
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import PerdureError, StoreUnreachable
from perdure.types import Config
from tests.crash.conftest import env_of
from tests.crash.hands import ID, obey, order
from tests.support import engines
from tests.support.processes import Link, Nursery, say
from tests.torture.kills import Home
from tests.worker.kit import events_of, innocent, kinds_of, lines, opened, poison, three, until, work

movable = engines.clock  # which moves this process too, not only its children


@pytest.mark.req("R111", "R112", "R116")
async def test_the_task_of_a_killed_worker_goes_on_in_another_after_its_last_step(
    home: Home, children: Nursery, folder: Path
) -> None:
    said, gate = folder / "said", folder / "gate"
    first = children.start(work, home)
    assert first.heard() == "working"
    async with opened(home) as app:
        handle = await app.start("task", three, str(said), str(gate))
        await until(Path(f"{gate}.awaited").exists)
        async with app.worker():
            first.kill()
            await until(lambda: _has_been_lost(app, "task"))
            gate.touch()
            assert await handle.result() == [first.pid, os.getpid()]
        lost = next(event for event in await events_of(app, "task") if event.kind == "worker_lost")
        attempts = (await (await handle.task()).record()).attempts
    assert lines(said) == ["one", "two"]
    assert (lost.data["pid"], lost.data["host"]) == (first.pid, socket.gethostname())
    assert lost.data["why"] == "its process died"
    assert [attempt.ended for attempt in attempts] == ["its process died", "completed"]


async def _has_been_lost(app, id):
    return "worker_lost" in await kinds_of(app, id)


@pytest.mark.req("R111")
async def test_each_lost_task_is_told_once_however_many_workers_look(
    home: Home, children: Nursery, folder: Path
) -> None:
    said = folder / "said"
    first = children.start(work, home)
    first.heard()
    async with opened(home) as app:
        gates = [folder / f"gate-{n}" for n in range(5)]
        handles = [await app.start(f"task-{n}", three, str(said), str(gates[n])) for n in range(5)]
        for gate in gates:
            await until(Path(f"{gate}.awaited").exists)
        others = [children.start(work, home) for _ in range(3)]
        for other in others:
            other.heard()
        first.kill()
        for gate in gates:
            gate.touch()
        for handle in handles:
            await handle.result()
        for n in range(5):
            assert (await kinds_of(app, f"task-{n}")).count("worker_lost") == 1
    assert sorted(lines(said)) == ["one"] * 5 + ["two"] * 5


@pytest.mark.req("R114")
async def test_a_task_that_kills_its_workers_is_stopped_with_the_cause(
    home: Home, children: Nursery, folder: Path
) -> None:
    said = folder / "said"
    async with opened(home) as app, app.worker(queues=["another"]):
        handle = await app.start("bad", poison.options(config=Config(max_retries=1)), str(said))
        for _ in range(2):
            child = children.start(work, home)
            child.heard()
            child.wait()
        record = await until(lambda: _if_failed(handle))
    assert record.error["message"].startswith("2 attempts in a row were lost after note without progress")
    assert lines(said) == ["before"]


@pytest.mark.req("R114")
async def test_a_task_that_kills_its_workers_takes_none_of_its_neighbours_along(
    sqlite_home: Home, children: Nursery, folder: Path
) -> None:
    async with opened(sqlite_home) as app, app.worker(queues=["another"]):
        bad = await app.start("bad", poison, str(folder / "said"))
        others = [await app.start(f"other-{n}", innocent, n) for n in range(4)]
        for _ in range(Config().max_retries + 1):
            child = children.start(work, sqlite_home)
            child.heard()
            child.wait()
        assert await until(lambda: _if_failed(bad))
        last = children.start(work, sqlite_home)
        assert [await other.result() for other in others] == [0, 1, 2, 3]
        last.kill()


@pytest.mark.req("R114")
async def test_by_choice_such_a_task_is_paused_for_a_person(sqlite_home: Home, children: Nursery, folder: Path) -> None:
    async with opened(sqlite_home) as app, app.worker(queues=["another"]):
        chosen = poison.options(config=Config(max_retries=0, on_failure="pause"))
        handle = await app.start("bad", chosen, str(folder / "said"))
        child = children.start(work, sqlite_home)
        child.heard()
        child.wait()
        record = await until(lambda: _if_paused(handle))
    assert record.pause.reason == "human_input" and "1 attempt was lost after note" in record.pause.message


async def test_a_pid_that_came_back_as_another_process_is_not_watched() -> None:
    me = this_process()
    watch = ProcessWatch(lambda: None)
    watch.follow([me, me._replace(start=me.start - 1), me._replace(boot_id="another machine")])
    assert list(watch._fds) == [me]
    watch.close()
    assert not watch._fds


async def _if_paused(handle):
    record = await (await handle.task()).record()
    return record if record.status == "paused" else None


async def _if_failed(handle):
    record = await (await handle.task()).record()
    return record if record.status == "failed" else None


@pytest.mark.req("R55", "R111")
async def test_a_process_that_held_nothing_for_long_is_not_silent_when_it_takes_a_lease(
    home: Home, children: Nursery, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(clock.path))
    hand = children.start(obey, home, env=env_of(clock))
    hand.heard()
    order(hand, "begin")
    order(hand, "end")
    async with opened(home) as app:
        reaper = Reaper(app.tasks, lambda: None)
        for _ in range(60):
            clock.advance(seconds=1)
            await reaper.round()
        order(hand, "begin")
        for _ in range(3):
            await reaper.round()
        assert "worker_lost" not in await kinds_of(app, ID)
        order(hand, "checkpoint", 7)
        reaper.watch.close()


async def test_a_lease_that_its_own_process_has_forgotten_is_freed(url: str, movable: MovableClock) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("task", state={})
        hold = await take_lease(app._store, "task", task.uid, "")
        forget_lease(app._store, hold)  # as when the store was out of reach at the end of an attempt
        reaper = Reaper(app.tasks, lambda: None)
        await reaper.round()
        assert "worker_lost" not in await kinds_of(app, "task")
        movable.advance(seconds=3)
        await reaper.round()
        record = await task.record()
        assert [attempt.ended for attempt in record.attempts] == ["given up"]


@durable
async def send_once(path: str) -> str:
    return await send_with_probe(path)


def _was_sent(path: str) -> Any:
    return Happened("sent") if lines(Path(path)) else DID_NOT_HAPPEN


@effect(verify=_was_sent)
async def send_with_probe(path: str) -> str:
    with Path(path).open("a") as file:
        file.write("sent\n")
    if _after_sending:
        _after_sending.pop()()
    return "sent"


_after_sending: list[Callable[[], None]] = []


async def _send_and_lose_the_store(link: Link, home: Home, path: str) -> None:
    """Its outcome cannot be written; the process lives on, and gives the task up."""
    async with opened(home) as app, app.worker(queues=["another"]):
        engine = app._store.engine
        commit = engine.commit

        def refuse(writes: Any) -> Any:
            raise StoreUnreachable("away", kept="all", do="wait")

        _after_sending.append(lambda: setattr(engine, "commit", refuse))
        with contextlib.suppress(PerdureError):
            await app.run("task", send_once, path)
        engine.commit = commit  # type: ignore[method-assign]
        say(link, "given up")
        await asyncio.to_thread(link.recv)


@pytest.mark.req("R112")
async def test_an_effect_that_its_process_has_given_up_is_settled_elsewhere_without_waiting_for_its_deadline(
    home: Home, children: Nursery, folder: Path, movable: MovableClock
) -> None:
    child = children.start(_send_and_lose_the_store, home, str(folder / "sent"), env=env_of(movable))
    assert child.heard() == "given up"
    began = movable.boottime()
    async with opened(home) as app, app.worker():

        async def is_done() -> bool:
            movable.advance(seconds=0.1)
            record = await app.tasks.get("task")
            return record is not None and record.status == "completed"

        await until(is_done)
        ended = [attempt.ended for attempt in (await app.tasks.get("task")).attempts]
    assert ended == ["given up", "completed"] and lines(folder / "sent") == ["sent"]
    assert movable.boottime() - began < 300  # an effect may take ten minutes
