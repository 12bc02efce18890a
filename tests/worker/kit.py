"""Durable functions that say what they do, and processes that work on them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, effect, step
from tests.support.processes import Link, say
from tests.support.waiting import look_again
from tests.torture.kills import Home

PATIENCE = 120.0


@step(flush=True)
async def note(path: str, what: str) -> int:
    """One line in a file: how often it stands there is how often this was run."""
    with Path(path).open("a") as file:
        file.write(f"{what}\n")
    return os.getpid()


@step(flush=True)
async def wait_for_file(path: str) -> None:
    """Says that it waits, by another file: all steps before it are on disk by then."""
    Path(f"{path}.awaited").touch()
    while not Path(path).exists():
        await look_again()


@step(flush=True)
async def die_here() -> None:
    os.kill(os.getpid(), 9)


@effect
async def send(path: str, what: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{what}\n")


@durable
async def three(path: str, gate: str) -> list[int]:
    """A step, a wait for the test, another step."""
    first = await note(path, "one")
    await wait_for_file(gate)
    return [first, await note(path, "two")]


@durable
async def poison(path: str) -> None:
    await note(path, "before")
    await die_here()


@step(flush=True)
async def take_a_while() -> None:
    for _ in range(100):
        await look_again()


@durable
async def innocent(number: int) -> int:
    await take_a_while()
    return number


@durable
async def quick(number: int) -> int:
    return number


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def work(link: Link, home: Home, options: dict[str, Any] | None = None) -> None:
    """A worker process, until the test says otherwise."""
    app = home.open()
    async with app.worker(**(options or {})):
        say(link, "working")
        await asyncio.to_thread(link.recv)
    await app.close()


async def until(is_so: Callable[[], Any]) -> Any:
    """What `is_so` answers once it is something; PATIENCE only turns a hang into an error."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = is_so()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await look_again()


async def events_of(app: Perdure, id: str) -> list[Any]:
    return list(await app.tasks.events(id))


async def kinds_of(app: Perdure, id: str) -> list[str]:
    return [event.kind for event in await events_of(app, id)]


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[Perdure]:
    app = home.open()
    try:
        yield app
    finally:
        await app.close()
