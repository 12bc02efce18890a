"""Ten thousand tasks that wait, a thousand of them due at once: each goes on once, shared evenly, and no other moves.

Time is moved, not waited for. How long the crowd took and who woke how many is printed: nothing is proved by it but
that every worker had its share.

python -m tests.torture --part crowd --seeds 0-3        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from typing import Any

from perdure import Perdure, durable, pause, step
from perdure._ground.bridge import drive
from perdure._ground.clock import MovableClock
from tests.support.folders import fast_folder
from tests.support.processes import Link, nursery
from tests.torture import storm_work
from tests.torture.kills import Home
from tests.torture.storm import home_of

MANY, DUE, WORKERS = 10_000, 1_000, 3
PATIENCE = 600.0
_LOOK = 1.0  # reading ten thousand rows takes its time


@step
async def who() -> list[float]:
    return [os.getpid(), time.time()]


@durable
async def waiting(hours: float) -> list[float]:
    await pause.wait(hours=hours)
    return await who()


async def work(link: Link, home: Home, options: dict[str, Any]) -> None:
    """A worker that knows these functions."""
    await storm_work.work(link, home, options)


def run(seed: int, *, home: Home | None = None, many: int = MANY, due: int = DUE) -> None:
    with fast_folder() as folder, nursery() as children, home_of(seed, folder, home) as chosen:
        clock = MovableClock(folder / "clock")
        env = {"PERDURE_TEST_CLOCK": str(clock.path)}
        app = chosen.open()
        workers = [children.start(work, chosen, {}, env=env) for _ in range(WORKERS)]
        began = time.monotonic()
        asyncio.run(_start_all(chosen, many, due))
        _await(lambda: _count(app).get("paused", 0) == many, "not all of them wait")
        filled = time.monotonic() - began
        assert not any(row[10] for row in app._store.engine.query("read_workers", {})), "one that waits holds nothing"
        moved = time.time()
        clock.advance(hours=2)
        _await(lambda: _count(app).get("completed", 0) == due, "not all that were due went on")
        for worker in workers:
            worker.tell()
            worker.wait()
        _check(app, many, due, moved, filled)
        drive(app.close())


async def _start_all(home: Home, many: int, due: int) -> None:
    app = home.open()
    for first in range(0, many, 500):
        numbers = range(first, min(first + 500, many))
        # Every tenth is due soon; the others wait for as long as the test lasts and longer.
        soon = many // due
        await asyncio.gather(*(app.start(f"wait-{n}", waiting, 1.0 if n % soon == 0 else 999.0) for n in numbers))
    await app.close()


def _check(app: Perdure, many: int, due: int, moved: float, filled: float) -> None:
    rows = _rows(app)
    assert Counter(row[4] for row in rows) == {"completed": due, "paused": many - due}
    attempts = Counter((row[4], row[21]) for row in rows)
    assert attempts == {("completed", 2): due, ("paused", 1): many - due}, (
        f"one was begun twice, or too early: {attempts}"
    )
    told = [app._store.unseal(row[0], "result", row[19]) for row in rows if row[4] == "completed"]
    shares = Counter(int(pid) for pid, _ in told)
    late = sorted(at - moved for _, at in told)
    assert len(shares) == WORKERS and min(shares.values()) >= due // WORKERS // 10, f"a worker had nothing: {shares}"
    print(
        f"crowd: {many:,} waiting after {filled:.0f} s; {due:,} due at once, late {late[due // 2]:.2f} s (half),"
        f" {late[due * 99 // 100]:.2f} s (99 %), {due / late[-1]:.0f}/s; shares {sorted(shares.values())}",
        flush=True,
    )


def _rows(app: Perdure) -> list[Any]:
    return app._store.engine.query("list_all", {"namespace": app._store.namespace, "after": "", "limit": 1_000_000})


def _count(app: Perdure) -> Counter[str]:
    return Counter(row[4] for row in _rows(app))


def _await(is_so: Any, otherwise: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(_LOOK)
