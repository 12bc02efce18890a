"""Checkpoints inside durable functions: the next attempt begins there, and ends as one that replayed everything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, checkpoint, durable, effect, idempotency_key, patched, pause, recorded, span, state, step
from perdure._durable.attempt.attempt import Attempt
from perdure._durable.lifecycle import preparation as prepare
from perdure._durable.lifecycle.app_run import carry_on_here
from perdure._durable.progress.checkpoints import Point, Saved
from perdure._ground.encoding import codec
from perdure._model import Entry
from perdure._store import Fence
from perdure.errors import InvalidInput, NotStorable
from perdure.testing import always_replay
from tests.durable.effects_kit import Died, Places, World, raising, until_paused
from tests.durable.kept_kit import World as Folder
from tests.durable.kept_kit import fresh_home, go_on, kill
from tests.support.fixtures import emptied_for_each_test
from tests.support.processes import Nursery
from tests.torture.kills import Home

world = World()
ran: list[str] = []


_nothing_happened = emptied_for_each_test(world.done, world.keys, ran)


@dataclass
class Import:
    page: int = 0
    found: list[int] = field(default_factory=list)


@step
async def read(page: int) -> int:
    ran.append(f"read {page}")
    return page * 10


@effect
async def publish(page: int) -> str:
    return world.do(f"page {page}", idempotency_key())


@durable
async def saving_pages(pages: int) -> list[int]:
    state = await checkpoint.last(Import())
    while state.page < pages:
        state.found.append(await read(state.page))
        await publish(7)  # the same arguments each time: only their number tells these calls apart
        state.page += 1
        await checkpoint.save(state, label=f"page {state.page}")
    return state.found


async def interrupted(app: Perdure, monkeypatch: Any, at: str, times: int, *args: Any) -> None:
    """Have an attempt die the `times`th time it passes a place."""
    places, left = Places(monkeypatch), [times]

    def maybe() -> None:
        left[0] -= 1
        if left[0]:
            places.at(at, maybe)
        else:
            raise Died

    places.at(at, maybe)
    with pytest.raises(Died):
        await app.run("job", saving_pages, *args)
    monkeypatch.undo()


@pytest.mark.req("R62")
@pytest.mark.parametrize("mode", ["checkpoint", "replay"])
async def test_from_a_checkpoint_or_by_replay_it_ends_as_an_uninterrupted_run(
    url: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    async with Perdure(url) as app:
        with pytest.MonkeyPatch.context() as patch:
            await interrupted(app, patch, "effect.before_intent", 4, 5)
        ran.clear()
        if mode == "replay":

            async def nowhere(*_: Any) -> None:
                return None

            monkeypatch.setattr(prepare, "resume_point", nowhere)
        assert await app.run("job", saving_pages, 5) == [0, 10, 20, 30, 40]
        assert ran == ["read 4"]
        assert world.done == ["page 7"] * 5 and len(set(world.keys)) == 5
        record = await app.tasks.get("job")
        assert record is not None and record.state == {"page": 5, "found": [0, 10, 20, 30, 40]}
        task = await app.tasks.handle("job")
        assert [cp.label async for cp in task.checkpoints()] == [f"page {n}" for n in range(1, 6)]
        events = await app.tasks.events("job")
        fresh = events[-1].data["replayed"]
        assert fresh == (1 if mode == "checkpoint" else 4 + 3)  # what the last attempt was told again


@pytest.mark.req("R62")
async def test_steps_effects_and_answers_between_checkpoints_are_replayed(quick_url: str) -> None:
    @durable
    async def mixed() -> list[Any]:
        state = await checkpoint.last({"round": 0, "seen": []})
        while state["round"] < 2:
            n = await read(state["round"])
            who = await pause.input(f"who? {state['round']}", str)
            draw = recorded.random()
            assert draw == recorded.random() or True
            state = {"round": state["round"] + 1, "seen": [*state["seen"], n, who]}
            await checkpoint.save(state)
        return state["seen"]

    async with Perdure(quick_url) as app:
        for name in ("ada", "bob"):
            await until_paused(app, "job", mixed)
            await (await app.tasks.handle("job")).answer(name)
        assert await app.run("job", mixed) == [0, "ada", 10, "bob"]
        assert ran == ["read 0", "read 1"]


async def test_tasks_of_the_function_are_numbered_on_after_a_checkpoint(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @durable
    async def rounds(total: int) -> list[int]:
        state = await checkpoint.last(Import())
        while state.page < total:
            state.found += await asyncio.gather(read(state.page), read(state.page + 100))
            state.page += 1
            await checkpoint.save(state)
        return state.found

    async with Perdure(quick_url) as app:
        with pytest.MonkeyPatch.context() as patch:
            Places(patch).at("journal.recorded", lambda: Places(patch).at("journal.recorded", raising(Died())))
            with pytest.raises(Died):
                await app.run("job", rounds, 3)
        with always_replay():
            assert await app.run("job", rounds, 3) == [0, 1000, 10, 1010, 20, 1020]


async def test_a_checkpoint_that_is_gone_or_damaged_is_no_loss(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Perdure(url) as app:
        with pytest.MonkeyPatch.context() as patch:
            await interrupted(app, patch, "effect.before_intent", 4, 5)
        task = await app.tasks.handle("job")
        gone = await task.invalidate_if(lambda cp: cp.seq == 3)
        assert len(gone) == 1
        ran.clear()
        assert await app.run("job", saving_pages, 5) == [0, 10, 20, 30, 40]
        assert ran == ["read 4"] and len(world.done) == 5


async def test_a_patch_is_decided_once_whichever_way_an_attempt_comes(quick_url: str) -> None:
    ways: list[bool] = []

    @durable
    async def patchy() -> int:
        state = await checkpoint.last(Import())
        while state.page < 2:
            ways.append(patched("new"))
            await read(state.page)
            await pause.input("go on?", str)
            state.page += 1
            await checkpoint.save(state)
        return state.page

    async with Perdure(quick_url) as app:
        for _ in range(2):
            await until_paused(app, "job", patchy)
            await (await app.tasks.handle("job")).answer("yes")
        assert await app.run("job", patchy) == 2
        assert set(ways) == {True}


async def test_where_a_state_cannot_tell_the_place_saving_is_refused(quick_url: str) -> None:
    @step
    async def inside() -> None:
        await checkpoint.save({})

    @durable
    async def beside() -> str:
        async def other() -> None:
            await read(1)

        running = asyncio.create_task(other())
        try:
            await checkpoint.save({})
        except InvalidInput as error:
            return error.what
        finally:
            await running
        return ""

    @durable
    async def in_a_step() -> None:
        await inside()

    @durable
    async def unstorable() -> None:
        await checkpoint.save({"a": object()})

    async with Perdure(quick_url) as app:
        assert "other asyncio tasks" in await app.run("a", beside)
        with pytest.raises(InvalidInput, match="inside a step"):
            await app.run("b", in_a_step)
        with pytest.raises(NotStorable):
            await app.run("c", unstorable)


async def test_a_task_that_is_done_is_no_reason_to_refuse_a_save(quick_url: str) -> None:
    @durable
    async def after_the_last() -> bool:
        said = asyncio.get_running_loop().create_future()

        async def other() -> None:
            said.set_result(await read(1))

        running = asyncio.create_task(other())
        await said  # before asyncio has reported the end of the task, as `gather` returns on Python 3.12 and later
        await checkpoint.save({"pages": 1})
        return running.done()

    async with Perdure(quick_url) as app:
        assert await app.run("a", after_the_last)


async def test_without_a_task_the_same_function_just_runs() -> None:
    @durable
    async def plain() -> int:
        state = await checkpoint.last(Import())
        state.page += 1
        await checkpoint.save(state)
        return state.page

    assert await plain() == 1


# ── killed ───────────────────────────────────────────────────────────────────────────────────────


@step
async def noted(folder: str, page: int) -> int:
    Folder(Path(folder)).note(page)
    return page


@durable
async def noting(folder: str, pages: int) -> list[int]:
    state = await checkpoint.last(Import())
    while state.page < pages:
        state.found.append(await noted(folder, state.page))
        state.page += 1
        await checkpoint.save(state)
        Folder(Path(folder)).may_die(state.page)
    return state.found


async def run_noting(home: Home, folder: Path) -> Any:
    async with Perdure(home.url, namespace=home.namespace) as app:
        return await app.run("job", noting, str(folder), 6)


@pytest.mark.req("R62")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("place, count", [("", 3), ("committer.before_commit", 9), ("committer.after_commit", 8)])
def test_killed_anywhere_it_goes_on_from_the_last_checkpoint(
    request: Any, tmp_path: Path, children: Nursery, engine: str, place: str, count: int
) -> None:
    home, folder = fresh_home(request, engine, tmp_path), Folder(tmp_path)
    if not place:
        folder.die_at(count)
    kill(children, run_noting, home, tmp_path, at=place, count=count)
    before = len(folder.notes())
    assert go_on(children, run_noting, home, tmp_path) == [0, 1, 2, 3, 4, 5]
    assert 6 <= len(folder.notes()) <= 7 and before >= 2  # at most the step that was cut off is done again


# ── spans ────────────────────────────────────────────────────────────────────────────────────────


@durable
async def thinking(rounds: int) -> str:
    for _ in range(rounds):
        async with span("thought"):
            await read(1)
    return "done"


@pytest.mark.req("R21")
@pytest.mark.parametrize("count", [1, 2])
async def test_a_span_whose_attempt_died_before_it_could_record_it_leaves_one_checkpoint(
    quick_url: str, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    places, passed = Places(monkeypatch), [0]

    def die_then() -> None:
        passed[0] += 1
        if passed[0] == count:
            raise Died
        places.at("span.marked", die_then)

    places.at("span.marked", die_then)
    async with Perdure(quick_url) as app:
        with pytest.raises(Died):
            await app.run("t", thinking, 3)
        assert await app.run("t", thinking, 3) == "done"
        task = await app.tasks.open("t")
        assert [made.label async for made in task.checkpoints()] == ["thought"] * 3


@durable
async def collecting(rounds: int) -> str:
    for number in range(rounds):
        await state.append("items", number)
    return "done"


async def _dies_in_its_second_call(app: Perdure, function: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The attempt dies between a checkpoint and the entry that tells of it; the task goes back to that checkpoint."""
    places, passed = Places(monkeypatch), [0]

    def die_then() -> None:
        passed[0] += 1
        if passed[0] == 2:
            raise Died
        for place in ("span.marked", "append.made"):
            places.at(place, die_then)

    for place in ("span.marked", "append.made"):
        places.at(place, die_then)
    with pytest.raises(Died):
        await app.run("t", function, 3)
    task = await app.tasks.open("t")
    newest = max([made.seq async for made in task.checkpoints()])
    await task.rollback(f"{(await task.record()).uid}.{newest}")
    return str(await app.run("t", function, 3))


