"""A separate process, for figures that one process cannot measure of itself: `python -m perdure.bench.child …`.

    write URL ID SECONDS      checkpoint as often as possible          → {"commits": …, "lost": …}
    bare PATH SECONDS         the same by bare apsw                   → {"commits": …}
    hold URL                  hold the store open, and do nothing     → {"rss": …, "threads": …, "tasks": …}
    work URL [wait]           a worker, until its input ends          → {"rss": …}
                              with `wait` it begins at the first line

A writer says `ready`, waits for a line on its input, and begins; so all begin at once.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from perdure._tasks import store_of


def main(verb: str, *args: str) -> None:
    answers: dict[str, Callable[..., dict[str, int]]] = {"write": write, "bare": bare, "hold": hold, "work": work}
    print(json.dumps(answers[verb](*args)), flush=True)


def write(url: str, id: str, seconds: str) -> dict[str, int]:
    from perdure import sync
    from perdure.errors import LeaseLost

    lost = 0
    with sync.Perdure(url) as app:
        task = app.tasks.open(id)
        task.checkpoint({"n": 0})

        def commit(number: int) -> None:
            nonlocal lost
            try:
                task.checkpoint({"n": number})
            except LeaseLost:
                lost += 1

        return {"commits": _as_often_as_it_goes(commit, float(seconds)), "lost": lost}


def bare(path: str, seconds: str) -> dict[str, int]:
    from perdure.bench.bare import BareSqlite

    table = BareSqlite(Path(path))
    try:
        return {"commits": _as_often_as_it_goes(lambda _: table.commit(), float(seconds))}
    finally:
        table.close()


def _as_often_as_it_goes(commit: Callable[[int], None], seconds: float) -> int:
    print("ready", flush=True)
    sys.stdin.readline()
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number += 1
        commit(number)
    return number


def hold(url: str) -> dict[str, int]:
    from perdure import sync

    with sync.Perdure(url) as app:
        own = app.tasks.open("held")
        own.checkpoint({"held": True})  # takes the lease, so that the heart beats as in a worker
        found = len(app.tasks.list(status="paused", limit=100).items)
        return {"rss": resident_bytes(), "threads": threading.active_count(), "tasks": found}


def work(url: str, when: str = "") -> dict[str, int]:
    import asyncio

    from perdure import Perdure
    from perdure.bench import errands

    async def until_told() -> None:
        assert errands.errand.name  # this process must know the function
        async with Perdure(url) as app:
            if when:
                await store_of(app.tasks).query("read_workers")  # opens the store, as in a running worker
                print("ready", flush=True)
                await asyncio.to_thread(sys.stdin.readline)
            async with app.worker():
                if not when:
                    print("ready", flush=True)
                await asyncio.to_thread(sys.stdin.readline)

    asyncio.run(until_told())
    return {"rss": resident_bytes()}


def resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    main(*sys.argv[1:])
