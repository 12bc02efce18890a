"""Adapters: the kit is green for each, and what is kept is sealed, rotated, collected and private."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._ground.secrets.crypto import generate
from perdure._tasks import collect, keys_in_use, rotate
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged
from perdure.memory import (
    AppStorage,
    DurableTaskState,
    FileStorage,
    InMemoryStorage,
    PostgresStorage,
    ScopedStorage,
    SqliteStorage,
    StorageAdapter,
    ThreadMemory,
    kit,
)
from perdure.memory.storage.adapter import owner_prefix, task_of

NUMBERS = iter(range(1_000_000))


@pytest.fixture(params=["memory", "file", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], StorageAdapter]:
    """Make a new, empty adapter of each kind."""
    if request.param == "memory":
        return InMemoryStorage
    if request.param == "file":
        return lambda: FileStorage(tmp_path / f"files {next(NUMBERS)}")
    if request.param == "sqlite":
        return lambda: SqliteStorage(tmp_path / f"{next(NUMBERS)}.db")
    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresStorage(url, namespace=f"kit-{next(NUMBERS)}")


@pytest.mark.req("R134", "R135")
async def test_the_kit_is_green_for_every_adapter(make: Callable[[], StorageAdapter]) -> None:
    await kit.check_storage(make)


@pytest.mark.req("R135")
async def test_the_same_layer_works_on_every_adapter(make: Callable[[], Any], memory_url: str) -> None:
    storage = make()
    async with Perdure(memory_url) as app:
        for turn in range(3):
            async with app.memory("same", [DurableTaskState()], storage=storage) as memory:
                await memory.layer("task_state").set_data({f"turn {turn}": turn})
                await memory.after_turn(depth=turn)
        async with app.memory("same", [DurableTaskState()], storage=storage) as memory:
            state = memory.layer("task_state").state
            assert state["data"] == {"turn 0": 0, "turn 1": 1, "turn 2": 2}
            assert [one["depth"] for one in state["checkpoints"]] == [0, 1, 2]
            assert not memory.notes
    if hasattr(storage, "close"):
        await storage.close()


class Forgetful(InMemoryStorage):
    async def list(self, prefix: str) -> Any:
        return [key for key in await super().list(prefix) if not key.startswith("a/b")]


class Aliasing:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, key: str) -> Any:
        return self.values.get(key)

    async def set(self, key: str, value: Any) -> None:
        self.values[key] = value

    async def delete(self, key: str) -> None:
        self.values.pop(key, None)

    async def list(self, prefix: str) -> list[str]:
        return [key for key in self.values if key.startswith(prefix)]


@pytest.mark.req("R134")
@pytest.mark.parametrize("wrong, sentence", [(Forgetful, "with this prefix"), (Aliasing, "after set")])
async def test_the_kit_finds_an_adapter_that_is_wrong(wrong: type, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        await kit.check_storage(wrong)


@pytest.mark.parametrize("key", ["", "nul\0", "\ud800", "k" * 1025, 7, None])
async def test_a_key_that_not_every_engine_can_hold_is_refused(make: Callable[[], Any], key: Any) -> None:
    storage = make()
    with pytest.raises(InvalidInput):
        await storage.set(key, 1)
    with pytest.raises(InvalidInput):
        await storage.get(key)
    if hasattr(storage, "close"):
        await storage.close()


# ── scopes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R128")
async def test_no_scope_can_name_another() -> None:
    adapter = InMemoryStorage()
    places = [("execution", "a", "x"), ("execution", "a/b", "x"), ("execution", "a", "b/x"), ("thread", "a", "x")]
    places += [("execution", "a%2Fb", "x"), ("global", "", "x"), ("resource", "a", "x"), ("execution", "a", "../x")]
    storages = [ScopedStorage(adapter, *place) for place in places]
    for number, storage in enumerate(storages):
        await storage.set("value", number)
        await storage.set("../a/x/value", -1)
    for number, storage in enumerate(storages):
        assert await storage.get("value") == number
        assert await storage.list() == ["../a/x/value", "value"]


@pytest.mark.parametrize("task_id", ["a", "a/b", "50%", "%2F", "é 😀", "x" * 200])
def test_the_owner_of_a_key_is_read_from_it(task_id: str) -> None:
    assert task_of(owner_prefix("execution", task_id) + "layer/name") == task_id
    assert task_of(owner_prefix("thread", task_id) + "layer/name") == ""
    assert task_of("execution") == task_of("execution/x") == ""


# ── files ────────────────────────────────────────────────────────────────────────────────────────


async def test_files_are_private_and_replaced_whole(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "store")
    await storage.set("secret/é", {"a": 1})
    (file,) = (tmp_path / "store").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    before = file.stat().st_ino
    await storage.set("secret/é", {"a": 2})
    assert file.stat().st_ino != before
    assert [path.name for path in (tmp_path / "store").iterdir()] == [file.name]


@pytest.mark.req("R142")
async def test_files_are_sealed_when_there_is_a_key(tmp_path: Path) -> None:
    key = generate()
    sealed = FileStorage(tmp_path, key=key)
    await sealed.set("a", {"password": "hunter2 hunter2"})
    (file,) = tmp_path.iterdir()
    assert b"hunter2" not in file.read_bytes()
    assert await FileStorage(tmp_path, key=key).get("a") == {"password": "hunter2 hunter2"}
    with pytest.raises(KeyMissing):
        await FileStorage(tmp_path).get("a")


@pytest.mark.req("R95")
async def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    await storage.set("a", {"b": 1})
    await storage.set("k" * 300, 1)
    (file,) = [path for path in tmp_path.iterdir() if "~" not in path.name]
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with pytest.raises(RecordDamaged):
        await storage.get("a")
    assert await storage.get("k" * 300) == 1


async def test_a_write_that_was_given_up_does_not_undo_a_later_one(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    with storage._mutex:  # the first one waits here, in its thread
        first = asyncio.create_task(storage.set("key", "old"))
        await asyncio.sleep(0)
        second = asyncio.create_task(storage.set("key", "new"))
        await asyncio.sleep(0)
        first.cancel()
    await second
    await asyncio.gather(first, return_exceptions=True)
    assert await storage.get("key") == "new"


# ── the app's own store ──────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R142")
async def test_what_layers_keep_is_sealed_and_goes_through_a_change_of_keys(shared_url: str) -> None:
    old, new = generate(), generate()
    async with Perdure(shared_url, key=old) as app, app.memory("sealed", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"token": "hunter2 hunter2"})
        rows = await app._store.query("heads_of_memory", uid="", life="", key="", limit=10)
        assert rows and all(b"hunter2" not in row[3] for row in rows)
    async with Perdure(shared_url, key=f"{new},{old}") as app:
        rotation = await rotate(app._store)
        assert rotation.is_done and not rotation.stuck
        assert set(await keys_in_use(app._store)) == {rotation.key}
    async with Perdure(shared_url, key=new) as app, app.memory("sealed", [DurableTaskState()]) as memory:
        assert memory.layer("task_state").state["data"] == {"token": "hunter2 hunter2"}


@pytest.mark.req("R142")
async def test_one_tasks_memory_cannot_be_passed_off_as_anothers(memory_url: str) -> None:
    async with Perdure(memory_url, key=generate()) as app:
        storage = AppStorage(app._store)
        await storage.set("execution/a/x/y", 1)
        await storage.set("execution/b/x/y", 2)
        tables = app._store.engine._tables  # type: ignore[attr-defined]
        tables.memory["default", "", "execution/b/x/y"] = tables.memory["default", "", "execution/a/x/y"]
        with pytest.raises(RecordDamaged):
            await storage.get("execution/b/x/y")


@pytest.mark.req("R131", "R104")
async def test_gc_removes_what_has_expired_and_nothing_else(shared_url: str, clock: MovableClock) -> None:
    async with Perdure(shared_url) as app:
        layers = [ThreadMemory("chat", ttl=timedelta(minutes=5)), DurableTaskState()]
        async with app.memory("t", layers) as memory:
            await memory.layer("thread").remember("a", 1)
            await memory.after_turn()
        assert (await collect(app._store)).forgotten == 0
        clock.advance(minutes=6)
        assert (await collect(app._store, dry_run=True)).forgotten == 1
        assert (await collect(app._store)).forgotten == 1
        assert [key.split("/")[0] for key in await AppStorage(app._store).list("")] == ["execution"]


@pytest.mark.req("R8")
async def test_a_deleted_task_is_forgotten(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("gone/1")
        async with app.memory("gone/1", [DurableTaskState()]) as memory:
            await memory.after_turn()
        await task.complete()
        await task.delete()
        assert list(await AppStorage(app._store).list("")) == []
