"""`carry_over` begins the next line, and leaves nothing of the old one half done."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from perdure import Perdure, carry_over, durable, effect, pause, step
from perdure._durable import where
from perdure._ground.bridge import Nap
from perdure.errors import EffectUncertain, InvalidInput, NotStorable
from tests.durable.effects_kit import status_of, until_paused


async def test_arguments_that_cannot_be_are_refused_where_they_are_given(quick_url: str) -> None:
    @durable
    async def rounds(number: int, how: str) -> str:
        if number == 2:
            return how
        try:
            await carry_over(object(), how) if how == "unstorable" else await carry_over(1, 2, 3)
        except (TypeError, NotStorable) as error:
            if how == "not caught":
                raise
            how = f"{how}: {type(error).__name__}"
        await carry_over(number + 1, how)
        raise AssertionError

    async with Perdure(quick_url) as app:
        assert await app.run("t1", rounds, 1, "unstorable") == "unstorable: NotStorable"
        assert await app.run("t2", rounds, 1, "too many") == "too many: TypeError"
        with pytest.raises(TypeError, match="too many positional arguments"):
            await app.run("t3", rounds, 1, "not caught")
        assert await status_of(app, "t3") == "failed"


@pytest.mark.req("R64")
async def test_no_effect_is_cut_off_by_a_task_beside_it_that_carries_over(quick_url: str) -> None:
    done: list[int] = []
    carried = asyncio.Event()

    @effect
    async def charge(number: int) -> int:
        await carried.wait()
        done.append(number)
        return number

    @step
    async def nothing() -> None:
        await Nap(0)

    async def carry(number: int) -> str:
        await nothing()
        try:
            await carry_over(number + 1)
        except InvalidInput as error:
            return error.what
        finally:
            carried.set()
        raise AssertionError

    @durable
    async def rounds(number: int) -> str:
        _, why = await asyncio.gather(charge(number), carry(number))
        return why

    async with Perdure(quick_url) as app:
        assert (
            await app.run("t", rounds, 1) == "carry_over is called while other asyncio tasks of the function still run"
        )
        assert [one.state for one in await app.effects.of("t")] == ["done"]
    assert done == [1]


async def test_cancelled_just_as_it_carries_over_a_run_ends_and_another_goes_on(quick_url: str) -> None:
    began: list[int] = []
    runs: list[asyncio.Task[Any]] = []

    @durable
    async def rounds(number: int) -> int:
        began.append(number)
        if began == [1, 2]:
            runs[0].cancel()
        if number < 3:
            await carry_over(number + 1)
        return number

    async with Perdure(quick_url) as app:
        runs.append(asyncio.ensure_future(app.run("t", rounds, 1)))
        with pytest.raises(asyncio.CancelledError):
            await runs[0]
        assert await app.run("t", rounds, 1) == 3
    assert began == [1, 2, 2, 3]


@pytest.mark.req("R64")
async def test_what_is_uncertain_stays_in_the_inbox_when_the_task_goes_on_on_another_line(url: str) -> None:
    @effect(on_uncertain="fail")
    async def charge(number: int) -> int:
        raise ConnectionError

    @durable
    async def rounds(number: int) -> int:
        with contextlib.suppress(EffectUncertain):
            await charge(number)
        if number < 3:
            await carry_over(number + 1)
        return await pause.input("how many?", int)

    async with Perdure(url) as app:
        await until_paused(app, "t", rounds, 1)
        asked = await app.effects.list()
        assert [(one.call, one.is_waited_for) for one in asked] == [(f"charge({n})", False) for n in (1, 2, 3)]
        await app.effects.settle("t", "done", value=7, key=asked[0].key)
        await app.effects.settle("t", "fail", key=asked[2].key)
        found = await app.effects.of("t")
        assert [(one.line, one.state) for one in found] == [(1, "done"), (2, "uncertain"), (3, "failed")]
        whereabouts = await where(app.tasks, "t")
        assert [frame.path for frame in whereabouts.frames] == ["pause.input#1"]
        await (await app.tasks.open("t")).answer(5, by="me")
        assert await app.run("t", rounds, 1) == 5
        assert [one.call for one in await app.effects.list()] == ["charge(2)"]


@pytest.mark.req("R67")
async def test_in_a_replay_the_codes_clock_begins_where_the_new_line_began(quick_url: str) -> None:
    @step(flush=True)
    async def note(number: int) -> int:
        return number

    @durable
    async def rounds(number: int) -> list[int]:
        if number == 1:
            await carry_over(2)
        loop, found = asyncio.get_running_loop(), list[int]()
        deadline = loop.time() + 3600
        while loop.time() < deadline and len(found) < 3:
            found += (await asyncio.gather(note(len(found)), asyncio.sleep(0)))[:1]
        await pause.input("go on?", bool)
        return found

    async with Perdure(quick_url) as app:
        await until_paused(app, "t", rounds, 1)
        await (await app.tasks.handle("t")).answer(True)
        assert await app.run("t", rounds, 1) == [0, 1, 2]
