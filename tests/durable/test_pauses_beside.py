"""A branch that waits beside others: what it waits for is on record, and its answer is gone on with."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, effect, pause, signals, step
from perdure._durable import where
from perdure._ground.clock import MovableClock
from perdure._tasks import answer_question, questions_of
from perdure.effects import Happened
from perdure.errors import EffectUncertain
from tests.durable.effects_kit import status_of, until_paused, wait_until

PATIENCE = timedelta(seconds=120)


@step
async def note(what: str) -> str:
    return what


@effect
async def send() -> None:
    raise ValueError("the line broke")


@durable
async def one_number(number: int) -> int:
    return number


async def first_of(*branches: Any) -> Any:
    """What the first of them gives; the others are given up."""
    tasks = [asyncio.ensure_future(branch) for branch in branches]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    return done.pop().result()


@durable
async def signal_or_an_hour() -> str:
    await first_of(signals.next("go", int), pause.wait(hours=1))
    return await note("went on")


@pytest.mark.req("R31")
async def test_the_first_of_two_pauses_to_end_is_gone_on_with(url: str, clock: MovableClock) -> None:
    async with Perdure(url) as app:
        running = asyncio.ensure_future(app.run("task", signal_or_an_hour))
        await wait_until(lambda: _is_paused(app))
        clock.advance(hours=2)
        assert await asyncio.wait_for(running, PATIENCE.total_seconds()) == "went on"


async def test_a_childs_result_is_gone_on_with_though_another_branch_is_paused(url: str) -> None:
    async with Perdure(url) as app:

        @durable
        async def parent() -> str:
            child = await app.start("child", one_number, 1)
            await first_of(pause.input("what?", str), child.result())
            return await note("went on")

        async with app.worker():
            handle = await app.start("task", parent)
            assert await handle.result(timeout=PATIENCE) == "went on"


@pytest.mark.req("R64")
async def test_a_question_of_a_later_branch_is_open_beside_the_first(url: str) -> None:
    @durable
    async def work() -> Any:
        async def later() -> str:
            await note("first a step")
            return await pause.input("second?", str)

        async def uncertain() -> None:
            await note("first a step")
            await send()

        return await asyncio.gather(pause.input("first?", str), later(), uncertain())

    async with Perdure(url) as app:
        running = asyncio.ensure_future(app.run("task", work))
        await wait_until(lambda: _is_paused(app))
        uid = (await app.tasks.handle("task")).uid
        asked = await app._store.query("read_pauses", uid=uid)
        assert len([row for row in asked if row[6] is None]) == 3
        running.cancel()


@effect(failed_on=[ValueError], retry=Retry(3, wait=timedelta(seconds=0)))
async def send_at_the_second_try() -> str:
    tries.append("try")
    if len(tries) == 1:
        raise ValueError("busy")
    return "sent"


tries: list[str] = []


async def look_for_it() -> Happened[str]:
    loop = asyncio.get_running_loop()
    found = loop.create_future()
    threading.Timer(0.05, loop.call_soon_threadsafe, (found.set_result, "found")).start()  # as an answer over a network
    return Happened(await found)


@effect(verify=look_for_it)
async def send_and_look() -> str:
    raise ValueError("the line broke")


@pytest.mark.req("R68")
@pytest.mark.parametrize("sending, told", [(send_at_the_second_try, "sent"), (send_and_look, "found")])
async def test_an_effect_is_tried_again_and_looked_for_though_another_branch_is_paused(
    url: str, sending: Any, told: str
) -> None:
    tries.clear()
    seen: list[str] = []

    @durable
    async def work() -> Any:
        async def branch() -> None:
            seen.append(await note(await sending()))

        return await asyncio.gather(pause.input("what?", str), branch())

    async with Perdure(url) as app:
        running = asyncio.ensure_future(app.run("task", work))
        await wait_until(lambda: _is_paused(app))
        assert seen == [told]
        running.cancel()


async def _is_paused(app: Perdure) -> bool:
    return await app.tasks.get("task") is not None and await status_of(app, "task") == "paused"


@effect(on_uncertain="fail")
async def try_to_send() -> None:
    raise ValueError("the line broke")


@durable
async def ends_beside_a_question(fails: bool) -> str:
    left_behind = asyncio.ensure_future(pause.approval("go on?"))
    try:
        await try_to_send()
    except EffectUncertain:
        await note("it is not known")
    if fails:
        raise ValueError("no use")
    return f"{left_behind.done()}"


@pytest.mark.parametrize("fails", [False, True])
async def test_a_task_that_has_ended_waits_for_nothing_that_it_left_behind(url: str, fails: bool) -> None:
    async with Perdure(url) as app:
        if fails:
            with pytest.raises(ValueError, match="no use"):
                await app.run("task", ends_beside_a_question, fails)
        else:
            assert await app.run("task", ends_beside_a_question, fails) == "False"
        (waits_for,) = (await where(app.tasks, "task")).waits_for
        assert waits_for.startswith("outcome unknown: try_to_send() (")
        await (await app.tasks.handle("task")).answer("done", by="ada")
        assert (await where(app.tasks, "task")).waits_for == []


@durable
async def consumer() -> list[str]:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def produce(question: str) -> None:
        queue.put_nowait(await pause.input(question, str))

    producers = [asyncio.create_task(produce(question)) for question in ("one?", "two?")]
    found = [await queue.get() for _ in producers]
    await asyncio.gather(*producers)
    return sorted(found)


async def test_a_function_that_waits_for_a_queue_is_paused_with_the_branches_that_fill_it(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        for question in ("one?", "two?"):
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await until_paused(app, "t", consumer)
            asked = await questions_of(app._store, "t", (await app.tasks.open("t")).uid)
            await answer_question(app._store, next(one for one in asked if one.text == question), question, by="ada")
        assert await app.run("t", consumer) == ["one?", "two?"]
