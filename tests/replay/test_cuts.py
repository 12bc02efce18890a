"""A call that was ended by a cancellation is ended by the same one again; its body is not run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from perdure._durable.attempt.calls.nondeterminism import timeout
from perdure._durable.declare.functions import step
from tests.replay.kit import pass_an_hour, play, play_again, until_rest

ran: list[str] = []


@step
async def forever(what: str) -> None:
    ran.append(what)
    await asyncio.get_running_loop().create_future()


@step
async def quick(what: str) -> str:
    ran.append(what)
    return what


async def twice(program: Any) -> tuple[Any, list[str]]:
    """What it gives, live and from its journal; and the kinds of its entries."""
    first = await play(program)
    ran.clear()
    again = await play_again(program, journal=first.journal)
    assert again.result() == first.result()
    assert ran == []
    return first.result(), [f"{entry.kind} {entry.op}" for _, entry in first.journal]


async def test_a_step_in_a_cancelled_task_is_cut_and_waits_for_the_same_cancellation() -> None:
    async def program() -> str:
        task = asyncio.create_task(forever("a"))
        await quick("b")
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return await quick("c")

    assert await twice(program) == ("c", ["result step", "cut step", "result step"])


async def test_asyncio_timeout_and_wait_for_run_out_again() -> None:
    async def program() -> list[str]:
        seen = []
        try:
            async with asyncio.timeout(0):
                await forever("a")
        except TimeoutError:
            seen.append("timeout")
        try:
            await asyncio.wait_for(forever("b"), 0.001)
        except TimeoutError:
            seen.append("wait_for")
        return [*seen, await quick("c")]

    assert (await twice(program))[0] == ["timeout", "wait_for", "c"]


async def test_a_time_out_of_perdure_is_recorded_and_not_waited_for_in_replay() -> None:
    async def program(seconds: float = 0.0) -> str:
        try:
            async with timeout(seconds):
                await forever("a")
        except TimeoutError:
            return await quick("after")
        return "never"

    first = await play(program)
    assert [f"{entry.kind} {entry.op}" for _, entry in first.journal] == ["result timeout", "cut step", "result step"]
    assert (await play_again(program, journal=first.journal)).result() == "after"

    # An hour would show if it were waited for: the recorded running out is what ends it.
    hour = (await _play_hour(program, 3600.0)).journal
    assert (await play_again(program, 3600.0, journal=hour)).result() == "after"


async def _play_hour(program: Any, seconds: float) -> Any:
    playing = asyncio.create_task(play(program, seconds))
    await until_rest()
    pass_an_hour()
    return await playing


async def test_a_block_that_ends_in_time_leaves_no_trace() -> None:
    async def program() -> str:
        async with timeout(60):
            return await quick("a")

    assert await twice(program) == ("a", ["result step"])


async def test_a_time_out_also_ends_what_is_no_call() -> None:
    async def program() -> str:
        try:
            async with timeout(0):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return "out"
        return "in"

    assert await twice(program) == ("out", ["result timeout"])


async def test_timeouts_inside_a_step_or_without_a_task_are_plain() -> None:
    @step
    async def inside() -> str:
        try:
            async with timeout(0):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return "out"
        return "in"

    async def program() -> str:
        return await inside()

    assert await twice(program) == ("out", ["result step"])
    assert await inside() == "out"


async def test_a_step_that_swallows_its_cancellation_does_so_again() -> None:
    @step
    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        return "done anyway"

    async def program() -> list[str]:
        task = asyncio.create_task(stubborn())
        await quick("a")
        task.cancel()
        return [await task, await quick("b")]

    first = await play(program)
    assert first.result() == ["done anyway", "b"]
    assert (await play_again(program, journal=first.journal)).result() == ["done anyway", "b"]


async def test_a_result_that_came_when_the_code_was_already_cancelled_is_cut() -> None:
    """It is recorded, waits for its turn behind another one, and the code is cancelled meanwhile."""
    go = asyncio.Event()

    @step
    async def waits(what: str) -> str:
        await go.wait()
        return what

    async def program() -> str:
        task = asyncio.create_task(waits("second"))
        await waits("first")
        task.cancel()  # its result is recorded, and not handed out
        try:
            return await task
        except asyncio.CancelledError:
            return "cancelled"

    playing = asyncio.create_task(play(program))
    await until_rest()
    go.set()
    first = await playing
    kinds = [(entry.kind, entry.path) for _, entry in first.journal]
    assert ("result", "/waits#1|waits#1") in kinds and ("cut", "/waits#1|waits#1") in kinds
    assert first.result() == "cancelled"
    for count in range(len(first.journal) + 1):
        assert (await play(program, journal=first.journal[:count])).result() == "cancelled"


async def test_a_step_that_awaited_something_cancelled_has_failed_and_was_not_cut() -> None:
    @step
    async def awaits() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async def program() -> str:
        try:
            await awaits()
        except asyncio.CancelledError:
            return "it was cancelled"
        return "it was not"

    assert await twice(program) == ("it was cancelled", ["result step"])


async def test_the_end_of_the_attempt_is_not_recorded_as_a_cancellation() -> None:
    async def program() -> str:
        await quick("a")
        await asyncio.gather(forever("b"), forever("c"))
        return "never"

    playing = asyncio.create_task(play(program))
    await until_rest()
    playing.cancel()
    first = await playing
    assert [entry.kind for _, entry in first.journal] == ["result"]


async def test_an_attempt_inside_a_time_out_of_its_caller_can_be_carried_on() -> None:
    async def program() -> str:
        await quick("a")
        await forever("b")
        return "never"

    with suppress(TimeoutError):
        async with asyncio.timeout(None) as limit:

            async def run_out() -> None:
                await until_rest()
                limit.reschedule(0)

            running_out = asyncio.create_task(run_out())
            first = await play(program)
    await running_out
    assert [entry.kind for _, entry in first.journal] == ["result"]


async def test_a_cancellation_reaches_the_code_at_its_place_in_the_order() -> None:
    """The body takes its time to end, and another branch gets a result meanwhile: so it does again."""
    tidied = asyncio.Event()

    @step
    async def slow_to_end() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await tidied.wait()

    async def program() -> list[str]:
        heard: list[str] = []

        async def victim() -> None:
            try:
                await slow_to_end()
            finally:
                heard.append("the victim ended")

        task = asyncio.create_task(victim())
        heard.append(await quick("one"))
        task.cancel()
        heard.append(await quick("two"))
        tidied.set()
        await asyncio.wait([task])
        return heard

    first = await play(program)
    assert first.result() == ["one", "two", "the victim ended"]
    assert (await play_again(program, journal=first.journal)).result() == first.result()


async def test_a_block_that_is_left_just_when_its_time_runs_out_was_left_in_time() -> None:
    events: list[asyncio.Event] = []

    async def program() -> str:
        event = asyncio.Event()
        events.append(event)
        try:
            async with timeout(3600):
                await event.wait()
        except TimeoutError:
            return "out"
        return "in time"

    playing = asyncio.create_task(play(program))
    await until_rest()
    pass_an_hour()
    events[-1].set()
    first = await playing
    assert first.result() == "in time"
    assert [(entry.kind, entry.op) for _, entry in first.journal] == [("result", "timeout"), ("cut", "timeout")]

    playing = asyncio.create_task(play(program, journal=first.journal))
    await until_rest(50)
    events[-1].set()
    assert (await playing).result() == "in time"
