"""Loops among odd things: a cursor of the step's own, file names that are no text, encodings of more bytes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, loops, progress, step


async def in_two_tries(url: str, body: Callable[[list[Any]], Any]) -> list[Any]:
    """What a step's body noted down that fails once and is tried again."""
    noted: list[Any] = []

    @step(name="work", retry=Retry(2, wait=timedelta(0)))
    async def work() -> None:
        await body(noted)

    @durable
    async def run() -> None:
        await work()

    async with Perdure(url) as app:
        await app.run("t", run)
    return noted


@pytest.mark.req("R60")
@pytest.mark.parametrize("cursor", [lambda item: item * 10, lambda item: {"row": item}, lambda item: [item]])
async def test_a_step_may_have_a_cursor_of_its_own_beside_its_loops(
    quick_url: str, cursor: Callable[[int], Any]
) -> None:
    async def body(noted: list[Any]) -> None:
        async for item in loops.each(range(5)):
            noted.append((item, progress.cursor))
            await progress.mark(cursor=cursor(item))
            if len(noted) == 3:
                raise ConnectionError

    items = [0, 1, 2, 2, 3, 4]
    assert await in_two_tries(quick_url, body) == list(
        zip(items, [None, *(cursor(item) for item in items[:-1])], strict=True)
    )
