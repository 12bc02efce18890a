"""A worker that has lost its lease writes nothing, however close the race. PostgreSQL's row locks do it.

The pair that decided the design: the same insert with and without FOR SHARE on the lease row, while
another worker's claim is under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import perdure
from perdure._store.postgres import PostgresEngine
from perdure._store.sql import Queries
from tests.store.kit import UIDS, Hand, event, write

UID = UIDS[0]
QUERIES = Queries(Path(perdure.__file__).parent / "_store" / "postgres" / "queries")
APPEND = QUERIES["append_entry"][0]
WITHOUT_LOCK = APPEND.replace("FOR SHARE\n", "")
CLAIM = QUERIES["claim"][0]


@pytest.fixture
def sleeper(postgres_url: str) -> Iterator[Hand]:
    """A process that works on a task, and is about to oversleep its lease."""
    engine = PostgresEngine(postgres_url)
    hand = Hand(engine, "sleeper")
    hand.running(UID)
    yield hand
    engine.close()


@pytest.fixture
def connect(postgres_url: str) -> Iterator[Any]:
    """Plain connections, whose transactions the test ends itself."""
    opened: list[psycopg.Connection[Any]] = []

    def one() -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(postgres_url))
        return opened[-1]

    yield one
    for connection in opened:
        connection.close()


def claim(connection: psycopg.Connection[Any]) -> Any:
    """The successor's claim, in a transaction that is still open."""
    who = {"worker": "successor", "host": "there", "pid": 8, "user": "ada", "agent": ""}
    seen = {"seen_epoch": 1, "seen_worker": "sleeper", "before": "running", "former": "silent for a whole lease"}
    return connection.execute(CLAIM.encode(), {"uid": UID, **event("taken over", 9), **who, **seen}).fetchone()


def append(connection: psycopg.Connection[Any], statement: str, position: int = 1) -> Any:
    place = {"uid": UID, "epoch": 1, "worker": "sleeper", "line": 1, "position": position}
    return connection.execute(statement.encode(), {**place, "entry": b"late"}).fetchone()


def entries(connection: psycopg.Connection[Any]) -> list[Any]:
    with connection.transaction():
        return connection.execute("SELECT position FROM perdure.journal ORDER BY position").fetchall()


def until_somebody_waits(connection: psycopg.Connection[Any]) -> None:
    while True:
        with connection.transaction():
            waiting = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted"
            if connection.execute(f"{waiting} AND datname = current_database()").fetchone():
                return


def test_a_stale_entry_is_refused_while_a_claim_is_in_flight(sleeper: Hand, connect: Any) -> None:
    successor = connect()
    assert claim(successor) == (2,)
    with ThreadPoolExecutor() as pool:
        late = pool.submit(sleeper.append, UID, 1, 1)
        until_somebody_waits(connect())
        successor.commit()
        assert late.result() is None
    assert sleeper.journal(UID) == []


def test_a_rollback_sees_an_entry_that_was_being_committed(sleeper: Hand, connect: Any) -> None:
    sleeper.append(UID, 1, 1)
    slow = connect()
    assert append(slow, APPEND, 2) == (2,)
    version = sleeper.task(UID).version
    with ThreadPoolExecutor() as pool:
        back = pool.submit(sleeper.rollback, UID, 0, version, seen=1)
        until_somebody_waits(connect())
        slow.commit()
        assert back.result() is None
    assert sleeper.rollback(UID, 0, seen=2) is not None


def test_a_batch_of_stale_entries_is_refused_while_a_claim_is_in_flight(sleeper: Hand, connect: Any) -> None:
    batch = [write("append_entry", sleeper.entry(UID, 1, position)) for position in range(10)]
    successor = connect()
    assert claim(successor) == (2,)
    with ThreadPoolExecutor() as pool:
        late = pool.submit(sleeper.engine.commit, batch)
        until_somebody_waits(connect())
        successor.commit()
        assert late.result() == [None] * 10
    assert sleeper.journal(UID) == []


def test_without_the_lock_the_stale_entry_would_be_written(sleeper: Hand, connect: Any) -> None:
    successor, late = connect(), connect()
    assert claim(successor) == (2,)
    assert append(late, WITHOUT_LOCK) == (1,)
    successor.commit()
    assert entries(successor) == []  # what the successor goes on from
    late.commit()
    assert entries(successor) == [(1,)]  # what it will never have seen


def test_a_claim_waits_for_an_entry_in_flight_and_then_reads_it(sleeper: Hand, connect: Any) -> None:
    writer, successor = connect(), connect()
    assert append(writer, APPEND) == (1,)
    with ThreadPoolExecutor() as pool:
        claiming = pool.submit(claim, successor)
        until_somebody_waits(connect())
        assert not claiming.done()
        writer.commit()
        assert claiming.result() == (2,)
    successor.commit()
    assert entries(successor) == [(1,)]


def test_without_the_lock_the_claim_would_not_wait(sleeper: Hand, connect: Any) -> None:
    writer, successor = connect(), connect()
    assert append(writer, WITHOUT_LOCK) == (1,)
    assert claim(successor) == (2,)
    successor.commit()
    assert entries(successor) == []
    writer.commit()


@pytest.mark.parametrize("verb", ["checkpoint", "progress", "complete", "release"])
def test_no_verb_of_a_stale_attempt_passes_a_claim_in_flight(sleeper: Hand, connect: Any, verb: str) -> None:
    verbs = {
        "checkpoint": lambda: sleeper.checkpoint(UID, 1, 0),
        "progress": lambda: sleeper.progress(UID, 1),
        "complete": lambda: sleeper.move(UID, "complete", epoch=1),
        "release": lambda: sleeper.release(UID, 1),
    }
    successor = connect()
    assert claim(successor) == (2,)
    with ThreadPoolExecutor() as pool:
        late = pool.submit(verbs[verb])
        until_somebody_waits(connect())
        successor.commit()
        assert late.result() is None
    task, holder = sleeper.task(UID), sleeper.holder(UID)
    assert (task.status, task.seq, task.progress) == ("running", 0, None)
    assert holder is not None and (holder.epoch, holder.worker) == (2, "successor")


def test_of_two_claims_at_once_one_wins(sleeper: Hand, connect: Any) -> None:
    first = connect()
    assert claim(first) == (2,)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(claim, connect())
        until_somebody_waits(connect())
        first.commit()
        assert second.result() is None
    assert [row[0] for row in sleeper.engine.query("read_attempts", {"uid": UID})] == [1, 2]
