"""`app.run_until_paused` carries a task on until it has ended or waits, and says which."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import perdure.sync
from perdure import Perdure, durable, pause, signals, step
from perdure._ground.clock import MovableClock
from perdure.errors import Conflict, Rejected, TimedOut
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@step(flush=True)
async def build(version: str) -> str:
    ran.append(version)
    return version


@durable
async def release(version: str) -> str:
    await build(version)
    yes = await pause.approval(f"Ship {version}?")
    await pause.wait(hours=24)
    return f"{yes.by} shipped {version}"


async def test_it_returns_at_each_pause_and_goes_on_when_called_again(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        for _ in range(2):  # nobody has answered meanwhile: it is still paused, and nothing is run again
            stopped = await app.run_until_paused("r", release, "1.4")
            assert stopped.is_paused and not stopped.is_finished and stopped.status == "paused"
            assert stopped.pause is not None and stopped.pause.reason == "human_approval"
            assert "Ship 1.4?" in stopped.waits_for and ran == ["1.4"]
            with pytest.raises(Conflict, match="has no result yet"):
                print(stopped.result)
        await (await app.tasks.handle("r")).approve(by="ada")
        stopped = await app.run_until_paused("r", release, "1.4")
        assert stopped.pause is not None and stopped.pause.reason == "scheduled_wait"
        clock.advance(hours=25)
        stopped = await app.run_until_paused("r", release, "1.4")
        assert stopped.is_finished and stopped.result == "ada shipped 1.4" and stopped.pause is None
        assert (await app.run_until_paused("r", release, "1.4")).result == "ada shipped 1.4" and ran == ["1.4"]


async def test_nobody_works_on_a_task_that_it_left_paused(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.run_until_paused("r", release, "1.4")
        record = await app.tasks.get("r")
        assert record is not None and record.status == "paused" and record.attempts[-1].ended_at is not None


async def test_what_the_function_raises_is_raised(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.run_until_paused("r", release, "1.4")
        await (await app.tasks.handle("r")).reject(by="ada")
        for _ in range(2):
            with pytest.raises(Rejected):
                await app.run_until_paused("r", release, "1.4")


async def test_a_turn_among_others_is_no_pause_to_return_at(quick_url: str) -> None:
    @durable
    async def yields() -> str:
        await pause.yield_now()
        return "done"

    async with Perdure(quick_url) as app:
        assert (await app.run_until_paused("y", yields)).result == "done"


async def test_of_several_branches_the_attempt_ends_when_all_wait(quick_url: str) -> None:
    @durable
    async def branches() -> list[str]:
        return list(await asyncio.gather(signals.next("a", str), signals.next("b", str)))

    async with Perdure(quick_url) as app:
        stopped = await app.run_until_paused("b", branches)
        assert "'a'" in stopped.waits_for and "'b'" in stopped.waits_for
        await (await app.tasks.handle("b")).signal("a", "1")
        stopped = await app.run_until_paused("b", branches)
        assert stopped.is_paused and "'a'" not in stopped.waits_for
        await (await app.tasks.handle("b")).signal("b", "2")
        assert (await app.run_until_paused("b", branches)).result == ["1", "2"]


async def test_a_task_that_depends_on_others_is_pending(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.tasks.create("first", state={})
        waiting = release.options(depends_on=["first"])
        stopped = await app.run_until_paused("r", waiting, "1.4")
        assert stopped.status == "pending" and not stopped.is_paused and "first" in stopped.waits_for and ran == []


async def test_the_time_of_the_whole_task_counts_while_it_is_paused(quick_url: str, clock: MovableClock) -> None:
    async with Perdure(quick_url) as app:
        limited = release.options(timeout="1h")
        assert (await app.run_until_paused("r", limited, "1.4")).is_paused
        clock.advance(hours=2)
        with pytest.raises(TimedOut):
            await app.run_until_paused("r", limited, "1.4")


def test_blocking_code_has_it_too(tmp_path: Path) -> None:
    @perdure.sync.durable
    def asks() -> str:
        return (
            f"{threading.current_thread() is not threading.main_thread()} {perdure.sync.pause.input('how many?', int)}"
        )

    with perdure.sync.Perdure(tmp_path / "p.db") as app:
        stopped = app.run_until_paused("a", asks)
        assert stopped.is_paused and "how many?" in stopped.waits_for
        app.tasks.handle("a").answer(3, by="ada")
        assert app.run_until_paused("a", asks).result == "True 3"
