"""Set the wall clock an hour forward and back under workers at work: no timer is lost, none fires twice.

Only the wall jumps; the clock of leases goes on as it does on a real machine. The movable clock stands for both.

python -m tests.torture --part clocks --seeds 0-99        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Any

from perdure import Perdure, durable, pause, step
from perdure._ground.clock import MovableClock
from perdure._ground.hop import drive
from tests.support.processes import Link, nursery
from tests.torture import storm_work
from tests.torture.invariants import Story, check
from tests.torture.kills import Home
from tests.torture.powerloss import fast_folder
from tests.torture.storm import home_of
from tests.torture.storm_work import record, recorded

TASKS, JUMPS = 12, 8
PATIENCE = 120.0
_MOMENT = 0.02
HOUR = timedelta(hours=1)


@step(flush=True)
async def mark(path: str, what: str) -> str:
    record(path, what)
    return what


@durable
async def sleeper(path: str, name: str, minutes: list[float]) -> list[str]:
    said = []
    for number, length in enumerate(minutes):
        await pause.wait(minutes=length)
        said.append(await mark(path, f"{name} {number}"))
    return said


async def work(link: Link, home: Home, options: dict[str, Any]) -> None:
    """A worker that knows these functions."""
    await storm_work.work(link, home, options)


def run(seed: int, *, home: Home | None = None, jumps: int = JUMPS) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, home_of(seed, folder, home) as chosen:
        clock = MovableClock(folder / "clock")
        env = {"PERDURE_TEST_CLOCK": str(clock.path)}
        path, app, story = str(folder / "recorder"), chosen.open(), Story()
        workers = [children.start(work, chosen, {}, env=env) for _ in range(2)]
        for worker in workers:
            worker.heard()
        for number in range(TASKS):
            name, minutes = f"sleeper-{number}", [rng.uniform(1, 90) for _ in range(3)]
            drive(app.start(name, sleeper, path, name, minutes))
            story.started[name] = [f"{name} {n}" for n in range(3)]
        for _ in range(jumps):
            clock.set_wall(rng.choice((HOUR, -HOUR)))
            for _ in range(rng.randint(1, 6)):
                _go_on(clock)
        _await(lambda: _is_done(app), clock)
        for worker in workers:
            worker.tell()
            worker.wait()
        check(app, story, [])
        marks = recorded(path)
        assert len(marks) == len(set(marks)) == 3 * TASKS, f"a timer was lost or fired twice: {sorted(marks)}"
        _check_leases(app)
        drive(app.close())


def _is_done(app: Perdure) -> bool:
    rows = app._store.engine.query("list_all", {"namespace": app._store.namespace, "after": "", "limit": 1000})
    return all(row[4] == "completed" for row in rows)


def _await(is_so: Any, clock: MovableClock) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "a timer was lost"
        clock.set_wall(timedelta(minutes=5))
        _go_on(clock)


def _go_on(clock: MovableClock) -> None:
    """A moment passes, on the clock of leases as in reality: a process that is only slow must not look dead."""
    clock.advance(seconds=_MOMENT)
    time.sleep(_MOMENT)


def _check_leases(app: Perdure) -> None:
    """A clock that is set is no reason to take anybody for dead."""
    for number in range(TASKS):
        events = drive(app.tasks.events(f"sleeper-{number}"))
        assert not [event for event in events if event.kind == "worker_lost"]
