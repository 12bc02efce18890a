"""A durable function is paused from outside, in its own process or another: at its next safe point, or now."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause, step
from perdure.effects import DID_NOT_HAPPEN, Happened
from tests.durable.test_pauses import ended, paused, seen
from tests.support.fixtures import emptied_for_each_test
from tests.support.processes import Child, Link, Nursery
from tests.support.waiting import look_again

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


class Tool:
    """A call that takes as long as the test wants."""

    def __init__(self) -> None:
        self.calls, self.begun, self.may_end = 0, asyncio.Event(), asyncio.Event()

    async def use(self) -> str:
        self.calls += 1
        self.begun.set()
        await self.may_end.wait()
        return f"call {self.calls}"


@pytest.mark.req("R37", "R38")
async def test_a_pause_lets_the_call_under_way_end_and_resume_does_not_redo_it(url: str) -> None:
    tool = Tool()

    @step
    async def use() -> str:
        return await tool.use()

    @step
    async def after() -> str:
        ran.append("after")
        return "done"

    @durable
    async def works() -> str:
        return await use() + await after()

    async with Perdure(url) as app, app.worker():
        handle = await app.start("works", works)
        await tool.begun.wait()
        task = await app.tasks.handle("works")
        await task.pause("not now", reason="human_input")
        tool.may_end.set()
        record = await seen(app, "works", lambda r: not [one for one in r.attempts if one.ended_at is None])
        assert (record.status, ran) == ("paused", [])
        assert record.attempts[-1].ended == f"paused by {record.pause.by['user']} on {record.pause.by['host']}"
        await task.resume()
        assert await ended(handle) == "call 1done"
    assert (tool.calls, ran) == (1, ["after"])


@pytest.mark.req("R37", "R38")
async def test_a_pause_now_reaches_into_a_step_which_is_run_again(quick_url: str) -> None:
    tool = Tool()

    @step
    async def use() -> str:
        return await tool.use()

    @durable
    async def works() -> str:
        return await use()

    async with Perdure(quick_url) as app, app.worker():
        handle = await app.start("works", works)
        await tool.begun.wait()
        task = await app.tasks.handle("works")
        await task.pause("stop", reason="human_input", now=True)
        record = await seen(app, "works", lambda r: not [one for one in r.attempts if one.ended_at is None])
        assert record.attempts[-1].ended == f"paused at once by {record.pause.by['user']} on {record.pause.by['host']}"
        tool.may_end.set()
        await task.resume()
        assert await ended(handle) == "call 2"


@pytest.mark.req("R37")
@pytest.mark.parametrize("happened", [True, False])
async def test_an_effect_that_a_pause_reaches_into_is_settled_when_it_is_resumed(
    quick_url: str, happened: bool
) -> None:
    tool = Tool()

    @effect(verify=lambda: Happened("found") if happened else DID_NOT_HAPPEN)
    async def charge() -> str:
        return await tool.use()

    @durable
    async def works() -> str:
        return await charge()

    async with Perdure(quick_url) as app, app.worker():
        handle = await app.start("works", works)
        await tool.begun.wait()
        task = await app.tasks.handle("works")
        await task.pause("stop", reason="human_input", now=True)
        await seen(app, "works", lambda r: not [one for one in r.attempts if one.ended_at is None])
        tool.may_end.set()
        await task.resume()
        assert await ended(handle) == ("found" if happened else "call 2")


@pytest.mark.req("R38")
async def test_an_answer_does_not_wake_a_task_that_somebody_has_paused(url: str) -> None:
    tool = Tool()

    @step
    async def use() -> str:
        return await tool.use()

    @durable
    async def works() -> str:
        first, second = await asyncio.gather(use(), pause.input("Your name?", str))
        return f"{first} {second}"

    async with Perdure(url) as app, app.worker():
        handle = await app.start("works", works)
        await tool.begun.wait()
        task = await app.tasks.handle("works")
        async with asyncio.timeout(120):
            while not await app._store.query("read_pauses", uid=task.uid):
                await look_again()
        await task.pause("hold it", reason="human_input")
        tool.may_end.set()
        await seen(app, "works", lambda r: not [one for one in r.attempts if one.ended_at is None])
        await task.answer("ada")
        assert (await task.record()).is_paused
        await task.resume()
        assert await ended(handle) == "call 1 ada"
    assert tool.calls == 1


async def test_a_function_that_ends_while_it_is_paused_waits_with_its_result(
    quick_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool()

    @step
    async def use() -> str:
        return await tool.use()

    @durable
    async def works() -> str:
        return await use()

    async with Perdure(quick_url) as app, app.worker():
        handle = await app.start("works", works)
        await tool.begun.wait()
        task = await app.tasks.handle("works")
        # The attempt is not told, as if it were elsewhere and had not looked yet.
        deaf = SimpleNamespace(loop=asyncio.get_running_loop(), drain=lambda: None, interrupt=lambda: None)
        monkeypatch.setattr("perdure._tasks.leases.attempt_under_way", lambda store, uid: deaf)
        await task.pause("hold it", reason="human_input")
        tool.may_end.set()
        record = await seen(app, "works", lambda r: not [one for one in r.attempts if one.ended_at is None])
        assert record.is_paused and record.attempts[-1].ended.startswith("paused by ")
        await task.resume()
        assert await ended(handle) == "call 1"


# ── another process ──────────────────────────────────────────────────────────────────────────────


@step
async def turn(number: int, log: str) -> int:
    with open(log, "a") as file:
        file.write(f"{number}\n")
    return number


@durable
async def busy(log: str) -> int:
    for number in range(1_000_000):
        await turn(number, log)
        await asyncio.to_thread(_breathe)
    return 0


def _breathe() -> None:
    with open("/dev/null", "rb") as nothing:
        nothing.read(1)


async def work(link: Link, url: str) -> None:
    async with Perdure(url) as app, app.worker():
        link.send(("said", "ready"))
        await asyncio.Event().wait()


@pytest.mark.req("R38")
@pytest.mark.parametrize("now", [False, True])
async def test_a_busy_loop_in_another_process_is_paused_from_here(
    shared_url: str, children: Nursery, tmp_path: Any, now: bool
) -> None:
    log = tmp_path / "log"
    child: Child = children.start(work, shared_url)
    assert child.heard() == "ready"
    async with Perdure(shared_url) as app:
        handle = await app.start("busy", busy, str(log))
        async with asyncio.timeout(120):
            while not log.exists():
                await look_again()
        task = await handle.task()
        await task.pause("stop", reason="human_input", **({"now": True} if now else {}))
        await seen(app, "busy", lambda r: r.is_paused and not [one for one in r.attempts if one.ended_at is None])
        before = log.read_text()
        await task.resume()
        async with asyncio.timeout(120):
            while log.read_text() == before:
                await look_again()
        await task.cancel()
    child.kill()
    lines = log.read_text().split()
    assert len(lines) == len(set(lines)) or now, "no step that ended was run again"


@pytest.mark.req("R31")
async def test_a_paused_task_holds_no_slot(quick_url: str) -> None:
    @durable
    async def waits() -> str:
        await pause.approval("Go on?")
        return "first"

    @durable
    async def other() -> str:
        return "second"

    async with Perdure(quick_url) as app, app.worker(concurrency=1):
        first = await app.start("first", waits)
        await paused(app, "first", "human_approval")
        assert await ended(await app.start("second", other)) == "second"
        await (await app.tasks.handle("first")).approve(by="ada")
        assert await ended(first) == "first"
