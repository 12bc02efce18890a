"""Attempts that hang, tasks that take too long, hooks that bring up workers."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure, durable, pause, step
from perdure._ground.clock import MovableClock
from perdure._model import Entry
from perdure._worker.losses.death_policy import after_loss, progress_mark
from perdure.errors import TaskFailed, TimedOut
from perdure.types import Config
from tests.crash.conftest import env_of
from tests.support import engines
from tests.support.processes import Nursery
from tests.support.waiting import look_again
from tests.torture.kills import Home
from tests.worker.kit import events_of, kinds_of, opened, three, until, work

movable = engines.clock  # which moves this process too, not only its children


@step
async def for_ever() -> None:
    await asyncio.Event().wait()


@durable
async def hanging() -> None:
    await for_ever()


@durable
async def failing_at_work() -> None:
    raise ValueError("no such file")


@durable
async def waiting() -> None:
    await pause.input("when?", str)


async def has(app: Perdure, id: str, kind: str) -> bool:
    return kind in await kinds_of(app, id)


# ── hanging ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R115")
async def test_an_attempt_that_gets_no_further_is_flagged_once(url: str, movable: MovableClock) -> None:
    async with Perdure(url) as app:
        async with app.worker(stalled_after=timedelta(minutes=5)):
            await app.start("task", hanging)
            await until(lambda: has(app, "task", "attempt started"))
            await _until_with(movable, lambda: has(app, "task", "stalled"))
            for _ in range(20):
                movable.advance(minutes=1)
                await look_again()
        events = await events_of(app, "task")
    flagged = [event for event in events if event.kind == "stalled"]
    assert len(flagged) == 1 and flagged[0].data["seconds"] >= 300


@pytest.mark.req("R115")
async def test_by_choice_it_is_given_to_another(
    home: Home, children: Nursery, folder: Path, clock: MovableClock
) -> None:
    options = {"stalled_after": timedelta(minutes=5), "restart_stalled": True}
    said, gate = folder / "said", folder / "gate"
    worker = children.start(work, home, options, env=env_of(clock))
    worker.heard()
    async with opened(home) as app:
        handle = await app.start("task", three, str(said), str(gate))
        await until(Path(f"{gate}.awaited").exists)
        await _until_with(clock, lambda: has(app, "task", "worker_lost"))
        gate.touch()
        await handle.result()
        attempts = (await (await handle.task()).record()).attempts
    assert attempts[0].ended == "stalled" and attempts[-1].ended == "completed"


async def _until_with(clock: MovableClock, is_so: object) -> None:
    async def moved() -> object:
        clock.advance(seconds=20)
        await look_again()
        return await is_so()  # type: ignore[operator]

    await until(moved)


# ── taking too long ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R10")
@pytest.mark.parametrize("function", [hanging, waiting])
async def test_a_task_that_takes_too_long_fails_wherever_it_is(
    url: str, movable: MovableClock, function: object
) -> None:
    async with Perdure(url) as app, app.worker():
        handle = await app.start("task", function.options(timeout=timedelta(hours=1)))  # type: ignore[attr-defined]
        await until(lambda: has(app, "task", "paused" if function is waiting else "attempt started"))
        movable.advance(hours=2)
        with pytest.raises(TaskFailed) as failed:
            await handle.result()
        assert failed.value.error["message"].startswith("task 'task' was to end by 2030-01-01T01:00:00")
        await until(lambda: not app._store.presence.held)


@pytest.mark.req("R10")
async def test_a_time_out_is_kept_without_a_worker_too(url: str, movable: MovableClock) -> None:
    async with Perdure(url) as app:
        running = asyncio.create_task(app.run("task", hanging.options(timeout=timedelta(hours=1))))
        await until(lambda: app.tasks.get("task"))
        movable.advance(hours=2)
        with pytest.raises(TimedOut, match="was to end by"):
            await running
        record = await app.tasks.get("task")
        assert record is not None and record.status == "failed"
        assert [attempt.ended.partition(",")[0] for attempt in record.attempts] == ["timed out"]


@pytest.mark.req("R10")
async def test_a_time_out_is_kept_while_a_task_is_paused_and_no_worker_sees_it(url: str, movable: MovableClock) -> None:
    async with Perdure(url) as app:
        running = asyncio.create_task(app.run("task", waiting.options(timeout=timedelta(hours=1))))
        await until(lambda: app.tasks.get("task"))
        await until(lambda: has(app, "task", "paused"))
        movable.advance(hours=2)
        with pytest.raises(TimedOut, match="was to end by"):
            await running
        record = await app.tasks.get("task")
        assert record is not None and record.status == "failed"


@pytest.mark.req("R10")
async def test_a_failure_may_pause_the_task_for_a_person(url: str) -> None:
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="no such file"):
            await app.run("task", failing_at_work.options(config=Config(on_failure="pause")))
        record = await app.tasks.get("task")
        assert record is not None and record.status == "paused" and record.pause is not None
        assert record.pause.message == "failed: ValueError: no such file"


# ── bringing up workers ──────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R113")
async def test_the_spawn_hook_is_called_once_with_the_id_of_a_task_that_lost_its_worker(
    home: Home, children: Nursery, folder: Path
) -> None:
    said, gate, called = folder / "said", folder / "gate", folder / "called"
    script = "import os, sys; open(sys.argv[1], 'a').write(f'{sys.argv[2]} {os.environ[\"PERDURE_TASK_ID\"]}\\n')"
    first = children.start(work, home)
    first.heard()
    watchers = [children.start(work, home, {"queues": ["none"], "spawn": [sys.executable, "-c", script, str(called)]})]
    watchers += [children.start(work, home, {"queues": ["none"]})]
    async with opened(home) as app:
        await app.start("task", three, str(said), str(gate))
        await until(Path(f"{gate}.awaited").exists)
        watchers.pop().kill()  # so that it is the first watcher who notices
        for watcher in watchers:
            watcher.heard()
        first.kill()
        await until(lambda: called.exists() and called.read_text() == "task task\n")
        gate.touch()
        async with app.worker():
            await app.tasks.wait_for("task")
    assert called.read_text() == "task task\n"


async def test_a_hook_may_be_a_function_and_its_errors_harm_nobody(
    home: Home, children: Nursery, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said, gate = folder / "said", folder / "gate"
    called: list[str] = []

    async def hook(task_id: str) -> None:
        called.append(task_id)
        raise OSError("no more machines")

    first = children.start(work, home)
    first.heard()
    async with opened(home) as app, app.worker(queues=["none"], spawn=hook):
        await app.start("task", three, str(said), str(gate))
        await until(Path(f"{gate}.awaited").exists)
        first.kill()
        await until(lambda: "no more machines" in caplog.text)
    assert called == ["task"]


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R114")
def test_a_task_that_gets_further_is_never_given_up() -> None:
    loss = after_loss(0, 0, 10, max_retries=3)
    for mark in range(11, 100):
        loss = after_loss(loss.losses, loss.mark, mark, max_retries=3)
        assert (loss.losses, loss.wait, loss.gives_up) == (1, timedelta(0), False)


@pytest.mark.req("R114")
def test_one_that_does_not_waits_longer_each_time_and_is_given_up() -> None:
    losses, waits = 0, []
    while True:
        loss = after_loss(losses, 10, 10, max_retries=4)
        if loss.gives_up:
            break
        losses = loss.losses
        waits.append(loss.wait.total_seconds())
    assert waits == [0, 1, 2, 4] and loss.losses == 5


def test_an_intent_is_no_progress_and_a_later_line_is_further() -> None:
    done, meant = Entry("result", "step", "|a#1", b""), Entry("intent", "effect", "|b#1", b"")
    assert progress_mark(1, 0, [done, meant]) == progress_mark(1, 0, [done]) < progress_mark(1, 0, [done, done])
    assert progress_mark(2, 0, []) > progress_mark(1, 50, [done] * 100)
