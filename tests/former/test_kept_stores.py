"""Stores that a former perdure wrote are opened, read, carried on and found sound by this one."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._tasks import examine, verify
from perdure.effects import UncertainEffect
from perdure.memory import DurableTaskState, Layer, PlanLayer, ThreadMemory
from perdure.testing import MovableClock
from tests.former import tour
from tests.former.kept_stores import NAMES, lay_out, written_at
from tests.support.journals import calls_of

Kept = tuple[str, str | None]


@pytest.fixture(params=[f"{name}-{kind}" for name in NAMES for kind in ("sqlite", "sealed", "postgres")])
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """The address and the key of a kept store that has been laid out anew."""
    name, _, kind = str(request.param).rpartition("-")
    monkeypatch.setenv("TOUR_LOG", str(tmp_path / "log"))
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    return lay_out(name, kind, tmp_path, url)


def runs(log: Path) -> list[str]:
    return (log / "log").read_text(encoding="utf-8").splitlines()


def test_there_are_kept_stores() -> None:
    assert NAMES


async def test_every_task_is_as_it_was_left(kept: Kept) -> None:
    url, key = kept
    async with Perdure(url, key=key) as app:
        found = {task.id: task for task in (await app.tasks.list(limit=1000)).items}
        assert {id: task.status for id, task in found.items() if id in ("completed", "failed", "cancelled")} == {
            "completed": "completed",
            "failed": "failed",
            "cancelled": "cancelled",
        }
        reasons = {task.pause.reason for task in found.values() if task.pause and task.id.startswith("paused-")}
        assert reasons == {id.removeprefix("paused-") for id in found if id.startswith("paused-")}
        assert len(reasons) == 6
        plain = await app.tasks.get("plain")
        assert plain is not None
        assert plain.state == {"n": 5, "text": "ä" * 2000, "log": ["one"]}
        assert plain.progress is not None and plain.progress.cursor == {"row": 3}
        task = await app.tasks.open("plain")
        labels = [(one.label, one.data["n"]) async for one in task.checkpoints() if one.label]
        assert sorted(labels) == [(f"step {n}", n) for n in range(1, 6)]
        assert [frame.name for frame in await task.frames.open()] == ["side"]
        assert found["completed"].result == {"result": [1, 2, 3]}
        forked = await app.tasks.get("forked")
        assert forked is not None and forked.state == {"n": "forked"}
        assert [schedule.id for schedule in await app.schedules.list()] == ["every-day"]


async def test_nothing_in_them_is_called_damaged(kept: Kept) -> None:
    url, key = kept
    async with Perdure(url, key=key) as app:
        assert [one for one in await examine(app._store) if one.level == "problem"] == []
        assert (await verify(app._store)).is_whole


async def test_a_half_done_function_is_carried_on_and_repeats_nothing(kept: Kept, tmp_path: Path) -> None:
    url, key = kept
    before = runs(tmp_path)
    async with Perdure(url, key=key) as app:
        await (await app.tasks.open("half")).answer("yes", by="test")
        told = await app.run("half", tour.tour, {"name": "first"})
    assert runs(tmp_path)[len(before) :] == ["fetch after", "ship home"]
    assert told["fetched"] == {"what": "first", "tags": {"a", "b"}, "size": 5}
    assert told["both"] == ["leftparcel to left", "rightparcel to right"]
    exact = ("count", "missing", "flaky", "late", "thread", "refused", "rung", "paid", "asked", "streamed", "items")
    assert [told[name] for name in exact] == [
        12, "needle", "path", 2, 6, "the shop is closed", "rung", 12, "forty-two", "one two three", 2,
    ]  # fmt: skip
    rest = ("child", "signal", "answer", "after", "shipped", "frame", "patched")
    assert [told[name] for name in rest] == ["errand for the tour", 7, "yes", 5, "parcel to home", "one name", True]
    with closing(tour.bank()) as db:
        assert db.execute("SELECT amount FROM paid").fetchall() == [(12,)]


async def test_a_function_that_was_carried_over_goes_on_in_its_last_line(kept: Kept, tmp_path: Path) -> None:
    url, key = kept
    before = runs(tmp_path)
    async with Perdure(url, key=key) as app:
        await (await app.tasks.open("lines")).approve(by="test")
        assert await app.run("lines", tour.lines) == 2
    assert runs(tmp_path) == before


async def test_a_function_goes_on_from_the_checkpoint_it_saved(kept: Kept, tmp_path: Path) -> None:
    url, key = kept
    before = runs(tmp_path)
    async with Perdure(url, key=key) as app:
        await (await app.tasks.open("saves")).approve(by="test")
        assert await app.run("saves", tour.saves) == {"n": 4}
    assert runs(tmp_path)[len(before) :] == ["fetch number 2", "fetch number 3"]


async def test_an_effect_that_was_cut_off_is_asked_about_and_not_run_again(kept: Kept, tmp_path: Path) -> None:
    url, key = kept
    before = runs(tmp_path)
    async with Perdure(url, key=key) as app:
        work = asyncio.ensure_future(app.run("cut", tour.cut, "glass"))
        await app.tasks.wait_for("cut", status="paused")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        uncertain: list[UncertainEffect] = list(await app.effects.list())
        assert [(one.task_id, one.name) for one in uncertain] == [("cut", "dies")]
        await app.effects.settle("cut", "done", value="broken")
        assert await app.run("cut", tour.cut, "glass") == "broken"
    assert runs(tmp_path) == before


async def test_what_a_model_was_told_is_there(
    kept: Kept, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = kept
    name = request.node.callspec.params["kept"].rpartition("-")[0]
    monkeypatch.setenv("PERDURE_TEST_CLOCK", str(MovableClock(tmp_path / "clock", start=written_at(name)).path))
    layers: list[Layer] = [DurableTaskState(), PlanLayer(), ThreadMemory("talk")]
    async with Perdure(url, key=key) as app, app.memory("remembers", layers) as memory:
        prompt = "\n".join(block.text for block in await memory.prompt_blocks(budget=4000))
    assert all(word in prompt for word in ("reading", "1. read", "2. write", "Ada"))


async def test_they_hold_every_kind_of_entry(kept: Kept) -> None:
    url, key = kept
    async with Perdure(url, key=key) as app:
        kinds = {(line.op, line.state) for id in ("half", "cut") for line in await calls_of(app, id)}
    assert kinds >= {
        ("step", "done"), ("step", "raised"), ("step", "cut"), ("inline", "done"), ("effect", "done"),
        ("effect", "raised"), ("now", "done"), ("child", "done"),
    }  # fmt: skip
    assert kinds & {("effect", "open"), ("effect", "uncertain")}  # whether its process is dead cannot always be told
