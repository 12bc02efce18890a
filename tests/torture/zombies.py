"""Stop a worker in the middle of its work, let another take over, wake it: what it still writes is refused.

Time is moved, not waited for: the stopped worker's lease runs out on a clock all processes share. The world is a
folder where each effect makes a file named by its key, so that doing it again with the same key changes nothing,
and doing it with another key shows.

python -m tests.torture --part zombies --seeds 0-499        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from perdure import Perdure, durable, effect, idempotency_key, step
from perdure._ground.bridge import drive
from perdure._ground.clock import MovableClock
from tests.support.folders import fast_folder
from tests.support.processes import Child, Link, nursery
from tests.torture import storm_work
from tests.torture.invariants import Story, check
from tests.torture.kills import Home
from tests.torture.storm import home_of
from tests.torture.storm_work import PATIENT

PATIENCE = 60.0
STUCK = 2.0
LENGTH = 8


@step
async def ponder(number: int) -> int:
    await asyncio.sleep(0.004)
    return number * number


@effect(keyed=True, timeout=timedelta(seconds=5))
async def put(folder: str, number: int) -> str:
    await asyncio.sleep(0.002)
    Path(folder, f"{number} {idempotency_key()}").touch()
    return f"put {number}"


@durable
async def walk(folder: str) -> list[Any]:
    said: list[Any] = []
    for number in range(LENGTH):
        said.append(await ponder(number))
        said.append(await put(folder, number))
    return said


async def work(link: Link, home: Home) -> None:
    """A worker that knows the walk."""
    await storm_work.work(link, home, {})


def run(seed: int, *, home: Home | None = None) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, home_of(seed, folder, home) as chosen:
        clock = MovableClock(folder / "clock")
        env = {"PERDURE_TEST_CLOCK": str(clock.path)}
        world = folder / "world"
        world.mkdir()
        app, story = chosen.open(), Story()
        story.started["walk"] = [said for n in range(LENGTH) for said in (n * n, f"put {n}")]
        drive(app.start("walk", walk.options(config=PATIENT), str(world)))
        first = children.start(work, chosen, env=env)
        first.heard()
        _await(lambda: _entries(app) >= rng.randrange(1, 2 * LENGTH), clock=None)
        second = children.start(work, chosen, env=env)
        second.heard()
        first.stop()
        story.look(app)
        while not _await(lambda: _owner(app) != first.pid or _is_done(app), clock, patience=STUCK):
            # It was stopped while it held the file, so nobody can write at all: stop it at another moment.
            first.go_on()
            time.sleep(0.01)
            first.stop()
        first.go_on()
        _await(lambda: _is_done(app), clock)
        _leave(first, second)
        check(app, story, [])
        _check_world(world)
        drive(app.close())


def _await(is_so: Any, clock: MovableClock | None, patience: float = PATIENCE) -> bool:
    """Wait for it; a clock is moved meanwhile, in steps that leave everybody time to look."""
    end = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > end:
            assert patience < PATIENCE, "nothing happens any more"
            return False
        time.sleep(0.002)
        if clock is not None:
            clock.advance(seconds=0.1)
    return True


def _entries(app: Perdure) -> int:
    row = _row(app)
    return len(app._store.engine.query("read_journal", {"uid": row[0], "line": row[6]})) if row else 0


def _row(app: Perdure) -> Any:
    rows = app._store.engine.query("get_task", {"namespace": app._store.namespace, "id": "walk"})
    return rows[0] if rows else None


def _is_done(app: Perdure) -> bool:
    return bool(_row(app)[4] == "completed")


def _owner(app: Perdure) -> int | None:
    found = app._store.engine.query("read_holder", {"uid": _row(app)[0]})[0][6]
    return None if found is None else int(found)


def _leave(*workers: Child) -> None:
    for worker in workers:
        with contextlib.suppress(BrokenPipeError):
            worker.tell()
        worker.wait()


def _check_world(world: Path) -> None:
    done = sorted(path.name.partition(" ")[0] for path in world.iterdir())
    assert done == sorted(str(n) for n in range(LENGTH)), f"an effect had two keys, or none: {done}"
