"""Upkeep of a large store tells how far it has come, and stops between two tasks when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._ground.secrets import crypto
from perdure._runtime import export
from perdure._tasks import Policy, UpkeepStep, collect, examine, rotate, store_of, verify
from perdure.errors import Conflict

OLD, NEW = crypto.generate("k-old"), crypto.generate("k-new")


async def fill(app: Perdure, count: int = 5) -> None:
    for number in range(count):
        task = await app.tasks.create(f"task-{number}", state={"n": 0})
        for n in range(4):
            await task.checkpoint({"n": n})
        await task.complete()


def stops_after(count: int, part: str = "") -> tuple[list[UpkeepStep], Callable[[UpkeepStep], object]]:
    told: list[UpkeepStep] = []

    def tell(step: UpkeepStep) -> object:
        told.append(step)
        return sum(not part or one.part == part for one in told) < count

    return told, tell


async def test_gc_tells_of_each_task_and_stops_between_two(url: str) -> None:
    async with Perdure(url) as app:
        await fill(app)
        store, policy = store_of(app.tasks), Policy(keep_last=1)
        told, tell = stops_after(2)
        report = await collect(store, policy, tell=tell)
        assert report.stopped and len(report.pruned) == 2
        assert [(one.part, one.done, one.task) for one in told] == [
            ("checkpoints", 1, "task-0"),
            ("checkpoints", 2, "task-1"),
        ]
        told, tell = stops_after(100)
        rest = await collect(store, policy, tell=tell)
        assert not rest.stopped and len(rest.pruned) == 3 and len(told) == 5
        assert (await verify(store)).is_whole


async def test_gc_stops_between_two_deletions(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        await fill(app)
        clock.advance(days=2)
        policy = Policy(finished_for=timedelta(days=1))
        _, tell = stops_after(2, "finished tasks")
        report = await collect(store_of(app.tasks), policy, tell=tell)
        assert report.stopped and report.tasks == 2
        assert (await collect(store_of(app.tasks), policy)).tasks == 3


async def test_an_audit_tells_of_each_task_and_says_what_it_has_not_seen(url: str) -> None:
    async with Perdure(url) as app:
        await fill(app)
        told, tell = stops_after(3)
        audit = await verify(store_of(app.tasks), tell=tell)
        assert audit.stopped and [one.task for one in told] == ["task-0", "task-1", "task-2"]
        assert any("stopped" in one for one in audit.unseen)
        assert not (await verify(store_of(app.tasks), tell=lambda step: None)).stopped


async def test_a_doctor_that_is_stopped_says_so(url: str) -> None:
    async with Perdure(url) as app:
        await fill(app)
        store = store_of(app.tasks)
        told, tell = stops_after(10_000)
        whole = await examine(store, tell=tell)
        assert {"checkpoints", "chains", "journals", "task"} <= {one.part for one in told}
        assert not [one for one in whole if one.subject == "stopped"]
        for part in ("checkpoints", "task", "journals", "chains"):
            _, tell = stops_after(1, part)
            found = await examine(store, tell=tell)
            assert found[-1].subject == "stopped", part
            assert len(found) < len(whole)


async def test_a_rotation_that_is_stopped_is_finished_by_the_next(shared_url: str) -> None:
    async with Perdure(shared_url, key=OLD) as app:
        await fill(app)
    async with Perdure(shared_url, key=f"{NEW},{OLD}") as app:
        store = store_of(app.tasks)
        told, tell = stops_after(2)
        stopped = await rotate(store, tell=tell)
        assert stopped.stopped and not stopped.is_done and len(told) == 2
        assert (await app.tasks.handle("task-0")).state == {"n": 3}
        assert (await rotate(store)).is_done


async def test_an_export_that_is_stopped_writes_no_file_and_moves_no_task(url: str, tmp_path: Path) -> None:
    async with Perdure(url) as app:
        await app.tasks.create("task", state={})
        file = tmp_path / "bundle"
        for count in (1, 2):
            _, tell = stops_after(count)
            with pytest.raises(Conflict, match="stopped"):
                await export(app.tasks, "task", file, move=True, tell=tell)
            record = await app.tasks.get("task")
            assert not file.exists() and record is not None and record.status == "running"
        told, tell = stops_after(100)
        await export(app.tasks, "task", file, tell=tell)
        assert file.exists() and [one.part for one in told] == ["saves", "journal", "rows"]
