"""Queues and keys have room for so many, over all workers; turns are fair."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure, durable, step
from perdure._ground.clock import MovableClock
from perdure._worker.claims.limits import Limit, Slot, free_slot, limits_of
from perdure._worker.claims.queues import Queue
from perdure.errors import Conflict, InvalidInput
from tests.support import engines
from tests.support.processes import Link, Nursery, say
from tests.support.waiting import look_again
from tests.torture.kills import Home
from tests.worker.kit import lines, opened, quick, until

movable = engines.clock  # which moves this process too, not only its children


order: list[str] = []
now_running: set[str] = set()
most_at_once: list[int] = []


@step
async def together(name: str, gate: str) -> None:
    order.append(name)
    now_running.add(name)
    most_at_once.append(len(now_running))
    while not Path(gate).exists():
        await look_again()
    now_running.discard(name)


@durable
async def crowd(name: str, gate: str) -> str:
    await together(name, gate)
    return name


@pytest.fixture(autouse=True)
def nobody() -> None:
    order.clear()
    now_running.clear()
    most_at_once.clear()


def app_at(url: str) -> Perdure:
    app = Perdure(url)
    app.queue("narrow", concurrency=2)
    return app


async def test_a_queue_has_room_for_so_many_and_all_get_their_turn(url: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with app_at(url) as app, app.worker(queues=["narrow", "default"]):
        narrow = crowd.options(queue="narrow")
        handles = [await app.start(f"n{n}", narrow, f"n{n}", str(gate)) for n in range(6)]
        wide = await app.start("wide", quick, 1)
        assert await wide.result() == 1  # another queue is not held up
        await until(lambda: len(order) == 2)
        gate.touch()
        assert [await handle.result() for handle in handles] == [f"n{n}" for n in range(6)]
    assert max(most_at_once) == 2


async def test_tasks_of_one_key_are_worked_on_one_at_a_time(url: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with Perdure(url) as app, app.worker():
        keyed = [crowd.options(key=key) for key in ("a", "a", "a", "b")]
        handles = [await app.start(f"t{n}", fn, f"{fn.chosen.key}{n}", str(gate)) for n, fn in enumerate(keyed)]
        await until(lambda: len(order) == 2)
        assert sorted(order) == ["a0", "b3"]
        gate.touch()
        for handle in handles:
            await handle.result()
        assert [name for name in order if name != "b3"] == ["a0", "a1", "a2"]
        await until(lambda: _slots(app) == [])


def _slots(app: Perdure) -> list[object]:
    import json

    scope = json.dumps(["key", "default", "default", "a"])
    return app._store.engine.query("read_slots", {"scopes": json.dumps([scope])})


async def test_a_limit_counts_over_all_workers_and_a_dead_one_gives_its_slots_back(
    home: Home, children: Nursery, folder: Path
) -> None:
    gate, said = folder / "gate", folder / "said"
    first = children.start(narrow_work, home)
    first.heard()
    async with opened(home) as app:
        app.queue("narrow", concurrency=2)
        for n in range(4):
            await app.start(f"n{n}", crowd_in_file.options(queue="narrow"), str(said), str(gate), n)
        await until(lambda: len(lines(said)) == 2)
        second = children.start(narrow_work, home)
        second.heard()
        async with app.worker(queues=["narrow"]):
            await (await app.start("other", quick.options(queue="narrow2"), 1)).task()
            assert len(lines(said)) == 2
            first.kill()
            await until(lambda: len(lines(said)) >= 4)
            gate.touch()
            for n in range(4):
                await app.tasks.wait_for(f"n{n}")


@step
async def say_and_wait(said: str, gate: str, n: int) -> None:
    with Path(said).open("a") as file:
        file.write(f"{n}\n")
    while not Path(gate).exists():
        await look_again()


@durable
async def crowd_in_file(said: str, gate: str, n: int) -> None:
    await say_and_wait(said, gate, n)


async def narrow_work(link: Link, home: Home) -> None:
    app = home.open()
    app.queue("narrow", concurrency=2)
    async with app.worker(queues=["narrow"]):
        say(link, "working")
        await asyncio.to_thread(link.recv)


async def test_a_rate_lets_so_many_begin_in_a_time(url: str, movable: MovableClock) -> None:
    async with Perdure(url) as app:
        app.queue("mail", rate=(3, timedelta(seconds=10)))
        handles = [await app.start(f"m{n}", quick.options(queue="mail"), n) for n in range(7)]
        async with app.worker(queues=["mail"]):
            for done in (3, 6, 7):
                await until(lambda done=done: _finished(handles, done))
                movable.advance(seconds=10)


async def _finished(handles: list, count: int) -> bool:
    statuses = [(await (await handle.task()).record()).status for handle in handles]
    return statuses.count("completed") == count


# ── whose turn it is ─────────────────────────────────────────────────────────────────────────────


async def test_turns_go_by_waiting_and_a_point_of_priority_counts_as_a_minute(url: str, movable: MovableClock) -> None:
    async with Perdure(url) as app:
        for minute in range(4):
            await app.start(f"plain-{minute}", quick, minute)
            await app.start(f"urgent-{minute}", quick.options(priority=2), minute)
            movable.advance(minutes=1)
        found = await app._store.query(
            "find_claimable",
            namespace="default",
            queues='["default"]',
            functions='["quick 1"]',
            upgrading="[]",
            now=movable.now_ms(),
            limit=100,
        )
    turns = [row[1] for row in found]
    assert turns[:2] == ["urgent-0", "urgent-1"]
    assert turns.index("plain-0") < turns.index("urgent-3")  # nothing urgent that comes later overtakes for ever


# ── starting again ───────────────────────────────────────────────────────────────────────────────


async def test_a_debounced_task_begins_after_the_last_start_with_its_arguments(url: str, movable: MovableClock) -> None:
    later = quick.options(debounce=timedelta(seconds=30))
    async with Perdure(url) as app:
        for number in range(5):
            handle = await app.start("burst", later, number)
            movable.advance(seconds=20)
        async with app.worker():
            assert await app.run("another", quick, 7) == 7
            record = await (await handle.task()).record()
            assert (record.status, list(record.attempts)) == ("running", [])
            movable.advance(seconds=20)
            assert await handle.result() == 4
        with pytest.raises(Conflict, match="other arguments"):
            await app.start("burst", later, 9)


async def test_a_singleton_is_attached_to_while_it_goes_on(url: str) -> None:
    alone = quick.options(singleton=True)
    async with Perdure(url) as app:
        first = await app.start("only", alone, 1)
        second = await app.start("only", alone, 2)
        with pytest.raises(Conflict, match="other arguments"):
            await app.start("only", quick, 3)
        async with app.worker():
            assert (await first.result(), await second.result()) == (1, 1)


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


def slot(n: int, **over: object) -> Slot:
    plain = Slot("q", n, f"u{n}", 3, "w", 0, 3, "w", True)
    return plain._replace(**over)


def test_a_slot_is_taken_while_its_lease_is_its_takers() -> None:
    assert slot(1).is_taken(0, 0)
    assert not slot(1, lease_worker=None).is_taken(0, 0)
    assert not slot(1, lease_epoch=4, lease_worker="w").is_taken(0, 0)
    assert not slot(1, lease_epoch=None, lease_worker=None).is_taken(0, 0)
    assert slot(1, lease_epoch=2, lease_worker=None).is_taken(0, 0)
    assert not slot(1, lease_epoch=2, lease_worker=None, is_registered=False).is_taken(0, 0)
    assert slot(1, until=5).is_taken(4, 3) and not slot(1, until=5).is_taken(5, 3)
    assert not slot(1, until=500).is_taken(4, 3)  # the clock was set back since


def test_the_first_free_number_is_given_and_none_beyond_the_limit() -> None:
    limit = Limit("q", 2)
    assert free_slot(limit, [], 0) == (1, None)
    assert free_slot(limit, [slot(1)], 0) == (2, None)
    assert free_slot(limit, [slot(1), slot(2)], 0) is None
    free = slot(1, lease_worker=None)
    assert free_slot(limit, [free, slot(2)], 0) == (1, free)
    assert free_slot(limit, [free, slot(2), slot(3)], 0) is None  # the limit was made smaller


def test_a_queue_without_settings_has_no_limits() -> None:
    assert limits_of("ns", {}, "default", "") == []
    assert [limit.size for limit in limits_of("ns", {}, "default", "k")] == [1]


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"per_key": 0}, {"rate": (0, timedelta(1))}, {"rate": (1, timedelta(0))}]
)
def test_limits_that_cannot_be_are_refused(wrong: dict) -> None:
    with pytest.raises(InvalidInput):
        Queue(**wrong)
