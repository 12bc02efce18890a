"""How long pages, counts and changes take in a store with many tasks.

    python benchmarks/lists.py                     100,000 tasks, SQLite and PostgreSQL
    python benchmarks/lists.py --tasks 10000 --engine sqlite

The rows are written straight into the tables, so that the store is there within seconds: 97 % completed, 1 % each
failed, paused and running, spread evenly; every second one carries out a durable function; the rest have tags and
agents. Each line is asked for eleven times; the middle and the slowest are told. It is for measuring, and is not
installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from perdure import Perdure
from perdure._durable import page_with_situations
from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._ground.ids import new_uid
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._model import SITUATIONS, Pause, make_pause
from perdure.bench import server
from perdure.types import TaskFilter

_START_MS = 1_790_000_000_000
_TASK = "uid namespace id status name description agent tags depends_on event_count event_head created_at updated_at"
_TASK += " pause_reason due_at finished_at progress result pause"
_CALL = "task_uid function version arguments queue priority"
_REASONS = ("human_approval", "rate_limit", "human_input")
_TIMES = 11
Rows = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def rows(count: int) -> Rows:
    """The rows of both tables."""
    tasks, calls = [], []
    for n in range(count):
        at = _START_MS + n * 100
        uid, status = new_uid(at), _status(n)
        name = f"Refactor module {n}" if n % 4 else ""
        agent = f"agent-{n % 7}" if n % 10 == 0 else "rare" if n == count // 3 else ""
        tags = {"team": f"t{n % 5}", "run": str(n % 1000)} if n % 3 == 0 else {}
        reason = _REASONS[n // 100 % 3] if status == "paused" else None
        due = at + 10_000_000 - n if reason == "rate_limit" else None
        ended = at + 50 if status in ("completed", "failed") else None
        pause = make_pause(reason, "Go on?", {"due_at": moment(due)} if due else {}, at, {"pid": 1}) if reason else None
        sealed = envelope.seal(codec.encode(pause, Pause), "pause", uid, KeyRing()) if pause else None
        task = (uid, "default", f"task-{n:07d}", status, name, "", agent, json.dumps(tags), "[]", 1, b"0" * 32)
        tasks.append((*task, at, at + 60_000 - (n * 7919 % 50_000), reason, due, ended, None, b"r" * 400, sealed))
        if n % 2 == 0:
            function = "rare.one" if n % 25_000 == 0 else f"jobs.digest_{n // 2 % 20}"
            calls.append((uid, function, 1 + n % 2, b"a" * 60, "gpu" if n % 1000 == 0 else "default", 0))
    return tasks, calls


def _status(n: int) -> str:
    return {7: "failed", 40: "paused", 88: "running"}.get(n % 100, "completed")


def fill_sqlite(path: Path, made: Rows) -> None:
    import apsw

    connection = apsw.Connection(str(path), vfs="cksmvfs") if _has_checksums() else apsw.Connection(str(path))
    connection.execute("BEGIN")
    for table, columns, found in (("tasks", _TASK, made[0]), ("calls", _CALL, made[1])):
        names = columns.split()
        # Names of ours alone.
        text = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608
        connection.executemany(text, found)
    connection.execute("COMMIT")
    connection.close()


def _has_checksums() -> bool:
    import apsw

    return "cksmvfs" in apsw.vfs_names()


def fill_postgres(url: str, made: Rows) -> None:
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for table, columns, found in (("tasks", _TASK, made[0]), ("calls", _CALL, made[1])):
            names = ", ".join(columns.split())
            with cursor.copy(f"COPY perdure.{table} ({names}) FROM STDIN".encode()) as copy:
                for row in found:
                    copy.write_row(row)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


async def middle_and_worst(act: Any) -> tuple[float, float, Any]:
    took, found = [], None
    for _ in range(_TIMES):
        begin = time.perf_counter()
        found = await act()
        took.append(1000 * (time.perf_counter() - begin))
    return median(took), max(took[1:]), found


async def measure(url: str, count: int) -> None:
    since = moment(_START_MS + (count - 500) * 100)
    filters: dict[str, TaskFilter] = {
        "all": TaskFilter(),
        "status failed": TaskFilter(status="failed"),
        "status completed": TaskFilter(status="completed"),
        "three statuses": TaskFilter(status=["failed", "paused", "running"]),
        "reason rate_limit": TaskFilter(reason="rate_limit"),
        "function": TaskFilter(function="jobs.digest_3"),
        "function, failed": TaskFilter(function="jobs.digest_3", status="failed"),
        "function, rare": TaskFilter(function="rare.one"),
        "function, none": TaskFilter(function="nowhere"),
        "queue": TaskFilter(queue="gpu"),
        "queue, none": TaskFilter(queue="nowhere"),
        "agent": TaskFilter(agent="agent-3"),
        "agent, rare": TaskFilter(agent="rare"),
        "agent, none": TaskFilter(agent="nobody"),
        "tag": TaskFilter(tags={"team": "t1"}),
        "tags, rare": TaskFilter(tags={"team": "t1", "run": "501"}),
        "tag, none": TaskFilter(tags={"team": "none"}),
        "text, an id": TaskFilter(text=f"task-{count // 7:07d}"),
        "text, in names": TaskFilter(text="module 77"),
        "text, none": TaskFilter(text="nowhere"),
        "since": TaskFilter(since=since),
        "until": TaskFilter(until=moment(_START_MS + 50_000)),
        "since, failed": TaskFilter(since=since - timedelta(minutes=10), status="failed"),
        "changed since": TaskFilter(changed_since=since),
    }
    async with Perdure(url) as app:
        for name, wanted in filters.items():
            for sort in ("newest", "changed", "due"):
                middle, worst, page = await middle_and_worst(
                    lambda w=wanted, s=sort: app.tasks.page(w, sort=s, limit=50)
                )
                mark = " approximate" if page.approximate else ""
                slow = "  <-- over 10 ms" if middle > 10 else ""
                _say(f"  {name:20} {sort:8} {middle:8.2f} ms {worst:8.2f} ms  {len(page):3} rows{mark}{slow}")
        for kind in SITUATIONS:
            middle, worst, page = await middle_and_worst(
                lambda k=kind: page_with_situations(app.tasks, TaskFilter(situation=k), limit=50)
            )
            mark = " approximate" if page.approximate else ""
            slow = "  <-- over 10 ms" if middle > 10 else ""
            _say(f"  situation {kind:19} {middle:8.2f} ms {worst:8.2f} ms  {len(page):3} rows{mark}{slow}")
        others = {
            "counts": app.tasks.counts,
            "counts, function": lambda: app.tasks.counts(filters["function"]),
            "counts, tag": lambda: app.tasks.counts(filters["tag"]),
            "facets": app.tasks.facets,
            "changes": lambda: app.tasks.changes(since, limit=200),
            "list of 50": lambda: app.tasks.page(limit=50),
        }
        for name, act in others.items():
            middle, worst, _ = await middle_and_worst(act)
            _say(f"  {name:29} {middle:8.2f} ms {worst:8.2f} ms")


@contextmanager
def store_on(engine: str, made: Rows) -> Iterator[str]:
    """The address of a store with these rows."""
    with tempfile.TemporaryDirectory(prefix="perdure-lists-", dir="/var/tmp") as folder:
        if engine == "sqlite":
            url = f"sqlite://{folder}/store.db"
            asyncio.run(_make(url))
            fill_sqlite(Path(folder) / "store.db", made)
            yield url
            return
        with server.running(Path(folder)) as url:
            asyncio.run(_make(url))
            fill_postgres(url, made)
            yield url


async def _make(url: str) -> None:
    async with Perdure(url) as app:
        await app.tasks.create("first", state={})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--engine", choices=["sqlite", "postgres", "all"], default="all")
    given = parser.parse_args()
    made = rows(given.tasks)
    for engine in ("sqlite", "postgres") if given.engine == "all" else (given.engine,):
        with store_on(engine, made) as url:
            _say(f"{engine}, {given.tasks:,} tasks: the middle of {_TIMES}, the slowest")
            asyncio.run(measure(url, given.tasks))


if __name__ == "__main__":
    main()
