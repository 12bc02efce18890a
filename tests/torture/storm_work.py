"""What is done while processes are killed: journeys of steps, effects and children, and plain tasks with checkpoints.

The recorder is a file that every effect adds one line to, by one write(2): it stands for the world, keeps no keys
and refuses nothing. What is in it twice was done twice.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, effect, step
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import PerdureError
from perdure.types import Config
from tests.support.processes import Link, say
from tests.torture.kills import Home

# A storm is bad luck, not a task's fault: nobody gives up on it.
PATIENT = Config(max_retries=10_000)
_app: list[Perdure] = []


def record(recorder: str, what: str) -> None:
    fd = os.open(recorder, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, f"{what}\n".encode())
    finally:
        os.close(fd)


def recorded(recorder: str) -> list[str]:
    path = Path(recorder)
    return path.read_text().splitlines() if path.exists() else []


async def was_sent(recorder: str, what: str) -> Any:
    return Happened(what) if what in recorded(recorder) else DID_NOT_HAPPEN


@step
async def think(what: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return what.upper()


@effect(verify=was_sent)
async def send(recorder: str, what: str) -> str:
    await asyncio.sleep(0.001)
    record(recorder, what)
    await asyncio.sleep(0.001)
    return what


@durable
async def leaf(recorder: str, name: str) -> str:
    thought = await think(f"{name} leaf", 0.002)
    await send(recorder, f"{name} leaf")
    return thought


@durable
async def journey(recorder: str, name: str, length: int) -> list[str]:
    """Steps one after the other and at once, effects, and a child of its own."""
    said = []
    for number in range(length):
        said.append(await think(f"{name} {number}", 0.004))
        if number % 3 == 1:
            said.append(await send(recorder, f"{name} {number}"))
        if number == length // 2:
            said += await asyncio.gather(*(think(f"{name} {number} {side}", 0.002) for side in "ab"))
            child = await _app[0].start(f"{name}-child", leaf.options(config=PATIENT), recorder, name)
            said.append(await child.result())
    return said


def journey_of(name: str, length: int) -> tuple[list[str], list[str]]:
    """What it returns, and what it sends."""
    said: list[str] = []
    sent: list[str] = []
    for number in range(length):
        said.append(f"{name} {number}".upper())
        if number % 3 == 1:
            said.append(f"{name} {number}")
            sent.append(f"{name} {number}")
        if number == length // 2:
            said += [f"{name} {number} {side}".upper() for side in "ab"]
            said.append(f"{name} leaf".upper())
            sent.append(f"{name} leaf")
    return said, sent


# ── processes ────────────────────────────────────────────────────────────────────────────────────


async def work(link: Link, home: Home, options: dict[str, Any]) -> None:
    """A worker, until it is killed or told to leave."""
    app = home.open()
    _app[:] = [app]
    async with app.worker(**options):
        say(link, "working")
        await asyncio.to_thread(link.recv)
    await app.close()


async def write(link: Link, home: Home, id: str) -> None:
    """Checkpoint a plain task as often as can be, and say each number once it is acknowledged."""
    app = home.open()
    while True:
        try:
            task = await app.tasks.open(id, state={"n": 0})
            number = task.state["n"]
            while True:
                number += 1
                await task.checkpoint({"n": number})
                say(link, number)
        except PerdureError:
            await asyncio.sleep(0.01)  # the former process is not known to be dead yet
