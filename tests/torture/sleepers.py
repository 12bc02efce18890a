"""Tasks that are mostly asleep, and one that never rests, for parts that do something to time itself.

What fires makes a mark in a file that keeps no keys and refuses nothing: what is in it twice has fired twice.
"""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

from perdure import Perdure, durable, pause, step
from perdure._ground.bridge import drive
from perdure.automation import scheduled
from tests.torture.invariants import Story, check
from tests.torture.storm_work import record, recorded

TASKS, NAPS = 12, 3
RESTLESS, TICKING = "restless", "ticking"


@step(flush=True)
async def mark(path: str, what: str) -> str:
    record(path, what)
    return what


@durable(name="torture sleeper")
async def sleeper(path: str, name: str, seconds: list[float]) -> list[str]:
    said = []
    for number, length in enumerate(seconds):
        await pause.wait(seconds=length)
        said.append(await mark(path, f"{name} {number}"))
    return said


@step
async def turn(number: int) -> int:
    await asyncio.sleep(0.05)
    return number


@durable(name="torture restless")
async def restless(turns: int) -> int:
    """At work all the time: somebody has a lease on it, whatever happens to the clock."""
    return sum([await turn(number) for number in range(turns)])


@durable(name="torture ticking")
async def ticking(path: str) -> None:
    tick = await scheduled()
    assert tick is not None
    await mark(path, f"tick {tick.at.isoformat()}")


class Asleep:
    """A dormitory: what was begun, whether all of it has ended, and what must hold then."""

    def __init__(self, app: Perdure, path: str, rng: random.Random) -> None:
        self._app, self._path, self._rng, self.story = app, path, rng, Story()

    def begin(self, longest: timedelta, *, turns: int) -> None:
        most = longest.total_seconds()
        for number in range(TASKS):
            name, seconds = f"sleeper-{number}", [self._rng.uniform(most / 90, most) for _ in range(NAPS)]
            drive(self._app.start(name, sleeper, self._path, name, seconds))
            self.story.started[name] = [f"{name} {n}" for n in range(NAPS)]
        drive(self._app.start(RESTLESS, restless, turns))
        self.story.started[RESTLESS] = sum(range(turns))

    def is_over(self) -> bool:
        return all(row[4] == "completed" for row in self._rows() if row[2] in self.story.started)

    def told(self) -> list[tuple[Any, Any]]:
        """What is not over, for whoever looks for the fault."""
        return [(row[2], row[4]) for row in self._rows() if row[4] != "completed"]

    def check(self) -> None:
        """Each nap ended once, each tick fired at most once, and nobody was taken for dead."""
        check(self._app, self.story, [])
        marks = recorded(self._path)
        naps = [mark for mark in marks if mark.startswith("sleeper")]
        twice = sorted({mark for mark in marks if marks.count(mark) > 1})
        assert not twice, f"fired twice: {twice}; {self._losses()}"
        assert len(naps) == NAPS * TASKS, f"a timer was lost: {sorted(naps)}"
        assert not self._losses(), self._losses()

    def _losses(self) -> list[Any]:
        """Takeovers of tasks; there is no reason for any."""
        events = [(row[2], event) for row in self._rows() for event in drive(self._app.tasks.events(row[2]))]
        return [(id, event.data) for id, event in events if event.kind == "worker_lost"]

    def _rows(self) -> list[Any]:
        store = self._app._store
        return store.engine.query("list_all", {"namespace": store.namespace, "after": "", "limit": 100_000})
