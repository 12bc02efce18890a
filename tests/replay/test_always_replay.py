"""A mode for tests: a function is replayed after every step, so what is another thing each time shows at once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from perdure import recorded
from perdure._durable.attempt.calls.replay_tests import always_replay
from perdure._durable.declare.durable_decorator import durable
from perdure._durable.declare.functions import step
from perdure._durable.effects.effect_decorator import effect
from perdure.errors import ReplayDiverged
from tests.support.fixtures import emptied_for_each_test

ran: list[str] = []


_nothing_ran = emptied_for_each_test(ran)


@step
async def fetch(what: str) -> str:
    ran.append(what)
    return what


@step
def think(what: str) -> str:
    ran.append(what)
    return what


@effect
async def pay(cents: int) -> str:
    ran.append(f"paid {cents}")
    return "receipt"


async def test_a_sound_function_gives_what_it_gives_and_each_body_runs_once(open_app: Any) -> None:
    begun: list[int] = []

    @durable
    async def work() -> list[str]:
        begun.append(1)
        found = [await fetch("a"), think("b"), *(await asyncio.gather(fetch("c"), fetch("d")))]
        chance = recorded.random()
        found.append(await pay(5))
        return [*found, str(chance == recorded.random())]

    async with open_app() as app:
        with always_replay():
            assert await app.run("t", work) == ["a", "b", "c", "d", "receipt", "False"]
    assert sorted(ran) == ["a", "b", "c", "d", "paid 5"]
    assert len(begun) > 3, "it was replayed again and again"


async def test_chance_that_decides_which_step_is_next_shows_at_once(open_app: Any) -> None:
    chances = iter([0, 1, 0, 1, 0, 1])

    @durable
    async def work() -> str:
        return await fetch("a" if next(chances) else "b") + await fetch("c")

    async with open_app() as app:
        with always_replay(), pytest.raises(ReplayDiverged):
            await app.run("t", work)
        assert (await app.tasks.get("t")).status == "paused"


async def test_chance_that_only_shows_in_the_result_shows_too(open_app: Any) -> None:
    @durable
    async def work() -> float:
        await fetch("a")
        return random.random()

    async with open_app() as app:
        with always_replay(), pytest.raises(ReplayDiverged, match="the result 0"):
            await app.run("t", work)


async def test_outside_the_block_nothing_is_replayed(open_app: Any) -> None:
    begun: list[int] = []

    @durable
    async def work() -> str:
        begun.append(1)
        return await fetch("a") + think("b")

    async with open_app() as app:
        assert await app.run("t", work) == "ab"
    assert begun == [1]
