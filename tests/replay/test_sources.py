"""Time, chance and log lines: another thing each time, and the same in every replay."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from uuid import UUID

import pytest

from perdure import recorded
from perdure._durable.attempt.calls.nondeterminism import get_logger, is_replaying
from perdure._durable.declare.functions import step
from tests.replay.kit import play, play_again


@step
async def fetch(what: str) -> str:
    return what


@pytest.mark.req("R66")
async def test_what_was_drawn_once_is_the_same_in_every_replay() -> None:
    async def program() -> list[object]:
        first = [recorded.now(), recorded.random(), recorded.uuid4()]
        await fetch("between")
        return [*first, recorded.random(), recorded.uuid4()]

    played = await play(program)
    now, chance, name, other, another = played.result()
    assert isinstance(now, datetime) and now.tzinfo is UTC
    assert 0 <= chance < 1 and chance != other
    assert isinstance(name, UUID) and name != another
    assert (await play_again(program, journal=played.journal)).result() == played.result()
    resumed = await play(program, journal=played.journal[:3])
    assert resumed.result()[:3] == played.result()[:3]


async def test_inside_a_step_and_without_a_task_they_are_just_drawn() -> None:
    @step
    async def inside() -> float:
        recorded.uuid4()
        return recorded.random()

    async def program() -> float:
        return await inside()

    assert (await play(program)).paths == ["|inside#1"]
    assert recorded.random() != recorded.random()
    assert recorded.now().tzinfo is UTC


async def test_a_value_that_is_no_longer_drawn_is_a_change() -> None:
    async def before() -> float:
        return recorded.random()

    async def after() -> float:
        return 0.5

    played = await play(before)
    assert type((await play(after, journal=played.journal)).error).__name__ == "ReplayDiverged"


async def test_is_replaying_until_the_last_recorded_result_has_reached_the_code() -> None:
    seen: list[bool] = []

    async def program() -> None:
        for what in "abcd":
            seen.append(is_replaying())
            await fetch(what)
        seen.append(is_replaying())

    played = await play(program)
    assert seen == [False] * 5
    seen.clear()
    await play(program, journal=played.journal[:2])
    assert seen == [True, True, False, False, False]
    assert is_replaying() is False


async def test_with_several_scopes_it_is_the_order_that_counts() -> None:
    seen: list[tuple[str, bool]] = []

    async def branch(what: str) -> None:
        await fetch(what)
        seen.append((what, is_replaying()))

    async def program() -> None:
        await asyncio.gather(branch("a"), branch("b"), branch("c"))

    played = await play(program)
    seen.clear()
    await play(program, journal=played.journal[:2])
    assert seen == [("a", True), ("b", False), ("c", False)]


async def test_a_logger_is_silent_before_the_frontier(caplog: pytest.LogCaptureFixture) -> None:
    log = get_logger("agent")
    assert get_logger("agent") is log and len(log.filters) == 1

    @step
    async def says(what: str) -> str:
        log.warning("inside %s", what)
        return what

    async def program() -> None:
        for what in "abc":
            log.warning("before %s", what)
            await says(what)

    with caplog.at_level(logging.WARNING, "agent"):
        played = await play(program)
        first = [record.getMessage() for record in caplog.records]
        caplog.clear()
        await play(program, journal=played.journal[:2])
        resumed = [record.getMessage() for record in caplog.records]
        caplog.clear()
        await play_again(program, journal=played.journal)
    assert first == ["before a", "inside a", "before b", "inside b", "before c", "inside c"]
    assert resumed == ["before c", "inside c"]
    assert caplog.records == []
