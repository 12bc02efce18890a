"""Let the whole machine sleep for longer than a lease, and wake: nobody is taken for dead, no timer is lost or doubled.

All workers are stopped together, and with them every process of a PostgreSQL of this part's own; real time passes,
timers become due, and all go on together.

python -m tests.torture --part sleeps --seeds 0-19        even seeds on SQLite, odd ones on PostgreSQL
"""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from perdure._ground.bridge import drive
from tests.sessions.cluster import Cluster
from tests.support.folders import fast_folder
from tests.support.processes import Link, nursery
from tests.torture import storm_work
from tests.torture.kills import Home
from tests.torture.sleepers import Asleep

SLEEPS, WORKERS = 3, 3
LEASE = timedelta(seconds=5)
PATIENCE = 120.0


async def work(link: Link, home: Home, lease: timedelta) -> None:
    """A worker that knows the sleepers, with leases of this length."""
    home.open()._store.presence.lease = lease  # the process has one; the worker's app shares it
    await storm_work.work(link, home, {})


def run(seed: int, *, sleeps: int = SLEEPS, lease: timedelta = LEASE) -> None:
    rng = random.Random(seed)
    with fast_folder() as folder, nursery() as children, _home(seed, folder) as (home, server):
        app = home.open()
        asleep = Asleep(app, str(folder / "recorder"), rng)
        workers = [children.start(work, home, lease) for _ in range(WORKERS)]
        for worker in workers:
            worker.heard()
        asleep.begin(lease * (sleeps / 2), turns=20 * sleeps)
        for _ in range(sleeps):
            time.sleep(rng.uniform(0.1, 1.0))
            with _stopped([*(worker.pid for worker in workers), *_with_children(server)]):
                time.sleep(lease.total_seconds() * rng.uniform(1.2, 1.8))
        end = time.monotonic() + PATIENCE
        while not asleep.is_over():
            assert time.monotonic() < end, f"these do not end: {asleep.told()}"
            time.sleep(0.05)
        for worker in workers:
            worker.tell()
            worker.wait()
        asleep.check()
        drive(app.close())


@contextmanager
def _stopped(pids: Iterable[int]) -> Iterator[None]:
    """They stand still, all of them, as if the machine were asleep."""
    stopped = list(pids)
    try:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _with_children(server: Cluster | None) -> list[int]:
    """The server first: it starts nobody after that."""
    if server is None:
        return []
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    return [server.pid, *map(int, children.split())]


@contextmanager
def _home(seed: int, folder: Path) -> Iterator[tuple[Home, Cluster | None]]:
    if seed % 2 == 0:
        yield Home(f"sqlite://{folder}/p.db"), None
        return
    server = Cluster(connections=100)
    try:
        address = f"postgresql://postgres@/postgres?host={server.socket}&port={server.port}"
        yield Home(address, uuid.uuid4().hex), server
    finally:
        server.remove()
