"""A step that was cut off goes on where its last mark says."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import pytest

from perdure import pause, progress
from perdure._durable import Retry, durable, step
from perdure._durable.journal import read_line
from perdure._durable.progress import loops
from perdure._durable.streams.stream_reader import row_of
from perdure.errors import InvalidInput
from tests.durable.effects_kit import until_paused
from tests.durable.kept_kit import World, go_on, kill
from tests.support.processes import nursery
from tests.torture.kills import Home

# `perdure._durable.progress.marks` is the class; this is its module.
progress_module = importlib.import_module("perdure._durable.progress.marks")


# ── a crash ──────────────────────────────────────────────────────────────────────────────────────


@step
async def _train(folder: str) -> list[int]:
    world, losses = World(Path(folder)), list(progress.cursor or [])
    for epoch in range(len(losses), 30):
        world.note(epoch)
        world.may_die(epoch)
        losses.append(epoch * epoch)
        await progress.mark(cursor=losses, done=epoch + 1, total=30, flush=True)
    return losses


@durable
async def training(folder: str) -> list[int]:
    return await _train(folder)


async def run_training(home: Home, folder: Path) -> Any:
    async with home.open() as app:
        return await app.run("training", training, str(folder))


@pytest.mark.req("R72", "R60")
def test_a_loop_of_thirty_epochs_killed_in_the_seventeenth_starts_with_the_seventeenth(
    home: Home, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.die_at(17)
    with nursery() as children:
        kill(children, run_training, home, tmp_path)
        losses = go_on(children, run_training, home, tmp_path)
    assert losses == [epoch * epoch for epoch in range(30)]
    assert world.notes() == [str(epoch) for epoch in [*range(18), *range(17, 30)]]


@pytest.mark.req("R60")
@pytest.mark.parametrize("count", [1, 9, 30])
def test_a_mark_that_was_waited_for_is_found_by_the_next_attempt(home: Home, tmp_path: Path, count: int) -> None:
    with nursery() as children:
        kill(children, run_training, home, tmp_path, at="progress.marked", count=count)
        go_on(children, run_training, home, tmp_path)
    assert World(tmp_path).notes() == [str(epoch) for epoch in range(30)]


# ── within one attempt ───────────────────────────────────────────────────────────────────────────


async def test_a_second_try_of_a_step_finds_the_cursor_of_the_first(quick_home: Home) -> None:
    seen = []

    @step(retry=Retry(attempts=3, wait=Retry().wait * 0))
    async def climb() -> int:
        seen.append(progress.cursor)
        await progress.mark(cursor=(progress.cursor or 0) + 1)
        if progress.cursor < 3:
            raise ValueError("slipped")
        return int(progress.cursor)

    @durable
    async def ascent() -> int:
        return await climb()

    async with quick_home.open() as app:
        assert await app.run("ascent", ascent) == 3
    assert seen == [None, 1, 2]


async def test_two_steps_have_a_cursor_each_even_side_by_side(quick_home: Home) -> None:
    @step
    async def count(name: str, to: int) -> Any:
        for number in range(to):
            await progress.mark(cursor=[name, number], flush=True)
            await asyncio.sleep(0)
        return progress.cursor

    @durable
    async def both() -> list[Any]:
        return await asyncio.gather(count("a", 3), count("b", 5))

    async with quick_home.open() as app:
        assert await app.run("both", both) == [["a", 2], ["b", 4]]


@pytest.mark.parametrize("pause, flush, written", [(3600.0, False, 1), (3600.0, True, 200), (0.0, False, 200)])
async def test_marks_that_follow_quickly_are_written_as_one(
    quick_home: Home, monkeypatch: pytest.MonkeyPatch, pause: float, flush: bool, written: int
) -> None:
    monkeypatch.setattr(progress_module, "WRITTEN_EVERY", pause)
    monkeypatch.setattr(progress_module, "WRITTEN_AT_MOST", 1e12)

    @step
    async def count() -> int:
        for number in range(200):
            await progress.mark(cursor=number, flush=flush)
        return int(progress.cursor)

    @durable
    async def counting() -> int:
        return await count()

    async with quick_home.open() as app:
        assert await app.run("counting", counting) == 199
        row = await row_of(app._store, "counting")
        entries = await read_line(app._store, row.uid, row.line)
    assert sum(entry.op == "progress" for _, entry in entries) == written


class Passing:
    """A clock that the test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


