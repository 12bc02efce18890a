"""A process that lost its lease says when nothing of it runs any more, and its successor settles effects at once.

Real processes: the first is stopped in the middle of an effect until another has taken its task over, and goes on then.
The clock is moved by less than the effect's time-out, and not at all after the first process has gone on.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, effect
from perdure._durable.attempt.lost_lease import STOPPED
from perdure._ground.clock import MovableClock
from perdure._store import AttemptRow
from perdure.effects import DID_NOT_HAPPEN, Happened
from perdure.errors import LeaseLost
from tests.support.processes import PATIENCE, Link, nursery, say
from tests.support.waiting import look_again


def note(folder: str, what: str) -> None:
    with Path(folder, "notes").open("a") as file:
        file.write(f"{what}\n")


def notes(folder: Path) -> list[str]:
    path = folder / "notes"
    return path.read_text().splitlines() if path.exists() else []


def was_paid(folder: str) -> Any:
    note(folder, "probed")
    return Happened("paid") if "paid" in notes(Path(folder)) else DID_NOT_HAPPEN


@effect(verify=was_paid)
async def pay_later(folder: str) -> str:
    note(folder, "begun")
    if notes(Path(folder)).count("begun") == 1:
        await asyncio.Event().wait()
    note(folder, "paid")
    return "paid"


@effect(verify=was_paid)
def pay_in_thread(folder: str) -> str:
    note(folder, "begun")
    Path(folder, "door").read_text()
    note(folder, "paid")
    return "paid"


@durable
async def checkout(folder: str) -> str:
    return await pay_later(folder)


@durable
def plain_checkout(folder: str) -> str:
    return pay_in_thread(folder)


async def run_here(link: Link, url: str, is_plain: bool, folder: str) -> None:
    async with Perdure(url) as app:
        try:
            await app.run("job", plain_checkout if is_plain else checkout, folder)
        except LeaseLost:
            await app.tasks.create("other", state=None)  # on disk after everything that this process has written
            say(link, "lost")
            await asyncio.to_thread(link.recv)


async def work(link: Link, url: str) -> None:
    async with Perdure(url) as app, app.worker():
        say(link)
        await asyncio.to_thread(link.recv)


async def attempts(app: Perdure) -> list[AttemptRow]:
    rows = await app._store.query("get_task", namespace="default", id="job")
    found = await app._store.query("read_attempts", uid=rows[0][0]) if rows else []
    return [AttemptRow(*row) for row in found]


async def until_taken_over(app: Perdure, clock: MovableClock) -> None:
    """Move the clock until another process has the task, by less than an effect's time-out."""
    moved = 0.0
    while len(await attempts(app)) < 2:
        assert moved < 300
        moved += 0.25
        clock.advance(seconds=0.25)
        await look_again()
    assert len(await attempts(app)) == 2


@pytest.mark.req("R55", "R64")
async def test_an_effect_of_a_process_that_was_refused_is_settled_at_once(
    shared_url: str, clock: MovableClock, tmp_path: Path
) -> None:
    env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    with nursery() as children:
        first = children.start(run_here, shared_url, False, str(tmp_path), env=env)
        while "begun" not in notes(tmp_path):
            await look_again()
        second = children.start(work, shared_url, env=env)
        second.heard()
        async with Perdure(shared_url) as app:
            first.stop()
            await until_taken_over(app, clock)
            assert notes(tmp_path) == ["begun"]  # the first process may go on with it
            first.go_on()
            assert await asyncio.to_thread(first.heard) == "lost"
            async with asyncio.timeout(PATIENCE):
                assert (await app.tasks.wait_for("job")).result == "paid"
            assert (await attempts(app))[0].ended.endswith(STOPPED)
    assert notes(tmp_path) == ["begun", "probed", "begun", "paid"]


@pytest.mark.req("R55", "R64")
async def test_an_effect_that_still_runs_in_a_thread_is_settled_when_it_has_ended(
    shared_url: str, clock: MovableClock, tmp_path: Path
) -> None:
    env = {"PERDURE_TEST_CLOCK": str(clock.path)}
    os.mkfifo(tmp_path / "door")
    with nursery() as children:
        first = children.start(run_here, shared_url, True, str(tmp_path), env=env)
        while "begun" not in notes(tmp_path):
            await look_again()
        second = children.start(work, shared_url, env=env)
        second.heard()
        async with Perdure(shared_url) as app:
            first.stop()
            await until_taken_over(app, clock)
            first.go_on()
            assert await asyncio.to_thread(first.heard) == "lost"
            assert notes(tmp_path) == ["begun"]  # its code has ended, and its effect has not
            assert not (await attempts(app))[0].ended.endswith(STOPPED)
            await asyncio.to_thread((tmp_path / "door").write_text, "open")
            async with asyncio.timeout(PATIENCE):
                assert (await app.tasks.wait_for("job")).result == "paid"
    assert notes(tmp_path) == ["begun", "paid", "probed"]
