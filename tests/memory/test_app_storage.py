"""`app.storage`: values by key with versions and expiry, read by prefix, written together, fenced, sealed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, sync
from perdure._ground.bridge import drive
from perdure._ground.clock import MovableClock
from perdure._ground.secrets.crypto import generate
from perdure.errors import Conflict, InvalidInput, KeyMissing, LeaseLost
from perdure.memory import owner_prefix
from perdure.types import Delete, Put, Stored


@pytest.fixture
def app(shared_url: str) -> Iterator[Perdure]:
    app = Perdure(shared_url)
    yield app
    drive(app.close())


async def test_a_value_is_put_read_and_deleted(app: Perdure) -> None:
    assert await app.storage.put("a", {"n": 1, "raw": b"\0"}) == 1
    assert await app.storage.put("a", [2]) == 2
    assert await app.storage.get("a") == [2]
    assert await app.storage.load("a") == ([2], 2)
    assert await app.storage.delete("a")
    assert not await app.storage.delete("a")
    assert await app.storage.get("a") is None


async def test_a_write_for_another_version_is_refused(app: Perdure) -> None:
    await app.storage.put("a", "first", seen=0)
    for refused in (
        app.storage.put("a", "x", seen=0),
        app.storage.put("a", "x", seen=2),
        app.storage.delete("a", seen=2),
    ):
        with pytest.raises(Conflict, match="'a'"):
            await refused
    assert await app.storage.put("a", "second", seen=1) == 2
    assert await app.storage.delete("a", seen=2)


async def test_a_value_expires(clock: MovableClock, app: Perdure) -> None:
    await app.storage.put("s/a", 1, expires="10s")
    await app.storage.write([Put("s/b", 2, expires="20s"), Put("s/c", 3)])
    clock.advance(seconds=10)
    assert await app.storage.get_many(["s/a", "s/b", "s/c"]) == {"s/b": 2, "s/c": 3}
    clock.advance(seconds=10)
    assert await app.storage.scan("s/") == [Stored("s/c", 3, 1)]
    assert await app.storage.put("s/a", 4, seen=0) == 2


async def test_a_scan_reads_a_prefix_page_by_page_in_either_order(app: Perdure) -> None:
    keys = [f"p/{n:02}" for n in range(7)]
    await app.storage.write([Put(key, key) for key in [*keys, "o", "p", "p0"]])
    assert [found.key for found in await app.storage.scan("p/")] == keys
    assert [found.key for found in await app.storage.scan("p/", limit=3)] == keys[:3]
    assert [found.key for found in await app.storage.scan("p/", after=keys[2], limit=3)] == keys[3:6]
    assert [found.key for found in await app.storage.scan("p/", reverse=True, limit=2)] == keys[:-3:-1]
    assert [found.key for found in await app.storage.scan("p/", after=keys[2], reverse=True)] == keys[1::-1]
    assert [found.key for found in await app.storage.scan("", after="p0")] == []
    assert len(await app.storage.scan("")) == 10


async def test_a_scan_is_one_query(app: Perdure, monkeypatch: pytest.MonkeyPatch) -> None:
    await app.storage.write([Put(f"k/{n}", n) for n in range(1200)])
    asked: list[str] = []
    query = app._store.engine.query
    monkeypatch.setattr(app._store.engine, "query", lambda name, params: asked.append(name) or query(name, params))
    assert len(await app.storage.scan("k/")) == 1200
    assert len(await app.storage.get_many(f"k/{n}" for n in range(1200))) == 1200
    assert asked == ["scan_memory", "get_memories"]


async def test_changes_are_made_together_or_not_at_all(app: Perdure) -> None:
    await app.storage.put("a", 1)
    assert await app.storage.write([Put("b", 2), Put("a", 3, seen=1), Delete("c")]) == [1, 2, 0]
    with pytest.raises(Conflict):
        await app.storage.write([Put("b", 9), Delete("a", seen=1)])
    assert [found[:2] for found in await app.storage.scan("")] == [("a", 3), ("b", 2)]
    assert await app.storage.write([]) == []


async def test_of_many_that_add_the_same_keys_one_does_it(app: Perdure) -> None:
    async def add(n: int) -> bool:
        try:
            await app.storage.write([Put("a", n, seen=0), Put("b", n, seen=0)])
        except Conflict:
            return False
        return True

    assert sum(await asyncio.gather(*(add(n) for n in range(8)))) == 1
    assert await app.storage.get("a") == await app.storage.get("b")


@pytest.mark.parametrize(
    "changes",
    [
        [Put("a", 1), Delete("a")],
        [Put("", 1)],
        [Put("a", 1, seen=-1)],
        [Put("execution/one/a", 1), Put("execution/two/a", 1)],
    ],
)
async def test_changes_that_cannot_be_made_together_are_refused(app: Perdure, changes: list[Any]) -> None:
    with pytest.raises(InvalidInput):
        await app.storage.write(changes)


@pytest.mark.req("R55")
async def test_a_process_that_has_lost_the_lease_writes_nothing_for_the_task(shared_url: str) -> None:
    key = owner_prefix("execution", "thread/1") + "a"
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("thread/1")
        async with task.attempt():
            await app.storage.put(key, "ours")
            lose_lease(app)
            for late in (app.storage.put(key, "late"), app.storage.write([Put(key, "late")]), app.storage.delete(key)):
                with pytest.raises(LeaseLost):
                    await late
            assert await app.storage.get(key) == "ours"


def lose_lease(app: Perdure) -> None:
    """As another process does that takes the task over: it raises the epoch."""
    [hold] = app._store.presence.held.values()
    hold.fence.epoch -= 1


async def test_what_belongs_to_a_task_goes_with_it(app: Perdure) -> None:
    task = await app.tasks.open("t")
    await app.storage.write([Put("execution/t/a", 1), Put("b", 2)])
    await task.cancel()
    await task.delete()
    assert [found.key for found in await app.storage.scan("")] == ["b"]


async def test_values_are_sealed_by_the_key_of_the_store(shared_url: str, tmp_path: Path) -> None:
    async with Perdure(shared_url, key=generate()) as app:
        await app.storage.write([Put("a", "in the open")])
        [(_, _, sealed)] = app._store.engine.query("get_memories", {"namespace": "default", "keys": '["a"]', "now": 0})
        assert b"in the open" not in sealed
        assert [found.value for found in await app.storage.scan("a")] == ["in the open"]
    async with Perdure(shared_url) as without:
        with pytest.raises(KeyMissing):
            await without.storage.scan("a")


def test_blocking_code_has_the_same_storage(tmp_path: Path) -> None:
    with sync.Perdure(tmp_path / "p.db") as app:
        assert app.storage.write([Put("a", 1), Put("b", 2)]) == [1, 1]
        assert [found.value for found in app.storage.scan("", reverse=True)] == [2, 1]
