"""A durable function killed at any commit around its pauses goes on, and every pause ends exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, durable, pause
from perdure._ground import crash_points as crash
from perdure._ground.clock import MovableClock
from tests.crash.conftest import env_of
from tests.support.processes import ChildDied, Link, Nursery
from tests.support.waiting import look_again

# So many commits there are from the start to the end, and a few more.
COMMITS = 16


@durable(name="crash.waits")
async def waits(folder: str) -> list[Any]:
    async def announce(token: str) -> None:
        with open(f"{folder}/tokens", "a") as file:
            file.write(f"{token}\n")

    answer = await pause.callback("an answer", dict, announce=announce)
    await pause.wait(hours=1)
    yes = await pause.approval("Go?")
    return [answer, yes.by]


async def carry_on(_: Link, url: str, folder: str, clock_at: str, dies_at: tuple[str, int] | None) -> dict[str, Any]:
    """Carry the task on, and be the other system, the time and the person too."""
    clock, counted = MovableClock(clock_at), 0
    async with Perdure(url) as app:
        await app.tasks.open("registered")  # what this process writes once is not counted
        if dies_at is not None:
            crash.arm(*dies_at)
        running = asyncio.create_task(app.run("waits", waits, folder))
        while not running.done():
            record = await app.tasks.get("waits")
            reason = record.pause.reason if record is not None and record.pause is not None else ""
            if reason == "external_dependency":
                # The first of those that were given out, though its process may be long dead.
                counted += await app.tasks.deliver(Path(folder, "tokens").read_text().split()[0], {"n": 1})
            elif reason == "scheduled_wait":
                clock.advance(hours=2)
            elif reason == "human_approval":
                await (await app.tasks.handle("waits")).approve(by="ada")
            await look_again()
        kinds = Counter(event.kind for event in await app.tasks.events("waits"))
        return {"result": await running, "counted": counted, "kinds": dict(kinds)}


@pytest.mark.req("R28", "R32", "R42", "R45")
@pytest.mark.parametrize("place", ["committer.before_commit", "committer.after_commit"])
def test_every_pause_ends_once_whichever_commit_its_process_died_at(
    shared_url: str, place: str, folder: Path, clock: MovableClock, children: Nursery
) -> None:
    deaths = 0
    for number in range(1, COMMITS):
        here = folder / str(number)
        here.mkdir()
        url = f"sqlite://{here}/p.db" if shared_url.startswith("sqlite") else shared_url
        if url == shared_url and number > 1:
            break  # one database is enough to see that the engines agree
        dying = children.start(carry_on, url, str(here), str(clock.path), (place, number), env=env_of(clock))
        try:
            found = dying.heard()
        except ChildDied:
            deaths += 1
            found = children.run(carry_on, url, str(here), str(clock.path), None, env=env_of(clock))
        assert found["result"] == [{"n": 1}, "ada"]
        ended = {kind: found["kinds"].get(kind) for kind in ("called back", "due", "approved", "completed")}
        assert ended == {"called back": 1, "due": 1, "approved": 1, "completed": 1}, number
    assert deaths >= (8 if shared_url.startswith("sqlite") else 1)
