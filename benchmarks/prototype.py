"""A bare prototype of the pipeline: what group commit costs when nothing else is done.

asyncio, one committer thread, msgspec, and one fenced insert per entry; start and finish of a task are
waited for, entries are not. It keeps no promise but durability: no events, no attempts, no sealing, no
second process. `perdure bench` runs it beside perdure on the same disk, so that what the product adds to
its pipeline can be seen. It is for reading and measuring, and is not installed.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import msgspec

Write = tuple[str, tuple[Any, ...], "asyncio.Future[None] | None"]

_SCHEMA = """
CREATE TABLE prototype_leases (task TEXT PRIMARY KEY, epoch INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE prototype_journal (
  task TEXT, position INTEGER, entry {blob} NOT NULL, PRIMARY KEY (task, position)
) {clustered};
"""
_VERBS = {
    "start": "INSERT INTO prototype_leases (task, epoch, status) VALUES (?, ?, 'running')",
    "append": "INSERT INTO prototype_journal (task, position, entry) "
    "SELECT ?, CAST(? AS integer), ? FROM prototype_leases WHERE task = ? AND epoch = ? {share}",
    "finish": "UPDATE prototype_leases SET status = 'completed' WHERE task = ? AND epoch = ?",
}


class Log(Protocol):
    def commit(self, writes: list[Write]) -> None: ...
    def close(self) -> None: ...


class SqliteLog:
    def __init__(self, path: Path) -> None:
        import apsw

        self._connection = apsw.Connection(str(path))
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        self._connection.execute(_SCHEMA.format(blob="BLOB", clustered="WITHOUT ROWID")).fetchall()
        self._verbs = {verb: statement.format(share="") for verb, statement in _VERBS.items()}

    def commit(self, writes: list[Write]) -> None:
        cursor = self._connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        for verb, values, _ in writes:
            cursor.execute(self._verbs[verb], values)
        cursor.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class PostgresLog:
    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        for statement in _SCHEMA.format(blob="BYTEA", clustered="").split(";")[:-1]:
            self._connection.execute(statement.encode())
        # FOR SHARE: a claim that is under way waits for the entry, or the entry for the claim.
        shared = {verb: statement.format(share="FOR SHARE") for verb, statement in _VERBS.items()}
        self._verbs = {verb: statement.replace("?", "%s").encode() for verb, statement in shared.items()}

    def commit(self, writes: list[Write]) -> None:
        # BEGIN and COMMIT sent by hand: `transaction()` would wait for each of them.
        with self._connection.pipeline(), self._connection.cursor() as cursor:
            cursor.execute(b"BEGIN")
            for verb, run in groupby(writes, key=lambda write: write[0]):
                cursor.executemany(self._verbs[verb], [values for _, values, _ in run])
            cursor.execute(b"COMMIT")

    def close(self) -> None:
        self._connection.close()


class Pipeline:
    """One queue, one thread, and whatever is queued goes in one transaction."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Write] = deque()
        self._bell = threading.Condition()
        self._closing = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._thread = threading.Thread(target=self._run, name="prototype", daemon=True)
        self._thread.start()

    # ── what is measured ────────────────────────────────────────────────────────────────────────

    async def start(self, task: str) -> None:
        await self._durable("start", (task, 1))

    def append(self, task: str, position: int, value: object) -> None:
        self._submit(("append", (task, position, self._encode(value), task, 1), None))

    async def append_and_wait(self, task: str, position: int, value: object) -> None:
        await self._durable("append", (task, position, self._encode(value), task, 1))

    async def finish(self, task: str) -> None:
        await self._durable("finish", (task, 1))

    async def close(self) -> None:
        with self._bell:
            self._closing = True
            self._bell.notify()
        await asyncio.to_thread(self._thread.join)
        self._log.close()

    # ── the queue ───────────────────────────────────────────────────────────────────────────────

    async def _durable(self, verb: str, values: tuple[Any, ...]) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._submit((verb, values, done))
        await done

    def _submit(self, write: Write) -> None:
        with self._bell:
            self._queue.append(write)
            self._bell.notify()

    def _run(self) -> None:
        while True:
            with self._bell:
                while not self._queue and not self._closing:
                    self._bell.wait()
                if not self._queue:
                    return
                batch = list(self._queue)
                self._queue.clear()
            self._log.commit(batch)
            if waiting := [done for _, _, done in batch if done is not None]:
                self._loop.call_soon_threadsafe(_wake, waiting)


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for done in waiting:
        done.set_result(None)
