"""The end of a stream is a recorded call like others: cancelled before the code gets it, it is cancelled in replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from perdure import step, stream
from perdure._durable.attempt import pipeline
from tests.replay.kit import Paper, play, until_rest


async def words(prefix: str) -> AsyncIterator[str]:
    if not prefix:
        yield "one"


@step
async def note(what: str) -> str:
    return what


async def test_an_end_that_was_cancelled_on_its_way_to_the_code_is_cancelled_in_replay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline.Pipeline, "is_worth_waiting", lambda self, took, flush: True)
    paper = Paper()

    async def read() -> str:
        try:
            async for _ in stream("answer", words):
                paper.holds_back = True  # from here on, the stream's end does not get to the disk
        except asyncio.CancelledError:
            return "cancelled"
        return "ended"

    async def program() -> str:
        task = asyncio.create_task(read())
        await until_rest(50)
        task.cancel()
        paper.holds_back = False
        paper.let_go()
        outcome = await task
        return await note(outcome)

    played = await play(program, paper=paper)
    ends = [(entry.kind, entry.op) for _, entry in played.journal if entry.op == "streamed"]
    assert played.result() == "cancelled"
    assert ends == [("result", "streamed"), ("cut", "streamed")]

    again = await play(program, journal=played.journal)
    assert again.result() == "cancelled"
