"""A fork or a rollback has each appended item once: the items of the calls that it keeps, and no others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Perdure, checkpoint, durable, pause, span, state, step
from perdure._durable.progress import state_list
from perdure._durable.progress.checkpoints import position_of, recorded_later, state_at
from perdure._ground.encoding import codec
from perdure._model import Entry
from tests.durable.effects_kit import until_paused


@step
async def work(name: str) -> str:
    return name


@durable
async def lister() -> str:
    await state.append("log", "one")
    await work("between")
    async with span("span"):
        await state.append("log", "two")
    return await pause.input("done?", str)


async def _log(app: Perdure, id: str) -> Any:
    record = await app.tasks.get(id)
    assert record is not None
    return (record.state or {}).get("log")


@pytest.mark.req("R14")
async def test_a_fork_has_the_items_of_the_calls_that_it_keeps_and_appends_the_rest(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", lister)
        task = await app.tasks.open("t")
        for at in ("0", "state.append#1", "work", "state.append#2", "span span"):
            fork = await task.fork(f"after {at}", at=at)
            kept = {"0": None, "state.append#1": ["one"], "work": ["one"]}.get(at, ["one", "two"])
            assert await _log(app, fork.id) == kept
            await until_paused(app, fork.id, lister)
            assert await _log(app, fork.id) == ["one", "two"]


@pytest.mark.req("R14")
async def test_a_fork_of_a_fork_has_each_item_once_wherever_it_begins(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", lister)
        fork = await (await app.tasks.open("t")).fork("fork", at="span span")
        for at in ("0", "state.append#1", "work", "state.append#2", "span span"):
            again = await fork.fork(f"again after {at}", at=at)
            kept = {"0": None, "state.append#1": ["one"], "work": ["one"]}.get(at, ["one", "two"])
            assert await _log(app, again.id) == kept
            await until_paused(app, again.id, lister)
            assert await _log(app, again.id) == ["one", "two"]


@pytest.mark.req("R14")
async def test_a_fork_that_is_rolled_back_before_its_own_checkpoints_keeps_what_was_copied(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", lister)
        fork = await (await app.tasks.open("t")).fork("fork", at="work")
        await fork.pause("look at this", reason="human_input")
        await fork.resume(state={"approved": True})
        (patched,) = [one async for one in fork.checkpoints() if one.data.get("approved")]
        await until_paused(app, "fork", lister)
        await fork.rollback(patched.id)
        assert await _log(app, "fork") == ["one"]
        await until_paused(app, "fork", lister)
        assert await _log(app, "fork") == ["one", "two"]


@pytest.mark.req("R14")
async def test_a_task_that_was_rolled_back_appends_what_came_after_the_checkpoint_and_nothing_twice(url: str) -> None:
    async with Perdure(url) as app:
        for number in (2, 1, 0):
            await until_paused(app, f"t{number}", lister)
            task = await app.tasks.open(f"t{number}")
            to = [one async for one in task.checkpoints()][number]
            await task.rollback(to.id)
            assert await _log(app, task.id) == to.data["log"]
            await until_paused(app, task.id, lister)
            assert await _log(app, task.id) == ["one", "two"]


@durable
async def saver() -> str:
    page: dict[str, int] = await checkpoint.last({"page": 0})
    while page["page"] < 3:
        page["page"] += 1
        await checkpoint.save(page)
    return await pause.input("done?", str)


async def test_a_fork_of_a_fork_begins_with_a_state_that_is_there(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", saver)
        fork = await (await app.tasks.open("t")).fork("fork", at="3")
        again = await fork.fork("again", at="2")
        await until_paused(app, again.id, saver)
        record = await app.tasks.get("again")
        assert record is not None and record.state == {"page": 3}


def _appended(branch: str, seq: int) -> Entry:
    return Entry("result", "child", f"/{branch}#1|state.append#1", b"", codec.encode(f"u.{seq}"))


def test_branches_that_record_their_checkpoints_in_another_order_keep_all_of_a_checkpoint_and_no_more() -> None:
    entries = [(1, _appended("a", 1)), (2, _appended("b", 3)), (3, _appended("c", 2)), (4, _appended("d", 4))]
    assert state_at("u", [entry for _, entry in entries[:2]]) == 3
    assert recorded_later("u", entries, 2, 3) == {3}  # checkpoint 3 has the item of c
    assert position_of("u", entries, 2) == 1  # and what b did is not part of checkpoint 2
    assert recorded_later("u", entries, 1, 2) == {3}


def test_a_checkpoint_that_was_recorded_late_keeps_what_led_to_it() -> None:
    led_to_it = Entry("result", "step", "/c#1|work#1", b"")
    entries = [(1, _appended("a", 1)), (2, led_to_it), (3, _appended("b", 3)), (4, _appended("c", 2))]
    assert position_of("u", entries, 2) == 2
    assert recorded_later("u", entries, 2, 2) == {4}
    assert position_of("u", entries, 1) == 1


def test_a_save_of_the_fork_itself_is_no_part_of_its_sources_checkpoint() -> None:
    save = Entry("result", "child", "|checkpoint.save#1", b"", codec.encode([1, {}, {}]))
    entries = [(1, _appended("a", 1)), (2, _appended("b", 1)), (5, save)]
    assert recorded_later("u", entries, 1, 1) == {2}


@pytest.mark.req("R14", "R21")
@pytest.mark.parametrize("checkpoint_of", ["b", "c"])
async def test_a_rollback_keeps_what_led_to_a_checkpoint_that_was_recorded_late(
    url: str, monkeypatch: pytest.MonkeyPatch, checkpoint_of: str
) -> None:
    late = _Late(monkeypatch)
    async with Perdure(url) as app:
        await until_paused(app, "t", late.function)
        late.is_over = True
        task = await app.tasks.open("t")
        made = [one async for one in task.checkpoints() if one.data["log"][-1] == checkpoint_of]
        await task.rollback(made[0].id)
        await until_paused(app, "t", late.function)
        assert await _log(app, "t") == ["a", "b", "c"]
        assert late.worked == ["d", "b"]


class _Late:
    """A function whose branch b makes its checkpoint before branch c, and records it after c."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.worked: list[str] = []
        self.is_over = False
        b_has_made, c_has_recorded = asyncio.Event(), asyncio.Event()
        append = state_list.append_to_state

        async def append_late(task: Any, path: Any, item: Any, **how: Any) -> Any:
            made = await append(task, path, item, **how)
            if item == "b":
                b_has_made.set()
                await c_has_recorded.wait()
            return made

        monkeypatch.setattr(state_list, "append_to_state", append_late)

        @step
        async def done(name: str) -> None:
            self.worked.append(name)

        @step
        async def let_b_make() -> None:
            if not self.is_over:
                await b_has_made.wait()

        @step
        async def let_b_record() -> None:
            c_has_recorded.set()

        @durable(name="one branch records late")
        async def function() -> str:
            queue: asyncio.Queue[str] = asyncio.Queue()

            async def b() -> None:
                await queue.get()
                await done("b")
                await state.append("log", "b")

            async def c() -> None:
                await let_b_make()
                await state.append("log", "c")
                await let_b_record()

            async def d() -> None:
                await done("d")
                queue.put_nowait("go on")

            await state.append("log", "a")
            await asyncio.gather(b(), c(), d())
            return await pause.input("done?", str)

        self.function = function
