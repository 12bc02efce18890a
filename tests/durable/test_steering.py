"""Steering a durable function from outside: the kill switch, and other instructions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect, idempotency_key, model_call, pause, step, stream
from perdure._durable import where
from perdure._ground.bridge import Nap, drive
from perdure.cli import main
from perdure.errors import InvalidTransition, KillSwitchOn
from perdure.signals import instruction
from perdure.sync import Perdure as SyncPerdure
from tests.durable.effects_kit import World, until_paused, wait_until
from tests.support.fixtures import emptied_for_each_test
from tests.support.processes import Link, Nursery

world = World()
ran: list[str] = []


_nothing_happened = emptied_for_each_test(world.done, ran)


@step
async def look(number: int) -> int:
    ran.append(f"look {number}")
    return number


@effect
async def send(number: int) -> str:
    return world.do(f"mail {number}", idempotency_key())


@model_call(model="m")
async def ask(messages: list[str]) -> str:
    ran.append("ask")
    return "fine"


# ── the kill switch ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R120")
@pytest.mark.parametrize("kind", ["step", "effect", "model"])
async def test_once_it_is_on_the_next_call_is_refused_even_if_the_loop_ignores_it(url: str, kind: str) -> None:
    refused = 0
    flipped = asyncio.Event()

    @durable
    async def loop(kind: str) -> str:
        nonlocal refused
        number = 0
        while refused < 3:
            try:
                number += 1
                await (look(number) if kind == "step" else send(number) if kind == "effect" else ask([str(number)]))
                flipped.set()
            except BaseException:
                refused += 1
        return "it went on as it liked"

    async with Perdure(url) as app:
        work = asyncio.ensure_future(app.run("job", loop, kind))
        await flipped.wait()
        await app.kill_switch.on("job", why="it mails customers")
        done = len(ran) + len(world.done)
        await wait_until(lambda: refused >= 3)
        assert len(ran) + len(world.done) <= done + 1  # the one that was under way
        record = await app.tasks.get("job")
        await wait_until(lambda: _is_free(app))
        assert record is not None and record.status == "running"
        assert not work.done()
        (attempt,) = (await (await app.tasks.handle("job")).record()).attempts
        assert attempt.ended == "stopped by the kill switch"
        work.cancel()


async def _is_free(app: Perdure) -> bool:
    record = await (await app.tasks.handle("job")).record()
    return record.attempts[-1].ended_at is not None


@pytest.mark.req("R120")
async def test_when_it_is_off_again_the_task_goes_on_where_it_was(quick_url: str) -> None:
    gate = asyncio.Event()

    @step
    async def waits() -> None:
        ran.append("waits")
        await gate.wait()

    @durable
    async def three() -> list[str]:
        await send(1)
        await waits()
        return [await send(2)]

    async with Perdure(quick_url) as app, app.worker():
        await app.start("job", three)
        await wait_until(lambda: "waits" in ran)
        await app.kill_switch.on()
        await wait_until(lambda: _is_free(app))
        gate.set()
        assert await app.effects.of("job") and world.done == ["mail 1"]
        assert [switch.id for switch in await app.kill_switch.list()] == [None]
        await app.kill_switch.off()
        assert await (await app.handle("job", three)).result() == ["receipt of mail 2"]
        assert world.done == ["mail 1", "mail 2"] and ran == ["waits", "waits"]


async def test_an_effect_under_way_ends_and_is_recorded(quick_url: str) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @effect
    async def slow() -> str:
        begun.set()
        await may_end.wait()
        await look(7)  # part of the effect, which is let come to its end
        return world.do("slow", idempotency_key())

    @durable
    async def one_and_more() -> str:
        done = await slow()
        await send(2)
        return done

    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("job", one_and_more))
        await begun.wait()
        await app.kill_switch.on("job")
        may_end.set()
        await wait_until(lambda: _is_free(app))
        assert world.done == ["slow"]
        assert [one.state for one in await app.effects.of("job")] == ["done"]
        await app.kill_switch.off("job")
        assert await work == "receipt of slow" and world.done == ["slow", "mail 2"]


async def test_calls_inside_a_step_are_refused_too(quick_url: str) -> None:
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    @step
    async def many_calls() -> None:
        begun.set()
        while True:
            try:
                await may_go_on.wait()
                await ask(["more"])
            except asyncio.CancelledError:
                continue  # it does not listen
            except BaseException as refused:
                ran.append(type(refused).__name__)
                raise

    @durable
    async def nested() -> None:
        await many_calls()

    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("job", nested))
        await begun.wait()
        await app.kill_switch.on("job")
        may_go_on.set()
        await wait_until(lambda: _is_free(app))
        assert ran == ["Paused"]
        work.cancel()


async def test_a_task_that_is_stopped_before_it_begins_does_not_begin(quick_url: str) -> None:
    @durable
    async def mailing() -> str:
        return await send(1)

    async with Perdure(quick_url) as app, app.worker():
        await app.kill_switch.on("job", why="not yet")
        work = asyncio.ensure_future(app.run("job", mailing))
        await app.start("other", mailing)
        await app.tasks.wait_for("other")
        assert world.done == ["mail 1"]
        await wait_until(lambda: _exists(app))
        record = await app.tasks.get("job")
        assert record is not None and record.attempts == []
        with pytest.raises(KillSwitchOn, match="not yet"):
            await app.kill_switch.check("job")
        await app.kill_switch.check("other")
        found = await where(app.tasks, "job")
        assert "stopped it by the kill switch: not yet" in found.next
        await app.kill_switch.off("job")
        assert await work == "receipt of mail 1"


async def _exists(app: Perdure) -> bool:
    return await app.tasks.get("job") is not None


async def test_no_stream_is_begun(quick_url: str) -> None:
    flipped = asyncio.Event()

    async def produce(prefix: str) -> Any:
        ran.append("asked")
        yield "text"

    @durable
    async def reads() -> str:
        await look(1)
        await flipped.wait()
        return "".join([piece async for piece in stream("answer", produce)])

    async with Perdure(quick_url) as app:
        work = asyncio.ensure_future(app.run("job", reads))
        await wait_until(lambda: ran == ["look 1"])
        await app.kill_switch.on()
        flipped.set()
        await wait_until(lambda: _is_free(app))
        assert ran == ["look 1"]
        await app.kill_switch.off()
        assert await work == "text" and ran == ["look 1", "asked"]


async def hold_on(link: Link, url: str) -> None:
    @durable
    async def mails() -> None:
        number = 0
        while True:
            number += 1
            await send(number)
            if number == 1:  # nobody reads more: it would wait for a reader, and not for the switch
                link.send(("said", number))

    async with Perdure(url) as app:
        await app.run("job", mails)


@pytest.mark.req("R120")
def test_another_process_is_stopped_from_the_shell(shared_url: str, children: Nursery, capsys: Any) -> None:
    child = children.start(hold_on, shared_url)
    child.heard()
    assert main(["kill-switch", "on", "--why", "too many mails", "--store", shared_url]) == 0
    with SyncPerdure(shared_url) as app:
        task = app.tasks.handle("job")
        while task.record().attempts[-1].ended_at is None:
            drive(_a_moment())
        sent = len(app.effects.of("job"))
        assert [switch.why for switch in app.kill_switch.list()] == ["too many mails"]
        assert len(app.effects.of("job")) == sent
    assert "all tasks" in capsys.readouterr().out
    child.kill()


async def _a_moment() -> None:
    await Nap(0.005)


# ── instructions ─────────────────────────────────────────────────────────────────────────────────


@step
async def write(chapter: int, goal: str) -> str:
    ran.append(f"{chapter}: {goal}")
    return f"{chapter} {goal}"


@durable
async def report(chapters: int) -> list[str]:
    written = []
    for number in range(1, chapters + 1):
        goal = await instruction("in English")
        written.append(await write(number, goal))
        if number == 6:
            await pause.input("go on?", str)
    return written


@pytest.mark.req("R40")
async def test_another_goal_at_six_of_ten_leaves_the_six_as_they_are(url: str) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "job", report, 10)
        task = await app.tasks.handle("job")
        await task.instruct("in Dutch")
        await task.instruct("in French")
        await task.answer("yes")
        found = await app.run("job", report, 10)
        assert found == [f"{n} in English" for n in range(1, 7)] + [f"{n} in French" for n in range(7, 11)]
        assert len(ran) == 10  # nothing was written twice


@pytest.mark.req("R40")
async def test_a_failed_task_is_resumed_with_another_instruction(url: str) -> None:
    @durable
    async def picky() -> str:
        goal = await instruction("in Klingon")
        await look(1)
        if await instruction() == "":
            raise ValueError("cannot")
        return goal + ", " + await instruction()

    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="cannot"):
            await app.run("job", picky)
        task = await app.tasks.handle("job")
        with pytest.raises(InvalidTransition):
            await task.instruct("too late")
        await task.resume(instruction="in Latin")
        with pytest.raises(ValueError, match="cannot"):  # what it decided by is recorded; that stays
            await app.run("job", picky)
        assert ran == ["look 1"]


@pytest.mark.req("R40")
async def test_from_the_shell(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"

    @durable
    async def two() -> list[str]:
        first = await instruction("slowly")
        await pause.input("go on?", str)
        return [first, await instruction("slowly")]

    async with Perdure(url) as app:
        await until_paused(app, "job", two)
    assert main(["resume", "job", "--instruction", "fast", "--store", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "running"
    async with Perdure(url) as app:
        await until_paused(app, "job", two)  # it still waits for its answer
        await (await app.tasks.handle("job")).answer("yes")
        assert await app.run("job", two) == ["slowly", "fast"]
        with pytest.raises(InvalidTransition):
            await (await app.tasks.handle("job")).resume(instruction="again")


async def test_without_a_task_there_is_only_the_first_instruction() -> None:
    assert await instruction("as you like") == "as you like"
