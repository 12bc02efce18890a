"""Set the wall clock an hour forward and back under workers at work: no timer is lost, none fires twice.

Only the wall jumps; the clock of leases goes on as it does on a real machine. The movable clock stands for both;
walls.py does the same to the clock of the system.

python -m tests.torture --part clocks --seeds 0-99        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Any

from perdure._ground.bridge import drive
from perdure._ground.clock import MovableClock
from tests.support.folders import fast_folder
from tests.support.processes import Link, nursery
from tests.torture import storm_work
from tests.torture.kills import Home
from tests.torture.sleepers import Asleep
from tests.torture.storm import home_of

JUMPS = 8
PATIENCE = 120.0
HOUR, WHILE = timedelta(hours=1), timedelta(minutes=5)
NAP = timedelta(minutes=90)
_MOMENT = 0.02


async def work(link: Link, home: Home, options: dict[str, Any]) -> None:
    """A worker that knows the sleepers."""
    await storm_work.work(link, home, options)


def run(seed: int, *, home: Home | None = None, jumps: int = JUMPS) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, home_of(seed, folder, home) as chosen:
        clock = MovableClock(folder / "clock")
        env = {"PERDURE_TEST_CLOCK": str(clock.path)}
        app = chosen.open()
        asleep = Asleep(app, str(folder / "recorder"), rng)
        workers = [children.start(work, chosen, {}, env=env) for _ in range(2)]
        for worker in workers:
            worker.heard()
        asleep.begin(NAP, turns=jumps)
        for _ in range(jumps):
            clock.set_wall(rng.choice((HOUR, -HOUR)))
            for _ in range(rng.randint(1, 6)):
                _go_on(clock)
        _await(asleep, clock)
        for worker in workers:
            worker.tell()
            worker.wait()
        asleep.check()
        drive(app.close())


def _await(asleep: Asleep, clock: MovableClock) -> None:
    end = time.monotonic() + PATIENCE
    while not asleep.is_over():
        assert time.monotonic() < end, f"these do not end: {asleep.told()}"
        clock.set_wall(WHILE)
        _go_on(clock)


def _go_on(clock: MovableClock) -> None:
    """A moment passes, on the clock of leases as in reality: a process that is only slow must not look dead."""
    clock.advance(seconds=_MOMENT)
    time.sleep(_MOMENT)
