"""Code that has changed is noticed before anything runs, and the task waits for somebody who decides."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure._durable.declare.durable_decorator import durable
from perdure._durable.declare.functions import step
from perdure.errors import ReplayDiverged
from tests.replay.kit import play

ran: list[str] = []


@step
async def search(what: str) -> str:
    ran.append(f"search {what}")
    return what


@step
async def summarise(what: str) -> str:
    ran.append(f"summarise {what}")
    return what


async def before() -> str:
    return await summarise(await search("x"))


async def diverging(after: Any, first: Any = before) -> ReplayDiverged:
    """How a replay by other code ends; nothing of it may run."""
    recorded = await play(first)
    ran.clear()
    played = await play(after, journal=recorded.journal)
    assert isinstance(played.error, ReplayDiverged), played.error
    assert ran == []
    assert len(played.journal) == len(recorded.journal)
    return played.error


async def test_a_recorded_call_with_other_arguments() -> None:
    async def after() -> str:
        return await summarise(await search("y"))

    error = await diverging(after)
    assert (error.position, error.recorded, error.asked) == (1, "search('x')", "search('y')")
    assert str(error).startswith("task 'the-task' asked for \"search('y')\"; entry 1 of its journal is \"search('x')\"")
    assert "patched" in error.do and "version" in error.do


async def test_recorded_calls_in_another_order() -> None:
    async def first() -> None:
        await search("x")
        await summarise("y")

    async def after() -> None:
        await summarise("y")
        await search("x")

    error = await diverging(after, first)
    assert (error.position, error.recorded, error.asked) == (1, "search('x'), before entry 2", "search('x') after it")


async def test_a_fresh_call_before_an_unasked_result() -> None:
    async def after() -> str:
        await summarise("early")
        return await search("x")

    error = await diverging(after)
    assert (error.recorded, error.asked) == ("summarise('x')", "summarise('early')")


async def test_a_call_that_was_renamed() -> None:
    @step
    async def look_up(what: str) -> str:
        ran.append("look_up")
        return what

    async def after() -> str:
        return await summarise(await look_up("x"))

    error = await diverging(after)
    assert (error.position, error.recorded, error.asked) == (1, "search('x')", "look_up('x')")


async def test_an_end_with_results_that_nobody_asked_for() -> None:
    async def after() -> str:
        return await search("x")

    error = await diverging(after)
    assert (error.position, error.recorded, error.asked) == (2, "summarise('x')", "its end")


async def test_an_end_by_an_exception_with_results_that_nobody_asked_for() -> None:
    async def after() -> str:
        await search("x")
        raise KeyError("a new mistake")

    error = await diverging(after)
    assert error.asked == "its end by KeyError: 'a new mistake'"
    assert isinstance(error.__cause__, KeyError)


async def test_a_branch_that_is_gone() -> None:
    async def with_branch() -> str:
        await asyncio.gather(search("x"), summarise("y"))
        return "done"

    async def without() -> str:
        await asyncio.gather(search("x"))
        return "done"

    error = await diverging(without, with_branch)
    assert (error.recorded, error.asked) == ("summarise('y')", "its end")


async def test_nothing_runs_after_it_even_if_the_code_swallows_it() -> None:
    swallowed: list[str] = []

    async def after() -> str:
        for what in ("y", "x", "z"):
            try:
                await search(what)
            except Exception as error:
                swallowed.append(type(error).__name__)
        return "all is well"

    await diverging(after)
    assert swallowed == ["ReplayDiverged"] * 3


async def test_nothing_runs_after_it_in_other_scopes_either() -> None:
    async def first() -> str:
        await asyncio.gather(search("x"), summarise("y"))
        return await summarise("z")

    async def after() -> str:
        async def other() -> None:
            await search("another")

        async def same() -> str:
            await summarise("y")
            return await summarise("after")

        await asyncio.gather(search("x2"), other(), same(), return_exceptions=True)
        return "done"

    recorded = await play(first)
    ran.clear()
    played = await play(after, journal=recorded.journal)
    assert isinstance(played.error, ReplayDiverged)
    assert "summarise after" not in ran


async def test_a_step_that_became_a_plain_function_cannot_be_cut_again() -> None:
    @step(name="work")
    async def awaits() -> None:
        await asyncio.get_running_loop().create_future()

    @step(name="work")
    def plain() -> None:
        ran.append("plain")

    async def first() -> None:
        task = asyncio.create_task(_task(awaits))
        await asyncio.sleep(0)
        await search("x")
        task.cancel()
        await asyncio.wait([task])

    async def _task(work: Any) -> None:
        found = work()
        if found is not None:
            await found

    async def after() -> None:
        task = asyncio.create_task(_task(plain))
        await asyncio.sleep(0)
        await search("x")
        task.cancel()
        await asyncio.wait([task])

    error = await diverging(after, first)
    assert (error.recorded, error.asked) == ("work, cut off", "work as a plain function")


async def test_a_step_may_change_between_async_and_plain_otherwise() -> None:
    @step(name="work")
    async def awaits(n: int) -> int:
        return n

    @step(name="work")
    def plain(n: int) -> int:
        return n

    async def second() -> int:
        return plain(1) + plain(2) + await awaits(3)

    async def one_by_one() -> int:
        return await awaits(1) + await awaits(2) + plain(3)

    recorded = await play(one_by_one)
    assert (await play(second, journal=recorded.journal)).result() == 6


# ── the task ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R69")
async def test_the_task_is_paused_and_goes_on_when_the_code_is_right_again(open_app: Any) -> None:
    is_wrong, reached, go_on = False, asyncio.Event(), asyncio.Event()

    @durable
    async def work() -> str:
        found = await (summarise("x") if is_wrong else search("x"))
        reached.set()
        await go_on.wait()
        return found

    async with open_app() as app:
        running = asyncio.create_task(app.run("t", work))
        await reached.wait()
        running.cancel()
        await asyncio.wait([running])

        is_wrong = True
        with pytest.raises(ReplayDiverged):
            await app.run("t", work)
        record = await app.tasks.get("t")
        assert record.status == "paused" and record.pause.reason == "human_input"
        assert "search('x')" in record.pause.message and "summarise('x')" in record.pause.message

        is_wrong = False
        go_on.set()
        await (await app.tasks.open("t")).resume()
        assert await app.run("t", work) == "x"


@pytest.mark.req("R69")
async def test_it_ends_a_function_that_waits_for_an_item_from_the_branch_that_diverged(open_app: Any) -> None:
    is_wrong, go_on = False, asyncio.Event()
    reached = asyncio.Event()

    @durable
    async def work() -> str:
        items: asyncio.Queue[str] = asyncio.Queue()

        async def produce() -> None:
            found = await (summarise("x") if is_wrong else search("x"))
            reached.set()
            await go_on.wait()
            items.put_nowait(found)

        producing = asyncio.create_task(produce())
        item = await items.get()
        await producing
        return item

    async with open_app() as app:
        running = asyncio.create_task(app.run("t", work))
        await reached.wait()
        running.cancel()
        await asyncio.wait([running])

        is_wrong = True
        with pytest.raises(ReplayDiverged):
            await app.run("t", work)
        assert (await app.tasks.get("t")).status == "paused"

        is_wrong = False
        go_on.set()
        await (await app.tasks.open("t")).resume()
        assert await app.run("t", work) == "x"
