"""Set the system's wall clock an hour forward and back under real workers: no timer is lost, none fires twice.

libfaketime gives the workers a wall clock that jumps, while the clock of leases is the machine's own. A PostgreSQL of
this part's own has another such wall, which jumps at other times: its machine is another one.

python -m tests.torture --part walls --seeds 0-39        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure._ground.bridge import drive
from tests.sessions.cluster import Cluster
from tests.support import faketime
from tests.support.faketime import Wall
from tests.support.folders import fast_folder
from tests.support.processes import Link, nursery_in
from tests.torture import storm_work
from tests.torture.kills import Home
from tests.torture.sleepers import TICKING, Asleep, ticking

JUMPS = 8
PATIENCE = 120.0
HOUR, WHILE = timedelta(hours=1), timedelta(minutes=30)
NAP = timedelta(minutes=90)


async def work(link: Link, home: Home, options: dict[str, Any]) -> None:
    """A worker that knows the sleepers."""
    faketime.mend_sleep()
    await storm_work.work(link, home, options)


def run(seed: int, *, jumps: int = JUMPS, nap: timedelta = NAP) -> None:
    if faketime.library() is None:
        print(f"walls {seed}: skipped, libfaketime is not here and cannot be installed", flush=True)
        return
    rng = random.Random(seed)
    with fast_folder() as folder:
        wall = Wall(folder / "wall")
        with nursery_in(wall.env) as children, _home(seed, folder) as (home, walls):
            walls.append(wall)
            app = home.open()
            asleep = Asleep(app, str(folder / "recorder"), rng)
            workers = [children.start(work, home, {}) for _ in range(2)]
            for worker in workers:
                worker.heard()
            asleep.begin(nap, turns=20 * jumps)
            drive(_schedule(app, str(folder / "recorder")))
            for _ in range(jumps):
                rng.choice(walls).set(rng.choice((HOUR, -HOUR)))
                time.sleep(rng.uniform(0.0, 1.5))
            _await(asleep, walls)
            for worker in workers:
                worker.tell()
                worker.wait()
            asleep.check()
            drive(app.close())


async def _schedule(app: Any, path: str) -> None:
    draft = await app.schedule(TICKING, ticking, path)
    await draft.cron("*/5 * * * *", missed="all")


def _await(asleep: Asleep, walls: list[Wall]) -> None:
    end = time.monotonic() + PATIENCE
    while not asleep.is_over():
        assert time.monotonic() < end, f"these do not end: {asleep.told()}"
        for wall in walls:
            wall.set(WHILE)
        time.sleep(1.0)


@contextmanager
def _home(seed: int, folder: Path) -> Iterator[tuple[Home, list[Wall]]]:
    """Where the store is, and the walls of whoever else has one."""
    if seed % 2 == 0:
        yield Home(f"sqlite://{folder}/p.db"), []
        return
    with fast_folder() as shown:
        shown.chmod(0o755)  # the server is another user
        wall = Wall(shown / "wall")
        server = Cluster(connections=100, env=wall.env)
        try:
            address = f"postgresql://postgres@/postgres?host={server.socket}&port={server.port}"
            yield Home(address, uuid.uuid4().hex), [wall]
        finally:
            server.remove()
