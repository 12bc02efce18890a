"""DurableTaskState: what a task did, made and knows, in every process that goes on with it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from perdure import Perdure
from perdure._ground.secrets import envelope
from perdure.errors import InvalidData, InvalidInput, LeaseLost, NotStorable, TooLarge
from perdure.memory import (
    AppStorage,
    DurableTaskState,
    FileStorage,
    InMemoryStorage,
    PlanLayer,
    Slot,
    ThreadMemory,
)
from perdure.memory.prompt.recall import parse
from tests.tasks.upkeep_kit import sql


def data_of(memory: Any) -> dict[str, Any]:
    found: dict[str, Any] = memory.layer("task_state").state["data"]
    return found


@pytest.mark.req("R123")
def test_its_defaults_are_those_that_are_promised() -> None:
    layer = DurableTaskState()
    assert layer.slot == Slot.WORKING_MEMORY + 10 == 110
    assert (layer.budget.min, layer.budget.max) == (100, 800)
    assert layer.timeouts.store == timedelta(seconds=30)
    assert (layer.id, layer.scope) == ("task_state", "execution")
    assert layer.state == {"checkpoints": [], "files": [], "data": {}}


@pytest.mark.req("R124", "R126", "R128")
async def test_a_restarted_process_finds_what_was_there(url: str) -> None:
    async with Perdure(url) as app, app.memory("refactor", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"phase": "analysis", "none": None})
        await memory.after_turn(depth=3)
        await memory.after_turn(depth=4)
        before = memory.layer("task_state").state
    async with Perdure(url) as app, app.memory("refactor", [DurableTaskState()]) as memory:
        assert memory.layer("task_state").state == before
        assert [one["depth"] for one in before["checkpoints"]] == [3, 4]
        assert not memory.notes


@pytest.mark.req("R124")
async def test_without_the_store_the_copy_on_disk_is_used(tmp_path: Path) -> None:
    def layer() -> DurableTaskState:
        return DurableTaskState(base_dir=tmp_path / "out")

    async with Perdure("memory://first-" + tmp_path.name) as app, app.memory("refactor", [layer()]) as memory:
        await memory.layer("task_state").set_data({"phase": "analysis"})
        await memory.after_turn()
        before = memory.layer("task_state").state
    async with Perdure("memory://second-" + tmp_path.name) as app:
        async with app.memory("refactor", [layer()]) as memory:
            assert memory.layer("task_state").state == before
        async with app.memory("another", [layer()]) as memory:
            assert data_of(memory) == {}


@pytest.mark.req("R126", "R130")
async def test_what_can_never_be_kept_does_not_stand_in_the_way_of_what_follows(
    memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(memory_url) as app, app.memory("greedy", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"before": 1})
        with monkeypatch.context() as patch:
            patch.setattr(envelope, "MAX_BYTES", 10_000)
            with pytest.raises(TooLarge):
                await memory.layer("task_state").set_data({"large": os.urandom(10_000).hex()})
        for depth in (object(), "3", None, -1, 1 << 70, True):
            with pytest.raises(InvalidInput):
                await memory.after_turn(depth=depth)  # type: ignore[arg-type]
        await memory.after_turn(depth=3)
        assert not memory.notes
        assert data_of(memory) == {"before": 1}
    async with Perdure(memory_url) as app, app.memory("greedy", [DurableTaskState()]) as memory:
        assert [one["depth"] for one in memory.layer("task_state").state["checkpoints"]] == [3]


@pytest.mark.req("R140")
async def test_nobody_is_a_child_of_its_own(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("alone", [DurableTaskState()]) as memory:
        await memory.after_turn()
        with pytest.raises(InvalidInput, match="cannot be its own child"):
            await memory.returned(memory)
        assert len(memory.layer("task_state").state["checkpoints"]) == 1


@pytest.mark.req("R124")
async def test_a_damaged_copy_on_disk_is_not_believed(tmp_path: Path, memory_url: str) -> None:
    first = Perdure("memory://first-" + tmp_path.name)
    async with first as app, app.memory("refactor", [DurableTaskState(base_dir=tmp_path)]) as memory:
        await memory.after_turn()
    (copy,) = (tmp_path / ".perdure-memory").glob("*.state")
    data = bytearray(copy.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    async with Perdure(memory_url) as app, app.memory("refactor", [DurableTaskState(base_dir=tmp_path)]) as memory:
        assert memory.layer("task_state").state["checkpoints"] == []
        assert "copy on disk" in memory.notes[0].what


def spoil(url: str, key: str) -> bytes:
    """Damage what is kept under a key, as a bad disk would; the bytes as they are then."""
    ((value,),) = sql(url, "SELECT value FROM {memory} WHERE key = ? AND life = ''", key)
    spoiled = bytearray(value)
    spoiled[len(spoiled) // 2] ^= 1
    sql(url, "UPDATE {memory} SET value = ? WHERE key = ?", bytes(spoiled), key)
    return bytes(spoiled)


@pytest.mark.req("R124", "R95")
@pytest.mark.parametrize("has_copy", [True, False])
async def test_a_damaged_row_is_set_aside_and_the_copy_on_disk_is_used(
    shared_url: str, tmp_path: Path, has_copy: bool
) -> None:
    base = tmp_path / "out" if has_copy else None
    async with Perdure(shared_url) as app, app.memory("spoiled", [DurableTaskState(base_dir=base)]) as memory:
        await memory.layer("task_state").set_data({"phase": "analysis"})
        await memory.after_turn(depth=1)
        before = memory.layer("task_state").state
    spoiled = spoil(shared_url, "execution/spoiled/task_state/state")
    async with Perdure(shared_url) as app:
        async with app.memory("spoiled", [DurableTaskState(base_dir=base)]) as memory:
            assert memory.layer("task_state").state == (before if has_copy else DurableTaskState().state)
            assert "damaged" in memory.notes[0].what and "set aside" in memory.notes[0].what
            await memory.after_turn(depth=2)
            storage = AppStorage(app._store)
            (aside,) = await storage.list("execution/spoiled/task_state/state.damaged")
            assert await storage.get(aside) == spoiled
        async with app.memory("spoiled", [DurableTaskState(base_dir=base)]) as memory:
            depths = [one["depth"] for one in memory.layer("task_state").state["checkpoints"]]
            assert depths == ([1, 2] if has_copy else [2])
            assert not memory.notes


@pytest.mark.req("R124", "R94")
@pytest.mark.parametrize(
    "stored, is_used",
    [
        ({"checkpoints": [], "files": [], "data": {"bare": 1}}, True),
        ({"checkpoints": [], "files": [], "data": {}, "made": "many"}, False),
        ({"checkpoints": [{"depth": 1}], "files": [], "data": {}}, False),
        ({"checkpoints": [], "files": [7], "data": {}}, False),
        ({"checkpoints": [], "files": [], "data": []}, False),
        ("nonsense", False),
        (b"\xff", False),
    ],
)
async def test_what_is_stored_and_is_no_state_is_set_aside(memory_url: str, stored: Any, is_used: bool) -> None:
    async with Perdure(memory_url) as app:
        storage = AppStorage(app._store)
        await storage.set("execution/odd/task_state/state", stored)
        async with app.memory("odd", [DurableTaskState()]) as memory:
            assert data_of(memory) == ({"bare": 1} if is_used else {})
            await memory.after_turn()
        assert await storage.get("execution/odd/task_state/state.damaged") == (None if is_used else stored)
        async with app.memory("odd", [DurableTaskState()]) as memory:
            assert len(memory.layer("task_state").state["checkpoints"]) == 1


@pytest.mark.req("R94", "R124")
async def test_a_state_written_by_a_newer_perdure_is_left_alone(memory_url: str, tmp_path: Path) -> None:
    newer = {"format": 99, "checkpoints": [], "files": [], "data": {}, "more": {}}
    async with Perdure(memory_url) as app:
        storage = AppStorage(app._store)
        await storage.set("execution/later/task_state/state", newer)
        async with app.memory("later", [DurableTaskState(base_dir=tmp_path)]) as memory:
            await memory.after_turn()
            assert "newer perdure" in memory.notes[0].what
        assert await storage.get("execution/later/task_state/state") == newer


@pytest.mark.req("R124", "R135")
async def test_a_damaged_file_of_a_folder_is_set_aside_too(memory_url: str, tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "kept")
    async with Perdure(memory_url) as app:
        for _ in range(2):
            async with app.memory("filed", [DurableTaskState(base_dir=tmp_path / "out")], storage=storage) as memory:
                await memory.after_turn()
                count = len(memory.layer("task_state").state["checkpoints"])
            (file,) = (tmp_path / "kept").glob("*.mem")
            file.write_bytes(file.read_bytes()[:-3])
        assert count == 2
        assert len(list((tmp_path / "kept").glob("*.damaged-*"))) == 1


@pytest.mark.req("R128")
async def test_a_task_begun_anew_begins_with_nothing_also_not_from_disk(tmp_path: Path, memory_url: str) -> None:
    async with Perdure(memory_url) as app:
        task = await app.tasks.open("nightly")
        async with app.memory("nightly", [DurableTaskState(base_dir=tmp_path)]) as memory:
            await memory.layer("task_state").set_data({"old": True})
        await task.complete()
        await app.tasks.open("nightly", again=True)
        async with app.memory("nightly", [DurableTaskState(base_dir=tmp_path)]) as memory:
            assert data_of(memory) == {}


@pytest.mark.req("R128")
async def test_two_tasks_do_not_see_each_other(url: str) -> None:
    async with Perdure(url) as app:
        async with app.memory("a", [DurableTaskState()]) as one, app.memory("a/b", [DurableTaskState()]) as two:
            await one.layer("task_state").set_data({"whose": "a"})
            await two.layer("task_state").set_data({"whose": "a/b"})
        async with app.memory("a", [DurableTaskState()]) as one, app.memory("b", [DurableTaskState()]) as three:
            assert (data_of(one), data_of(three)) == ({"whose": "a"}, {})


@pytest.mark.req("R14")
async def test_two_processes_at_once_lose_nothing_of_each_other(url: str) -> None:
    async with Perdure(url) as app:
        async with app.memory("shared", [DurableTaskState()]) as one, app.memory("shared", [DurableTaskState()]) as two:
            for number in range(5):
                await asyncio.gather(
                    one.layer("task_state").set_data({f"one {number}": number}),
                    two.layer("task_state").set_data({f"two {number}": number}),
                    one.after_turn(depth=1),
                    two.after_turn(depth=2),
                )
        async with app.memory("shared", [DurableTaskState()]) as again:
            state = again.layer("task_state").state
            assert len(state["data"]) == 10
            assert sorted(one["depth"] for one in state["checkpoints"]) == [1] * 5 + [2] * 5


class Interrupted(InMemoryStorage):
    """Keeps the value, and then its caller is not told."""

    is_cut = False

    async def swap(self, key: str, value: Any, seen: int | None, *, expires_at: int | None = None) -> int | None:
        version = await super().swap(key, value, seen)
        if self.is_cut:
            self.is_cut = False
            raise TimeoutError("cut off")
        return version


@pytest.mark.req("R126")
async def test_a_write_nobody_saw_the_end_of_is_not_made_twice(memory_url: str) -> None:
    storage = Interrupted()
    async with Perdure(memory_url) as app, app.memory("cut", [DurableTaskState()], storage=storage) as memory:
        await memory.after_turn(depth=1)
        storage.is_cut = True
        await memory.after_turn(depth=2)
        assert memory.notes[-1].hook == "store"
        await memory.after_turn(depth=3)
        assert [one["depth"] for one in memory.layer("task_state").state["checkpoints"]] == [1, 2, 3]


class Gone(InMemoryStorage):
    """A storage that is away for a while."""

    is_away = False

    async def load(self, key: str) -> Any:
        if self.is_away:
            raise OSError("away")
        return await super().load(key)

    async def swap(self, key: str, value: Any, seen: int | None, *, expires_at: int | None = None) -> int | None:
        if self.is_away:
            raise OSError("away")
        return await super().swap(key, value, seen)


@pytest.mark.req("R126")
async def test_storage_that_goes_away_and_comes_back_has_all_of_it(memory_url: str) -> None:
    storage = Gone()
    async with Perdure(memory_url) as app:
        async with app.memory("gone", [DurableTaskState()], storage=storage) as memory:
            await memory.after_turn(depth=1)
            storage.is_away = True
            await memory.after_turn(depth=2)
            with pytest.raises(OSError, match="away"):
                await memory.call_tool("set_task_data", {"values": {"kept": True}})
            storage.is_away = False
            await memory.after_turn(depth=3)
        async with app.memory("gone", [DurableTaskState()], storage=storage) as memory:
            state = memory.layer("task_state").state
            assert [one["depth"] for one in state["checkpoints"]] == [1, 2, 3]
            assert state["data"] == {"kept": True}


@pytest.mark.req("R126")
async def test_a_layer_that_could_not_be_loaded_overwrites_nothing(memory_url: str) -> None:
    storage = Gone()
    async with Perdure(memory_url) as app:
        async with app.memory("gone", [DurableTaskState()], storage=storage) as memory:
            await memory.layer("task_state").set_data({"precious": 1})
        storage.is_away = True
        async with app.memory("gone", [DurableTaskState()], storage=storage) as memory:
            assert await memory.prompt_blocks(budget=4000) == []
            storage.is_away = False
            await memory.after_turn()
            assert data_of(memory) == {"precious": 1}


@pytest.mark.req("R55", "R126")
async def test_a_worker_that_has_lost_its_lease_changes_nothing(shared_url: str) -> None:
    async with Perdure(shared_url) as app:
        task = await app.tasks.open("taken")
        async with task.attempt(), app.memory("taken", [DurableTaskState()]) as memory:
            await memory.after_turn(depth=1)
            hold = app._store.presence.held[task.uid]
            hold.fence.epoch -= 1  # as if another attempt had taken over since
            with pytest.raises(LeaseLost):
                await memory.after_turn(depth=2)
            hold.fence.epoch += 1
        async with app.memory("taken", [DurableTaskState()]) as memory:
            assert [one["depth"] for one in memory.layer("task_state").state["checkpoints"]] == [1]


async def test_the_task_may_be_completed_before_its_memory(memory_url: str) -> None:
    async with Perdure(memory_url) as app:
        task = await app.tasks.open("done")
        async with app.memory("done", [DurableTaskState()]) as memory:
            await task.checkpoint({"a": 1})
            await memory.after_turn()
            await task.complete()
            await memory.complete("success")
            assert not memory.notes
            assert data_of(memory) == {"__outcome": "success"}


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R127")
@pytest.mark.parametrize("outcome", ["success", "failure", "aborted"])
async def test_the_outcome_is_kept_with_a_last_checkpoint(memory_url: str, outcome: Any) -> None:
    async with Perdure(memory_url) as app, app.memory("end", [DurableTaskState()]) as memory:
        await memory.after_turn(depth=2)
        await memory.complete(outcome)
        state = memory.layer("task_state").state
        assert state["data"] == {"__outcome": outcome}
        assert len(state["checkpoints"]) == 2
        (block,) = await memory.prompt_blocks(budget=4000)
        assert parse(block.text)["data"]["__outcome"] == outcome


@pytest.mark.req("R127")
async def test_the_key_of_the_outcome_is_nobody_elses(memory_url: str) -> None:
    async with Perdure(memory_url) as app, app.memory("end", [DurableTaskState()]) as memory:
        with pytest.raises(InvalidInput, match="reserved"):
            await memory.layer("task_state").set_data({"__outcome": "success"})
        with pytest.raises(InvalidInput, match="reserved"):
            await memory.layer("task_state").set_data({}, remove=["__outcome"])
        with pytest.raises(InvalidInput, match="is not an outcome"):
            await memory.complete("great")  # type: ignore[arg-type]
        assert data_of(memory) == {}


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes", "\ud800", {"deep": [object()]}])
async def test_what_json_does_not_know_is_refused_by_name(memory_url: str, value: Any) -> None:
    async with Perdure(memory_url) as app, app.memory("values", [DurableTaskState()]) as memory:
        await memory.layer("task_state").set_data({"fine": 1})
        with pytest.raises(NotStorable) as caught:
            await memory.layer("task_state").set_data({"culprit": value})
        assert caught.value.path == "culprit"
        assert data_of(memory) == {"fine": 1}


class Model(pydantic.BaseModel):
    phase: str
    count: int = 0


class Struct(msgspec.Struct):
    phase: str
    count: int = 0


@dataclasses.dataclass
class Plain:
    phase: str
    count: int = 0


@pytest.mark.req("R136")
@pytest.mark.parametrize("schema", [Model, Struct, Plain])
async def test_data_that_does_not_fit_its_schema_is_refused(url: str, schema: type) -> None:
    async with Perdure(url) as app, app.memory("typed", [DurableTaskState(schema=schema)]) as memory:
        layer = memory.layer("task_state")
        await layer.set_data({"count": 1})  # a field that is not there yet is no violation
        await layer.set_data({"phase": "one"})
        for wrong in ({"count": "many"}, {"phase": 7}, {"unknown": 1}):
            with pytest.raises(InvalidData):
                await layer.set_data(wrong)
        assert layer.state["data"] == {"count": 1, "phase": "one"}
    async with Perdure(url) as app, app.memory("typed", [DurableTaskState(schema=schema)]) as memory:
        assert data_of(memory) == {"count": 1, "phase": "one"}


class Shouting:
    """A serializer of somebody else."""

    def serialize(self, value: Any) -> bytes:
        return b"!" + json.dumps(value).encode()

    def deserialize(self, data: bytes) -> Any:
        assert data[:1] == b"!"
        return json.loads(data[1:])


class Slowly(Shouting):
    async def serialize(self, value: Any) -> bytes:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().serialize(value)

    async def deserialize(self, data: bytes) -> Any:
        await asyncio.sleep(0)
        return super().deserialize(data)


@pytest.mark.req("R136")
@pytest.mark.parametrize("serializer", [Shouting(), Slowly()])
async def test_a_serializer_decides_what_is_stored(url: str, serializer: Any, tmp_path: Path) -> None:
    def layer() -> DurableTaskState:
        return DurableTaskState(serializer=serializer, base_dir=tmp_path / "out")

    storage = InMemoryStorage()
    async with Perdure(url) as app:
        async with app.memory("coded", [layer()], storage=storage) as memory:
            await memory.layer("task_state").set_data({"a": [1, {"b": "é"}]})
        (key,) = await storage.list("")
        assert (await storage.get(key)).startswith(b"!")
        async with app.memory("coded", [layer()], storage=storage) as memory:
            assert data_of(memory) == {"a": [1, {"b": "é"}]}
        async with app.memory("coded", [layer()], storage=InMemoryStorage()) as memory:
            assert data_of(memory) == {"a": [1, {"b": "é"}]}  # by the copy on disk


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidInput, match="base_dir"):
        DurableTaskState(git_commit=True)
    with pytest.raises(InvalidInput, match="merge"):
        DurableTaskState(merge="deep")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="serialize"):
        DurableTaskState(serializer=json.JSONEncoder())
    with pytest.raises(InvalidInput, match="schema"):
        DurableTaskState(schema=int)


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R130")
async def test_a_model_sets_data_and_records_artifacts_by_tools(url: str, tmp_path: Path) -> None:
    async with Perdure(url) as app:
        async with app.memory("tools", [DurableTaskState(base_dir=tmp_path)]) as memory:
            assert [tool["name"] for tool in memory.tools()] == ["set_task_data", "record_artifact"]
            assert all(tool["parameters"]["type"] == "object" for tool in memory.tools())
            (tmp_path / "report.md").write_text("done")
            await memory.call_tool("set_task_data", {"values": {"phase": "writing", "old": 1}})
            await memory.call_tool("set_task_data", {"values": {}, "remove": ["old"]})
            answer = await memory.call_tool("record_artifact", {"path": "report.md"})
            assert answer["size"] == 4
        async with app.memory("tools", [DurableTaskState(base_dir=tmp_path)]) as memory:
            state = memory.layer("task_state").state
            assert (state["files"], state["data"]) == (["report.md"], {"phase": "writing"})


@pytest.mark.req("R130")
@pytest.mark.parametrize(
    "name, arguments",
    [
        ("no_such_tool", {}),
        ("set_task_data", {}),
        ("set_task_data", {"values": {}, "extra": 1}),
        ("set_task_data", {"values": "text"}),
        ("set_task_data", "text"),
        ("set_task_data", {"values": {}, "remove": "text"}),
        ("record_artifact", {"path": "../up"}),
        ("record_artifact", {"path": 5}),
        ("record_artifact", {"path": None}),
        ("write_plan", {"items": "text"}),
        ("write_plan", {"items": ["one", None]}),
        ("tick_plan", {"item": True}),
    ],
)
async def test_a_tool_call_that_is_wrong_is_refused_for_the_model_to_read(
    memory_url: str, tmp_path: Path, name: str, arguments: Any
) -> None:
    layers = [DurableTaskState(base_dir=tmp_path), PlanLayer()]
    async with Perdure(memory_url) as app, app.memory("tools", layers) as memory:
        with pytest.raises(InvalidInput):
            await memory.call_tool(name, arguments)
        assert memory.layer("task_state").state == {"checkpoints": [], "files": [], "data": {}}
        assert not memory.layer("plan").items


@pytest.mark.req("R130")
async def test_tools_of_two_layers_have_names_of_their_own(memory_url: str) -> None:
    layers = [ThreadMemory("a"), ThreadMemory("b", id="of the user")]
    async with Perdure(memory_url) as app, app.memory("tools", layers) as memory:
        assert [tool["name"] for tool in memory.tools()] == ["remember", "remember_of_the_user"]
        await memory.call_tool("remember_of_the_user", {"key": "k", "value": 1})
        assert (memory.layer("thread").get("k"), memory.layer("of the user").get("k")) == (None, 1)
