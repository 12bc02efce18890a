"""The floors: the time that the disk and the bare database library need, without perdure."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol

PAYLOAD = os.urandom(1000)
_CREATE = "CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY {generated}, body {blob} NOT NULL)"


class Bare(Protocol):
    """A table of its own beside the store, on the same disk."""

    name: str

    def commit(self, body: bytes = PAYLOAD) -> None:
        """Insert one row; durable when this returns."""
        ...

    def read(self) -> int:
        """Read the whole table; returns the number of its rows."""
        ...

    def fill(self, rows: int) -> None:
        """Insert many small rows in one transaction."""
        ...

    def close(self) -> None: ...


class BareSqlite:
    name = "apsw insert + commit, WAL, FULL"

    def __init__(self, path: Path) -> None:
        import apsw

        self._connection = apsw.Connection(str(path))
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        self._connection.set_busy_timeout(30_000)
        self._connection.execute(_CREATE.format(generated="", blob="BLOB"))

    def commit(self, body: bytes = PAYLOAD) -> None:
        self._connection.execute("INSERT INTO bare (body) VALUES (?)", (body,))

    def read(self) -> int:
        return len(self._connection.execute("SELECT id, body FROM bare ORDER BY id").fetchall())

    def fill(self, rows: int) -> None:
        with self._connection:
            self._connection.executemany("INSERT INTO bare (body) VALUES (?)", ((PAYLOAD[:40],) for _ in range(rows)))

    def close(self) -> None:
        self._connection.close()


class BarePostgres:
    name = "psycopg insert + commit"

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute(_CREATE.format(generated="GENERATED ALWAYS AS IDENTITY", blob="BYTEA").encode())

    def commit(self, body: bytes = PAYLOAD) -> None:
        self._connection.execute("INSERT INTO bare (body) VALUES (%s)", (body,))

    def read(self) -> int:
        return len(self._connection.execute("SELECT id, body FROM bare ORDER BY id", binary=True).fetchall())

    def fill(self, rows: int) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany("INSERT INTO bare (body) VALUES (%s)", [(PAYLOAD[:40],)] * rows)

    def close(self) -> None:
        self._connection.close()


class RawFile:
    """Append and sync: the cost of durability without a database."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self) -> None:
        os.write(self._fd, PAYLOAD)
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def thousand_commits_ms(bare: Bare, sample: int) -> float:
    """The time of 1,000 bare commits, from a sample of them."""
    return 1000 / per_second(bare, sample) * 1000


def per_second(bare: Bare, sample: int) -> float:
    began = time.perf_counter()
    for _ in range(sample):
        bare.commit()
    return sample / (time.perf_counter() - began)