async def test_in_a_step_of_many_hours_an_item_of_a_second_is_still_marked_at_once(
    quick_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Passing()
    monkeypatch.setattr(progress_module, "time", clock)

    @step
    async def embed() -> int:
        async for number in loops.each(range(5)):
            clock.now += 1.0 if number else 36_000
        return 5

    @durable
    async def embedding() -> int:
        return await embed()

    async with quick_home.open() as app:
        assert await app.run("embedding", embedding) == 5
        row = await row_of(app._store, "embedding")
        entries = await read_line(app._store, row.uid, row.line)
    assert sum(entry.path.endswith("|loops") for _, entry in entries) == 5


async def test_a_mark_that_was_held_back_is_written_although_no_other_follows(
    quick_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = asyncio.Event()
    before = progress_module._Mark._write

    def spy(mark: Any, data: bytes) -> Any:
        found = before(mark, data)
        if mark.cursor == 2:
            written.set()
        return found

    monkeypatch.setattr(progress_module._Mark, "_write", spy)

    @step
    async def wait_long() -> int:
        await progress.mark(cursor=1)
        await progress.mark(cursor=2)
        await written.wait()
        return 2

    @durable
    async def waiting() -> int:
        return await wait_long()

    async with quick_home.open() as app:
        assert await app.run("waiting", waiting) == 2


@pytest.mark.req("R60")
async def test_how_far_a_step_is_can_be_seen_from_outside(quick_home: Home) -> None:
    @step
    async def copy() -> None:
        await progress.mark(cursor="page-2", done=4, total=10, flush=True)
        record = await app.tasks.get("copying")
        assert record is not None and record.progress is not None
        seen = record.progress
        assert (seen.operation, seen.percent, seen.done, seen.total, seen.cursor) == ("copy", 40.0, 4, 10, "page-2")

    @durable
    async def copying() -> None:
        await copy()

    async with quick_home.open() as app:
        await app.run("copying", copying)


async def test_code_that_stops_marking_has_not_changed(home: Home, tmp_path: Path) -> None:
    with nursery() as children:
        kill(children, run_training, home, tmp_path, at="progress.marked", count=5)

    @step(name="_train")
    async def train_without_marks(folder: str) -> list[int]:
        return [progress.cursor[-1]]

    @durable(name="training")
    async def training_without_marks(folder: str) -> list[int]:
        return await train_without_marks(folder)

    async with home.open() as app:
        assert await app.run("training", training_without_marks, str(tmp_path)) == [16]


# ── where there is nothing to mark ───────────────────────────────────────────────────────────────


async def test_without_a_task_nothing_is_kept_and_nothing_fails() -> None:
    await progress.mark(cursor=1, done=1, total=2)
    assert progress.cursor is None


async def test_a_mark_between_steps_is_refused(quick_home: Home) -> None:
    @durable
    async def marking() -> None:
        await progress.mark(cursor=1)

    async with quick_home.open() as app:
        with pytest.raises(InvalidInput, match="outside a step"):
            await app.run("marking", marking)


@pytest.mark.req("R60")
async def test_what_is_shown_of_a_step_leaves_the_cursors_of_other_operations(tmp_path: Path) -> None:
    home = Home(f"sqlite://{tmp_path}/p.db")

    @step
    async def count(to: int) -> None:
        for number in range(1, to + 1):
            await progress.mark(cursor=number, done=number, total=to, flush=True)

    @step
    async def weigh() -> None:
        await progress.mark(cursor="heavy", done=1, total=1, flush=True)

    @durable
    async def both() -> None:
        await count(3)
        await weigh()
        await pause.input("more?", str)
        await count(5)

    async with home.open() as app:
        await until_paused(app, "both", both)
    async with home.open() as app:  # another process: what was shown before is only in the store
        await (await app.tasks.handle("both")).answer("yes")
        await app.run("both", both)
        record = await app.tasks.get("both")
    assert record is not None and record.progress is not None
    shown = [record.progress.of(name) for name in ("weigh", "count")]
    assert [found and found.cursor for found in shown] == ["heavy", 5]
