"""Whoever waits for `app.run` may be cancelled at any moment, and may have been before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from perdure import Perdure, durable, effect, pause, step
from perdure.errors import StepFailed
from perdure.testing import always_replay


async def test_a_run_that_is_cancelled_just_as_its_task_pauses_is_cancelled(url: str) -> None:
    async with Perdure(url) as app:

        @durable
        async def asks() -> int:
            try:
                return await pause.input("how many?", int)
            finally:
                running.cancel()

        running = asyncio.ensure_future(app.run("t", asks))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 120)
        task = await app.tasks.open("t")
        assert task.is_paused
        await task.answer(3)
        assert await app.run("t", asks) == 3


async def after_a_cancellation(work: Awaitable[Any]) -> Any:
    """Await it in a task that was cancelled before, and has made nothing of that."""

    async def clean_up() -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return await work

    cleaning = asyncio.ensure_future(clean_up())
    await asyncio.sleep(0)
    cleaning.cancel()
    return await cleaning


@step
async def endless() -> None:
    await asyncio.get_running_loop().create_future()


@effect
async def note(what: str) -> str:
    return what


@durable
async def gives_up() -> list[str]:
    said = [await note("begun")]
    try:
        await asyncio.wait_for(endless(), 0.001)
    except TimeoutError:
        said.append(await note("given up"))
    return said


async def test_a_run_in_a_task_that_was_cancelled_before_goes_as_any_other(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        with always_replay():
            assert await after_a_cancellation(app.run("t", gives_up)) == ["begun", "given up"]


async def test_so_does_one_that_fails(quick_url: str) -> None:
    @durable
    async def stumbles() -> None:
        raise asyncio.CancelledError

    async with Perdure(quick_url) as app:
        with pytest.raises(StepFailed, match="cancelled by itself"):
            await after_a_cancellation(app.run("t", stumbles))
        assert (await app.tasks.open("t")).status == "failed"


# ── the promise that adapters rest on ────────────────────────────────────────────────────────────


async def test_a_run_that_is_cancelled_gives_its_attempt_up_and_leaves_the_task_to_be_replayed(url: str) -> None:
    ran: list[str] = []
    here, go_on = asyncio.Event(), asyncio.Event()

    @step(flush=True)
    async def look(name: str) -> str:
        ran.append(name)
        return name

    @effect
    async def send(name: str) -> str:
        ran.append(name)
        return name

    @durable
    async def agent() -> list[str]:
        said = [await look("looked"), await send("sent")]
        here.set()
        await go_on.wait()
        return [*said, await look("looked again")]

    async with Perdure(url) as app:
        running = asyncio.ensure_future(app.run("t", agent))
        await here.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        record = await app.tasks.get("t")
        assert record is not None
        assert (record.status, record.error, ran) == ("running", None, ["looked", "sent"])
        go_on.set()
        assert await app.run("t", agent) == ["looked", "sent", "looked again"]
        assert ran == ["looked", "sent", "looked again"]
