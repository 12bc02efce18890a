"""A worker that is asked to leave gives its tasks back at a safe point, and others go on with them."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from perdure import durable, step
from perdure._worker import Settings, Worker
from tests.support.processes import Link, Nursery, say
from tests.support.waiting import look_again
from tests.torture.kills import Home
from tests.worker.kit import lines, note, opened, until


@step(flush=True)
async def slow(path: str, gate: str) -> None:
    """Begins, and ends when the test lets it."""
    write(path, "slow began")
    while not Path(gate).exists():
        await look_again()
    write(path, "slow ended")


def write(path: str, what: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{what}\n")


@durable
async def long_road(path: str, gate: str) -> int:
    await note(path, "first")
    await slow(path, gate)
    return await note(path, "last")


@durable
async def sleeper(path: str) -> None:
    await note(path, "asleep")
    await asyncio.Event().wait()


@pytest.mark.req("R39")
async def test_a_drain_lets_steps_end_and_five_tasks_go_on_elsewhere_with_no_step_twice(
    home: Home, children: Nursery, folder: Path
) -> None:
    said, gate = folder / "said", folder / "gate"
    first = children.start(work_until_drained, home)
    assert first.heard() == "working"
    async with opened(home) as app:
        handles = [await app.start(f"task-{n}", long_road, str(said), str(gate)) for n in range(5)]
        await until(lambda: lines(said).count("slow began") == 5)
        os.kill(first.pid, signal.SIGTERM)
        assert first.heard() == "leaving"
        gate.touch()
        assert first.heard() == "left"
        first.wait()
        async with app.worker():
            assert await asyncio.gather(*(handle.result() for handle in handles)) == [os.getpid()] * 5
        for handle in handles:
            record = await (await handle.task()).record()
            assert [attempt.ended for attempt in record.attempts] == ["drained", "completed"]
    for what in ("first", "slow began", "slow ended", "last"):
        assert lines(said).count(what) == 5


async def work_until_drained(link: Link, home: Home) -> None:
    app = home.open()
    worker = Worker(app.tasks, Settings())
    loop = asyncio.get_running_loop()

    def leave() -> None:
        worker.ask_to_drain()
        say(link, "leaving")

    loop.add_signal_handler(signal.SIGTERM, leave)
    async with worker:
        say(link, "working")
        await worker.drained.wait()
    await app.close()
    say(link, "left")


@pytest.mark.req("R39")
async def test_a_function_that_only_sleeps_is_given_back_at_once(home: Home, folder: Path) -> None:
    said = folder / "said"
    async with opened(home) as app:
        worker = Worker(app.tasks, Settings())
        async with worker:
            handle = await app.start("task", sleeper, str(said))
            await until(lambda: lines(said))
            worker.ask_to_drain()
            await worker.drained.wait()
            record = await (await handle.task()).record()
    assert (record.status, [attempt.ended for attempt in record.attempts]) == ("running", ["drained"])


@pytest.mark.req("R39")
async def test_what_does_not_come_to_a_safe_point_in_grace_is_cut_and_given_back(home: Home, folder: Path) -> None:
    said, gate = folder / "said", folder / "gate"
    async with opened(home) as app:
        worker = Worker(app.tasks, Settings(grace=timedelta(milliseconds=10)))
        async with worker:
            handle = await app.start("task", long_road, str(said), str(gate))
            await until(lambda: "slow began" in lines(said))
            worker.ask_to_drain()
            await worker.drained.wait()
        record = await (await handle.task()).record()
        assert [attempt.ended for attempt in record.attempts] == ["interrupted: CancelledError"]
        gate.touch()
        async with app.worker():
            await handle.result()
    assert lines(said) == ["first", "slow began", "slow began", "slow ended", "last"]
