"""Durable functions and processes that tests of coordination start, stop and kill."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path

from perdure import Perdure, durable, step
from perdure._ground import crash_points as crash
from tests.support.processes import Link


def note(place: str, text: str) -> None:
    """Append one line to a file: what happened, as seen from outside."""
    with open(place, "a") as file:
        file.write(text + "\n")


def noted(place: Path) -> list[str]:
    return place.read_text().split() if place.exists() else []


@step(flush=True)
async def work(place: str, name: str) -> str:
    note(place, name)
    return name


@durable(name="team.part")
async def part(place: str, name: str) -> str:
    return await work(place, name)


@durable(name="team.failing")
async def failing() -> None:
    raise ValueError("no")


async def run_worker(link: Link, url: str, dies_at: str = "") -> None:
    """A worker until it is killed; it knows the functions of these tests."""
    if dies_at:
        crash.arm(dies_at)
    import_module("tests.coordination.test_schedules")
    import_module("tests.coordination.test_triggers")
    async with Perdure(url) as app, app.worker():
        link.send(("said", "ready"))
        await asyncio.Event().wait()


async def complete(link: Link, url: str, id: str) -> None:
    """Complete a task when told to, in a process of its own."""
    async with Perdure(url) as app:
        task = await app.tasks.handle(id)
        link.send(("said", "ready"))
        await asyncio.to_thread(link.recv)
        await task.complete({"by": "another process"})
        link.send(("said", "done"))


# ── a parent and its children ────────────────────────────────────────────────────────────────────

_apps: list[Perdure] = []


@step(flush=True)
async def careful(place: str, name: str, gate: str) -> str:
    """Work that hangs while the gate is shut; it notes that it began, and that it ended."""
    note(place, f"{name}:began")
    if not Path(gate).exists():
        await asyncio.Event().wait()
    note(place, f"{name}:ended")
    return name


@durable(name="team.child")
async def child(place: str, number: int, gate: str) -> str:
    if number < 5:
        return await work(place, f"child-{number}")
    return await careful(place, f"child-{number}", gate)


@durable(name="team.parent")
async def parent(place: str, gate: str) -> list[str]:
    started = [await _apps[-1].start(f"child-{n}", child, place, n, gate) for n in range(8)]
    await work(place, "all-started")
    return [await handle.result() for handle in started]


async def run_family(link: Link, url: str, place: str, gate: str) -> None:
    """A worker with the parent and its children, until it is killed."""
    async with Perdure(url) as app, app.worker():
        _apps.append(app)
        await app.start("parent", parent, place, gate)
        link.send(("said", "ready"))
        await asyncio.Event().wait()
