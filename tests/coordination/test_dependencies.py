"""Tasks that depend on others begin when those have completed, in whatever process that happens."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._durable import where
from perdure._model import POLICIES, find_circle, what_follows
from perdure._tasks import blockers
from perdure._tasks import tasks as tasks_module
from perdure.errors import Conflict, DependencyCycle, InvalidInput, TaskBlocked, TaskFailed, TimedOut
from perdure.types import Config
from tests.coordination.team import complete, failing, noted, part, run_worker
from tests.support.processes import Nursery

DIAMOND = {"top": (), "left": ("top",), "right": ("top",), "bottom": ("left", "right")}
LONG = timedelta(seconds=120)


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


def test_what_follows_from_what():
    for policy in POLICIES:
        assert what_follows({"a": "completed", "b": "completed"}, policy) == "begin"
        for unfinished in ("pending", "running", "paused", None):
            assert what_follows({"a": "completed", "b": unfinished}, policy) == "wait"
        for ended in ("failed", "cancelled"):
            assert what_follows({"a": "running", "b": ended}, policy) == policy


def test_circles_are_found_in_any_graph():
    assert find_circle({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == ()
    assert find_circle({"a": ["a"]}) == ("a", "a")
    found = find_circle({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]})
    assert found[0] == found[-1] and set(found) == {"a", "b", "c"}
    layers = {f"{n}.{m}": [f"{n + 1}.0", f"{n + 1}.1"] for n in range(200) for m in (0, 1)}
    assert find_circle(layers) == ()  # 2 ** 200 paths, and not one of them is walked twice


# ── tasks without functions ──────────────────────────────────────────────────────────────────────


@pytest.mark.req("R53")
async def test_a_task_cannot_be_worked_on_before_its_dependencies_have_completed(url):
    async with Perdure(url) as app:
        first = await app.tasks.create("first", state={})
        second = await app.tasks.create("second", state={}, depends_on=["first", "not-yet"])
        assert second.status == "pending"
        with pytest.raises(TaskBlocked) as refused:
            await second.checkpoint({"early": True})
        assert refused.value.waits_for == {"first": "running", "not-yet": None}
        with pytest.raises(TaskBlocked):
            async with second.attempt():
                raise AssertionError("it must not begin")
        await first.complete()
        assert await blockers(app._store, "second") == ["task 'not-yet' to complete (not there yet)"]
        found = await where(app.tasks, "second")
        assert found.waits_for == ["task 'not-yet' to complete (not there yet)"] and "begins when" in found.next
        await (await app.tasks.create("not-yet", state={})).complete()
        await second.checkpoint({"early": False})
        assert (await second.record()).status == "running"


@pytest.mark.req("R53")
async def test_pausing_and_resuming_a_blocked_task_does_not_let_it_begin(url):
    async with Perdure(url) as app:
        await app.tasks.create("first", state={})
        second = await app.tasks.create("second", state={}, depends_on=["first"])
        await second.pause("hold on", reason="human_input")
        await second.resume()
        with pytest.raises(TaskBlocked):
            await second.checkpoint({})


@pytest.mark.req("R53")
async def test_a_circle_is_refused_and_nothing_is_written(url):
    async with Perdure(url) as app:
        await app.tasks.create("a", state={}, depends_on=["b"])
        await app.tasks.create("b", state={}, depends_on=["c"])
        with pytest.raises(DependencyCycle) as refused:
            await app.tasks.create("c", state={}, depends_on=["a"])
        assert "a" in str(refused.value) and "c" in str(refused.value)
        with pytest.raises(DependencyCycle):
            await app.tasks.create("self", state={}, depends_on=["self"])
        assert await app.tasks.get("c") is None and await app.tasks.get("self") is None


@pytest.mark.req("R53")
async def test_a_circle_of_two_that_were_made_at_once_is_told_to_a_person(url, monkeypatch: pytest.MonkeyPatch):
    async def looked_too_early(*_: object) -> bool:
        return True

    async with Perdure(url) as app:
        await app.tasks.create("a", state={}, depends_on=["b"])
        await app.tasks.create("c", state={}, depends_on=["d"])
        with monkeypatch.context() as patch:
            patch.setattr(tasks_module, "has_to_wait", looked_too_early)
            await app.tasks.create("b", state={}, depends_on=["a"])
        async with app.worker():
            record = await app.tasks.wait_for("a", status="failed", timeout=LONG)
            await app.tasks.wait_for("b", status="failed", timeout=LONG)
        assert record.error["kind"] == "circle" and "wait for each other" in record.error["message"]
        assert (await app.tasks.get("c")).status == "pending"


def test_a_policy_is_one_of_three():
    with pytest.raises(InvalidInput, match="dependency_policy"):
        Config(dependency_policy="ignore")


# ── durable functions, by workers ────────────────────────────────────────────────────────────────


@pytest.mark.req("R53")
async def test_a_diamond_of_four_runs_in_order(url, tmp_path: Path):
    place = tmp_path / "log"
    async with Perdure(url) as app:
        for id in ("bottom", "right", "left", "top"):  # last first: the order is by dependency alone
            await app.start(id, part.options(depends_on=DIAMOND[id]), str(place), id)
        async with app.worker():
            await app.tasks.wait_for("bottom", timeout=LONG)
    ran = noted(place)
    assert ran[0] == "top" and set(ran[1:3]) == {"left", "right"} and ran[3:] == ["bottom"]


@pytest.mark.req("R53")
@pytest.mark.parametrize("policy, status", [("fail", "failed"), ("skip", "cancelled"), ("wait", "pending")])
async def test_when_a_dependency_fails_the_policy_says_what_follows(url, tmp_path: Path, policy: str, status: str):
    place = tmp_path / "log"
    async with Perdure(url) as app, app.worker():
        await app.start("a", failing)
        after = part.options(depends_on=["a"], dependency_policy=policy)
        await app.start("b", after, str(place), "b")
        await app.start("c", part.options(depends_on=["b"], dependency_policy="skip"), str(place), "c")
        await app.tasks.wait_for("a", status="failed", timeout=LONG)
        if policy == "wait":
            assert (await app.tasks.get("b")).status == "pending"
            return
        record = await app.tasks.wait_for("b", status=status, timeout=LONG)
        await app.tasks.wait_for("c", status="cancelled", timeout=LONG)
        if policy == "fail":
            assert record.error["kind"] == "dependency" and "a failed" in record.error["message"]
        else:
            assert (await app.tasks.events("b"))[-1].data == {"skipped": "a failed"}
    assert noted(place) == []


async def test_run_waits_for_what_its_task_depends_on_and_follows_the_policy(url, tmp_path: Path):
    place = str(tmp_path / "log")
    async with Perdure(url) as app:
        first = await app.tasks.create("first", state={})
        running = asyncio.create_task(app.run("second", part.options(depends_on=["first"]), place, "x"))
        await first.complete()
        assert await running == "x"
        with pytest.raises(ValueError, match="no"):
            await app.run("broken", failing)
        with pytest.raises(TaskFailed):
            await app.run("third", part.options(depends_on=["broken"], dependency_policy="fail"), place, "y")


async def test_many_blocked_tasks_do_not_keep_a_worker_from_others(url, tmp_path: Path):
    place = str(tmp_path / "log")
    async with Perdure(url) as app:
        for n in range(20):
            await app.start(f"blocked-{n}", part.options(depends_on=["never"], priority=9), place, "x")
        await app.start("free", part, place, "free")
        async with app.worker(concurrency=2):
            await app.tasks.wait_for("free", timeout=LONG)


@pytest.mark.req("R53")
async def test_a_blocked_task_that_was_paused_and_resumed_is_not_claimed_either(url, tmp_path: Path):
    place = tmp_path / "log"
    async with Perdure(url) as app:
        first = await app.tasks.create("first", state={})
        await app.start("second", part.options(depends_on=["first"]), str(place), "second")
        task = await app.tasks.handle("second")
        await task.pause("hold on", reason="human_input")
        await task.resume()
        await app.start("free", part, str(place), "free")
        async with app.worker(concurrency=1):  # it would come first, were it not blocked
            await app.tasks.wait_for("free", timeout=LONG)
            assert noted(place) == ["free"]
            await first.complete()
            await app.tasks.wait_for("second", timeout=LONG)
    assert noted(place) == ["free", "second"]


@pytest.mark.req("R47")
async def test_both_killed_and_when_the_first_is_done_the_second_runs(shared_url, tmp_path: Path, children: Nursery):
    place = tmp_path / "log"
    async with Perdure(shared_url) as app:
        first = await app.tasks.create("first", state={})
        await app.start("second", part.options(depends_on=["first"]), str(place), "second")
        worker = children.start(run_worker, shared_url)
        worker.heard()
        worker.kill()
        await first.complete()
        assert (await app.tasks.get("second")).status == "pending"
        children.start(run_worker, shared_url).heard()
        await app.tasks.wait_for("second", timeout=LONG)
    assert noted(place) == ["second"]


# ── waiting ─────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R54", "R52")
async def test_wait_for_sees_what_another_process_completes(shared_url, children: Nursery):
    async with Perdure(shared_url) as app:
        await app.tasks.create("it", state={"phase": "begun"})
        child = children.start(complete, shared_url, "it")
        child.heard()
        with pytest.raises(TimedOut) as over:
            await app.tasks.wait_for("it", timeout=timedelta(0))
        assert over.value.exit_code == 6
        waiting = asyncio.create_task(app.tasks.wait_for("it", timeout=LONG))
        await asyncio.to_thread(child.ask)
        record = await waiting
        assert record.result == {"by": "another process"} and record.state == {"phase": "begun"}


async def test_an_id_that_depends_on_others_still_stands_for_one_call(url, tmp_path: Path):
    async with Perdure(url) as app:
        await app.start("x", part.options(depends_on=["y"]), "here", "a")
        with pytest.raises(Conflict):
            await app.start("x", part, "here", "b")
