"""Every write of a task's state keeps what others wrote or is refused; none overwrites what its author did not see."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, span, state
from perdure._model import Overlap, merge
from perdure._tasks import carry
from perdure.errors import StaleVersion
from perdure.types import Config
from tests.support.waiting import look_again
from tests.torture import writers

pytestmark = pytest.mark.req("R14")


async def test_spans_that_end_beside_appends_lose_no_item(url: str) -> None:
    async def think(number: int) -> None:
        async with span(f"part {number}"):
            await asyncio.sleep(0)

    async def note(number: int) -> None:
        await state.append("items", number)

    @durable
    async def agent() -> None:
        await asyncio.gather(*(work(number) for number in range(5) for work in (think, note)))

    async with Perdure(url) as app:
        for number in range(5):
            await app.run(f"agent-{number}", agent)
            record = await app.tasks.get(f"agent-{number}")
            assert record is not None
            assert sorted(record.state["items"]) == [0, 1, 2, 3, 4]


async def test_a_holders_next_checkpoint_keeps_what_an_operator_set(url: str) -> None:
    async with Perdure(url) as app, Perdure(url) as other:
        task = await app.tasks.open("job", state={"phase": "one", "files": 0})
        await task.checkpoint({"phase": "two", "files": 1})
        operator = await other.tasks.open("job")
        await operator.pause("a look", reason="human_input")
        await operator.resume(state={"approved": True})
        made = await task.checkpoint({"phase": "three", "files": 2})
        assert made.data == task.state == {"phase": "three", "files": 2, "approved": True}


async def test_a_value_that_both_have_changed_is_refused_and_nothing_is_written(url: str) -> None:
    async with Perdure(url) as app, Perdure(url) as other:
        task = await app.tasks.open("job", state={"goal": {"name": "a", "size": 1}})
        await task.checkpoint({"goal": {"name": "b", "size": 1}})
        operator = await other.tasks.open("job")
        await operator.pause("a look", reason="human_input")
        await operator.resume(state={"goal": {"name": "c", "size": 1}})
        with pytest.raises(StaleVersion) as refused:
            await task.checkpoint({"goal": {"name": "d", "size": 2}})
        assert refused.value.path == "state.goal.name"
        assert (await task.record()).state == {"goal": {"name": "c", "size": 1}}
        await task.checkpoint({"goal": {"name": "d", "size": 2}})  # it has read what the operator wrote


async def test_a_pause_with_a_checkpoint_keeps_what_was_appended(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"items": [], "phase": "one"})
        again = await app.tasks.open("job")
        await again.append("items", "new")
        await task.pause("stop", reason="human_input", checkpoint={"items": [], "phase": "two"})
        assert (await task.record()).state == {"items": ["new"], "phase": "two"}


async def test_a_save_beside_an_append_leaves_the_codes_own_copy_alone(url: str) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.open("job", state={"items": []})
        again = await app.tasks.open("job")
        task.state["draft"] = "not saved yet"
        await again.append("items", 1)
        await carry(task, "runtime", {}, cause="test", kind="saved")
        assert task.state == {"items": [], "draft": "not saved yet"}
        await task.append("items", 2)
        assert task.state == {"items": [1, 2], "draft": "not saved yet"}
        assert (await app.tasks.open("job")).state == {"items": [1, 2]}


async def test_an_autosave_keeps_what_others_wrote_each_time(url: str, clock: Any) -> None:
    async with Perdure(url) as app, Perdure(url) as other:
        config = Config(checkpoint_interval=timedelta(seconds=10))
        task = await app.tasks.create("job", state={"n": 0}, config=config)
        async with task.attempt():
            operator = await other.tasks.open("job")
            await operator.pause("a look", reason="human_input")
            await operator.resume(state={"approved": True})
            for n in (1, 2):
                task.state["n"] = n
                clock.advance(seconds=11)
                while (await operator.record()).state["n"] != n:
                    await look_again()
                assert operator.state == {"n": n, "approved": True}


@pytest.mark.parametrize("seed", range(12))
async def test_writers_of_every_kind_at_once_lose_nothing(shared_url: str, seed: int) -> None:
    await writers.check(shared_url, seed)


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "read, now, given, merged",
    [
        ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"a": 1, "b": 1}, {"a": 1}, {"a": 2, "b": 1}, {"a": 2}),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1}, {"a": 2}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 2, 3]}),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, {"a": {"x": 5}}, {"a": {"x": 5, "y": 2}}),
        ({"a": 1}, {"a": 7}, {"a": 7}, {"a": 7}),
        ([1], [1, 2], [1, 3], [1, 2, 3]),
        (None, {"a": 1}, None, {"a": 1}),
    ],
)
def test_changes_of_one_side_are_taken(read: Any, now: Any, given: Any, merged: Any) -> None:
    assert merge(read, now, given) == merged


@pytest.mark.parametrize(
    "read, now, given, path",
    [
        ({"a": 1}, {"a": 2}, {"a": 3}, ("a",)),
        ({"a": 1}, {"a": 2}, {}, ("a",)),
        ({"a": 1}, {}, {"a": 2}, ("a",)),
        ({"a": [1]}, {"a": []}, {"a": [1, 3]}, ("a",)),
        ({"a": 1}, {"a": True}, {"a": 2}, ("a",)),
        ({}, {"a": {"x": 1}}, {"a": {"x": 2}}, ("a",)),
    ],
)
def test_changes_of_both_sides_to_one_value_are_named(read: Any, now: Any, given: Any, path: tuple[str, ...]) -> None:
    with pytest.raises(Overlap) as found:
        merge(read, now, given)
    assert found.value.path == path


def test_an_operator_in_another_process_keeps_its_patch(tmp_path: Path) -> None:
    """`perdure pause`, `perdure resume --set`, while this process holds the task."""

    async def hold() -> Any:
        url = f"sqlite://{tmp_path}/p.db"
        async with Perdure(url) as app:
            task = await app.tasks.open("job", state={"phase": 1})
            await task.checkpoint({"phase": 2})
            for words in (["pause", "job", "a look"], ["resume", "job", "--set", "approved=true"]):
                command = [sys.executable, "-m", "perdure", "--store", url, *words]
                await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
            await task.checkpoint({"phase": 3})
            return (await task.record()).state

    assert asyncio.run(hold()) == {"phase": 3, "approved": True}
