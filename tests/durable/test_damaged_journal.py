"""A killed task whose journal is damaged: what can be read is shown, and a fork goes on without repeating an effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from perdure import durable, effect, step
from perdure._durable import where
from perdure._runtime.bundles.task_bundle import export
from perdure._tasks import examine
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import JournalDamaged, RecordDamaged
from tests.durable.kept_kit import World, fresh_home, kill
from tests.support.journals import calls_of
from tests.support.processes import Nursery
from tests.tasks.upkeep_kit import sql
from tests.torture.kills import Home

asked: list[int] = []


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    asked.clear()
    return fresh_home(request, request.param, tmp_path)


@step(flush=True)
async def read(number: int) -> str:
    return f"page {number}"


def was_sent(folder: str, number: int) -> object:
    asked.append(number)
    return Happened(number * 10) if str(number) in World(Path(folder)).notes() else DID_NOT_HAPPEN


@effect(verify=was_sent)
async def send(folder: str, number: int) -> int:
    World(Path(folder)).note(number)
    World(Path(folder)).may_die(number)
    return number * 10


@durable(name="read and send")
async def work(folder: str) -> int:
    total = 0
    for number in range(4):
        await read(number)  # entries 1, 4, 7, 10
        total += await send(folder, number)  # intents 2, 5, 8, 11; outcomes 3, 6, 9
    return total


async def run(home: Home, folder: Path) -> None:
    async with home.open() as app:
        await app.run("t", work, str(folder))


def killed_in_its_third_effect(children: Nursery, home: Home, folder: Path) -> World:
    world = World(folder)
    world.die_at(2)
    kill(children, run, home, folder)
    assert world.notes() == ["0", "1", "2"]
    return world


def flip_a_byte(home: Home, uid: str, position: int) -> None:
    which = "WHERE task_uid = ? AND position = ?"
    ((entry,),) = sql(home.url, f"SELECT entry FROM {{journal}} {which}", uid, position)
    spoiled = bytearray(entry)
    spoiled[-4] ^= 1
    sql(home.url, f"UPDATE {{journal}} SET entry = ? {which}", bytes(spoiled), uid, position)


@pytest.mark.req("R95", "R34")
async def test_a_fork_before_the_damage_goes_on_and_repeats_no_effect(
    home: Home, children: Nursery, tmp_path: Path
) -> None:
    world = killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        for position in range(1, 8):
            asked.clear()
            flip_a_byte(home, task.uid, position)
            with pytest.raises(JournalDamaged) as damaged:
                await app.run("t", work, str(tmp_path))
            assert f"perdure fork t NEW --at {position - 1}" in damaged.value.do
            for at in (None, str(position)):
                with pytest.raises(JournalDamaged):
                    await task.fork("no", at=at)
            await task.fork(f"fork-{position}", at=str(position - 1))
            assert await app.run(f"fork-{position}", work, str(tmp_path)) == 60
            # What the journal still tells is not asked for: only the effect it was killed in, and one that was spoiled.
            assert asked == {3: [0, 2], 6: [1, 2]}.get(position, [2])
            flip_a_byte(home, task.uid, position)  # and back
    assert sorted(world.notes()) == ["0", "1", "2", *["3"] * 7]


@pytest.mark.req("R95")
async def test_what_can_be_read_of_a_damaged_journal_is_shown_with_the_way_on(
    home: Home, children: Nursery, tmp_path: Path
) -> None:
    killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        flip_a_byte(home, task.uid, 4)
        flip_a_byte(home, task.uid, 6)
        assert [(line.position, line.state) for line in await calls_of(app, "t")] == [
            *((1, "done"), (3, "done"), (4, "damaged"), (5, "uncertain"), (6, "damaged"), (7, "done"), (8, "uncertain"))
        ]
        assert (await app.journal.outline("t")).state == "ddxuxdu"
        assert [one.state for one in await app.effects.of("t")] == ["done", "uncertain", "uncertain"]
        found = await where(app.tasks, "t")
        assert (found.damaged, found.unseen) == ([4, 6], "") and "perdure fork t NEW --at 3" in found.next
        problems = [finding for finding in await examine(app._store) if finding.level == "problem"]
        assert [("perdure fork t NEW --at 3" in one.do, one.subject) for one in problems] == [(True, "task t")] * 2


Key = tuple[str, int, int]


def change_key(home: Home, before: Key, after: Key) -> None:
    change = "SET task_uid = ?, line = ?, position = ? WHERE task_uid = ? AND line = ? AND position = ?"
    sql(home.url, f"UPDATE {{journal}} {change}", *after, *before)


@pytest.mark.req("R95", "R34")
async def test_an_entry_that_is_missing_is_noticed_before_anything_runs(
    home: Home, children: Nursery, tmp_path: Path
) -> None:
    world = killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        for position in range(1, 9):
            own = (task.uid, 1, position)
            # Where a flipped bit of its key puts it: in no task, on no line, at another place.
            for key in ((f"{task.uid[:-1]}~", 1, position), (task.uid, 9, position), (task.uid, 1, position + 64)):
                change_key(home, own, key)
                with pytest.raises(JournalDamaged) as damaged:
                    await app.run("t", work, str(tmp_path))
                assert damaged.value.position == position
                assert position in (await where(app.tasks, "t")).damaged
                assert (position, "damaged") in [(one.position, one.state) for one in await calls_of(app, "t")]
                subjects = [one.subject for one in await examine(app._store) if one.level == "problem"]
                assert "task t" in subjects and (key[:2] == (task.uid, 1) or "journals" in subjects)
                change_key(home, key, own)
        assert world.notes() == ["0", "1", "2"]
        assert await app.run("t", work, str(tmp_path)) == 60
    assert world.notes() == ["0", "1", "2", "3"]


@pytest.mark.req("R95", "R34")
async def test_two_entries_that_have_changed_places_are_noticed_before_anything_runs(
    home: Home, children: Nursery, tmp_path: Path
) -> None:
    world = killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        for one, other in ((1, 4), (2, 3), (3, 6), (7, 8)):
            swap(home, task.uid, one, other)
            with pytest.raises(JournalDamaged, match="another place") as damaged:
                await app.run("t", work, str(tmp_path))
            assert damaged.value.position == one
            assert (await where(app.tasks, "t")).damaged == [one, other]
            problems = [finding.what for finding in await examine(app._store) if finding.level == "problem"]
            assert sum(f"entry {task.uid}" in what for what in problems) == 2
            swap(home, task.uid, one, other)
        assert world.notes() == ["0", "1", "2"]
        assert await app.run("t", work, str(tmp_path)) == 60
    assert world.notes() == ["0", "1", "2", "3"]


def swap(home: Home, uid: str, one: int, other: int) -> None:
    for before, after in ((one, 999), (other, one), (999, other)):
        change_key(home, (uid, 1, before), (uid, 1, after))


@pytest.mark.req("R95", "R34")
@pytest.mark.parametrize("line", [0, 3, 131073, 1 << 40])
async def test_a_task_on_a_line_that_its_journal_does_not_have_is_not_begun_anew(
    home: Home, children: Nursery, tmp_path: Path, line: int
) -> None:
    world = killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        sql(home.url, "UPDATE {tasks} SET line = ? WHERE uid = ?", line, task.uid)
        looks: list[Callable[[], Awaitable[object]]] = [
            lambda: app.run("t", work, str(tmp_path)),
            lambda: where(app.tasks, "t"),
            lambda: calls_of(app, "t"),
            lambda: app.effects.of("t"),
            lambda: task.fork("fork"),
            lambda: export(app.tasks, "t", tmp_path / "t.bundle"),
        ]
        for look in looks:
            with pytest.raises(RecordDamaged, match=f"on line {line:,} of its journal"):
                await look()
        problems = [finding.what for finding in await examine(app._store) if finding.level == "problem"]
        assert any(f"on line {line:,} of its journal" in what for what in problems)
        assert world.notes() == ["0", "1", "2"]
        sql(home.url, "UPDATE {tasks} SET line = 1 WHERE uid = ?", task.uid)
        assert await app.run("t", work, str(tmp_path)) == 60
    assert world.notes() == ["0", "1", "2", "3"]


@pytest.mark.req("R34")
async def test_a_journal_that_lacks_its_end_is_not_exported(home: Home, children: Nursery, tmp_path: Path) -> None:
    killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        sql(home.url, "DELETE FROM {journal} WHERE task_uid = ? AND position = 8", task.uid)
        with pytest.raises(JournalDamaged, match="has had 8 entries"):
            await export(app.tasks, "t", tmp_path / "t.bundle")
        assert not (tmp_path / "t.bundle").exists()


@pytest.mark.req("R34")
async def test_an_entry_that_a_fork_has_copied_is_missed_too(home: Home, children: Nursery, tmp_path: Path) -> None:
    killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        await (await app.tasks.handle("t")).fork("fork", at="7")
        fork = await app.tasks.handle("fork")
        for position in (1, 3, 6, 7):
            change_key(home, (fork.uid, 1, position), (fork.uid, 9, position))
            with pytest.raises(JournalDamaged) as damaged:
                await app.run("fork", work, str(tmp_path))
            assert damaged.value.position == position
            change_key(home, (fork.uid, 9, position), (fork.uid, 1, position))


@pytest.mark.req("R34")
async def test_a_fork_says_that_the_damaged_entry_may_have_been_an_effect_nobody_knows_of(
    home: Home, children: Nursery, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    killed_in_its_third_effect(children, home, tmp_path)
    async with home.open() as app:
        task = await app.tasks.handle("t")
        flip_a_byte(home, task.uid, 8)  # the intent of the effect it was killed in, and all there is of it
        await task.fork("fork", at="7")
    assert "If it was the beginning of an effect" in caplog.text


async def test_a_task_that_has_completed_needs_its_journal_no_more(home: Home, tmp_path: Path) -> None:
    async with home.open() as app:
        await app.run("t", work, str(tmp_path))
        task = await app.tasks.handle("t")
        flip_a_byte(home, task.uid, 4)
        assert (await where(app.tasks, "t")).next == "nothing: it has completed"
        assert await app.run("t", work, str(tmp_path)) == 60