@pytest.mark.req("R21")
async def test_an_item_of_a_call_that_was_cut_off_is_there_once_after_a_rollback_to_it(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(quick_url) as app:
        assert await _dies_in_its_second_call(app, collecting, monkeypatch) == "done"
        record = await app.tasks.get("t")
        assert record is not None and record.state == {"items": [0, 1, 2]}


@pytest.mark.req("R21")
async def test_a_span_that_was_cut_off_has_one_checkpoint_after_a_rollback_to_it(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Perdure(quick_url) as app:
        assert await _dies_in_its_second_call(app, thinking, monkeypatch) == "done"
        task = await app.tasks.open("t")
        assert [made.label async for made in task.checkpoints()].count("thought") == 3


# ── a function that saves and does not go on from it ─────────────────────────────────────────────


@durable
async def saves_and_asks(pages: int) -> list[int]:
    """It keeps a state for people to look at, and begins from its first line each time."""
    found = []
    for page in range(pages):
        found.append(await read(page))
        await checkpoint.save({"page": page})
    answer = await pause.input("more?", int)
    return [*found, await read(answer)]


async def test_a_function_that_never_asks_for_the_last_state_is_replayed_from_its_start(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", saves_and_asks, 2)
        record = await app.tasks.get("t")
        assert record is not None and record.state == {"page": 1}
        await (await app.tasks.open("t")).answer(5, by="test")
        assert await app.run("t", saves_and_asks, 2) == [0, 10, 50]
    assert ran == ["read 0", "read 1", "read 5"]


# ── timers after a save ──────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R45")
async def test_timers_after_a_save_are_recorded_ones_in_the_attempt_that_begins_there() -> None:
    """They have places in the order, and wait for them; only older journals go by the dates of their entries."""
    nothing = codec.encode(None)
    entries = [
        (1, Entry("result", "step", "|read#1", b"", nothing)),
        (2, Entry("result", "child", "|checkpoint.save#1", b"", codec.encode([1, {}, {}]))),
        (3, Entry("result", "timers", "|timers#1", b"", nothing, note={"from": 1})),
        (4, Entry("result", "timer", "|~timer#1", b"", nothing)),
    ]
    loop = asyncio.get_running_loop()
    async with Perdure("memory://timers-after-a-save") as app:
        point = Point(2, Saved(1, {}, {}), {})
        attempt = Attempt(app._store, Fence("t", "u", 2, "w"), 1, entries, {}, loop, point)
        assert attempt.is_before_frontier
        assert attempt.dated_timer(loop.time() + 1, print, (), None) is None


# ── what others wrote between two saves ──────────────────────────────────────────────────────────


@durable
async def growing_import() -> list[str]:
    state: dict[str, list[str]] = await checkpoint.last({"found": []})
    while len(state["found"]) < 3:
        state["found"].append(await pause.input(f"page {len(state['found'])}?", str))
        await checkpoint.save(state)
        await checkpoint.save(state)
    return state["found"]


@pytest.mark.req("R14")
async def test_a_save_keeps_what_others_set_since_the_last_one_also_in_the_next_attempt(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        for word in "abc":
            await until_paused(app, "import", growing_import)
            task = await app.tasks.open("import")
            await task.answer(word)
            if word == "b":
                await task.pause("look at this", reason="human_input")
                await task.resume(state={"approved": True})
        assert await app.run("import", growing_import) == ["a", "b", "c"]
        record = await app.tasks.get("import")
        assert record is not None and record.state == {"found": ["a", "b", "c"], "approved": True}


@pytest.mark.req("R14")
async def test_an_attempt_takes_no_save_of_an_earlier_one_for_anothers_write(quick_url: str) -> None:
    """The handle of a program that waits for its task is older than what a worker has saved meanwhile."""
    async with Perdure(quick_url) as app, Perdure(quick_url) as other:
        handles = []
        for word in "abc":
            await until_paused(other, "import", growing_import)
            handles.append(await app.tasks.open("import"))
            await (await other.tasks.open("import")).answer(word)
        old = handles[1]
        assert old.state == {"found": ["a"]}
        await carry_on_here(app.tasks, old)
        record = await app.tasks.get("import")
        assert record is not None and record.state == {"found": ["a", "b", "c"]}


@pytest.mark.req("R21")
async def test_a_fork_of_a_task_that_died_before_it_recorded_an_item_has_that_item_once(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, passed = Places(monkeypatch), [0]

    def die_then() -> None:
        passed[0] += 1
        if passed[0] == 2:
            raise Died
        places.at("append.made", die_then)

    places.at("append.made", die_then)
    async with Perdure(quick_url) as app:
        with pytest.raises(Died):
            await app.run("t", collecting, 3)
        source = await app.tasks.open("t")
        assert (await source.record()).state == {"items": [0, 1]}
        fork = await source.fork("fork")
        again = await fork.fork("again")
        for task in (source, again, fork):
            assert await app.run(task.id, collecting, 3) == "done"
            assert (await task.record()).state == {"items": [0, 1, 2]}
