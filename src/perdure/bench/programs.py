"""The durable functions that are measured."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, effect, model_call, pause, step
from perdure.bench.rounds import middle_ms_of

# For each attempt of this process, the time from the beginning of the code to its wait.
took: list[float] = []
passed: list[float] = []  # the moment it reached the wait


@step
async def small(number: int) -> int:
    return number


@effect
async def touch(number: int) -> int:
    return number


@durable(name="bench.steps")
async def steps(many: int) -> int:
    for number in range(many):
        await small(number)
    return many


@durable(name="bench.effects")
async def effects(many: int) -> int:
    for number in range(many):
        await touch(number)
    return many


@effect
def touch_plainly(number: int) -> int:
    return number


@durable(name="bench.plain_effects")
def plain_effects(many: int) -> int:
    for number in range(many):
        touch_plainly(number)
    return many


@durable(name="bench.crowded")
async def crowded(many: int) -> int:
    for number in range(many):
        await small(number)
        await asyncio.sleep(0)  # other tasks get their turn
    return many


@durable(name="bench.one_step")
async def one_step(number: int) -> int:
    return await small(number)


@durable(name="bench.replayed")
async def replayed(many: int) -> None:
    began = time.perf_counter()
    for number in range(many):
        await small(number)
    passed.append(time.perf_counter())
    took.append(passed[-1] - began)
    await pause.input("go on?", str)


@durable(name="bench.replayed_scopes")
async def replayed_scopes(many: int) -> None:
    async def some(first: int) -> None:
        for number in range(first, first + many // 100):
            await small(number)

    began = time.perf_counter()
    await asyncio.gather(*(some(first) for first in range(0, many, many // 100)))
    took.append(time.perf_counter() - began)
    await pause.input("go on?", str)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep workers from being told that these tasks wait."""
    log = logging.getLogger("perdure.durable")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


async def take_up(url: str, began: float) -> None:
    """Continue the task `first` in a process of its own, until its code has passed the recorded steps."""
    with quiet():
        await _take_up(url, began)


async def _take_up(url: str, began: float) -> None:
    async with Perdure(url) as app:
        task = await app.tasks.handle("first")
        await task.resume()
        work = asyncio.ensure_future(app.run("first", replayed, 1000))
        await app.tasks.wait_for("first", status="paused")
        print(json.dumps({"ms": (passed[-1] - began) * 1000}), flush=True)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


@model_call(model="bench")
async def answer(messages: list[dict[str, str]]) -> dict[str, str]:
    return {"role": "assistant", "content": f"answer {len(messages)}: " + _text(len(messages))}


@durable(name="bench.talk")
async def talk(calls: int) -> int:
    """The number of bytes of all messages, each counted once."""
    messages: list[dict[str, str]] = []
    for number in range(calls):
        messages.append({"role": "user", "content": f"question {number}: " + _text(-number)})
        messages.append(await answer(messages))
    return sum(len(json.dumps(message)) for message in messages)


def _text(number: int) -> str:
    return " ".join(f"{word * 7919 % 104729}" for word in range(abs(number), abs(number) + 80))


# ── statements on a kept session ─────────────────────────────────────────────────────────────────

IN_FUNCTION = "bench-in-function"  # the session


@step(name="bench.statements-in-step")
async def _statements_in_step(con: Any, times: int) -> float:
    return await middle_ms_of(lambda: con.execute("SELECT 1"), times)


@durable(name="bench.statements")
async def statements(folder: str, url: str, times: int, in_step: bool) -> float:
    """The median time of the statements, in milliseconds."""
    from perdure._runtime import SessionPlace, open_postgres

    session = await open_postgres(SessionPlace(Path(folder)), IN_FUNCTION, url, hold="1m")
    con = await session.connect(autocommit=True)
    if in_step:
        found = await _statements_in_step(con, times)
    else:
        found = await middle_ms_of(lambda: con.execute("SELECT 1"), times)
    await con.close()
    return found
