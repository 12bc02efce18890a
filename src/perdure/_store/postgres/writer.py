"""Write batches, each exactly once, whatever happens to the connection.

A batch is sent in two phases. The first sends everything but the COMMIT in one go and reads all answers;
the second is the COMMIT alone. A connection lost in the first phase has committed nothing, and the batch
is sent again. Lost in the second, the batch may be in or not: its number, written in the same
transaction, tells, and then it is acknowledged with the answers already read, or sent again.

A batch of nothing but entries is sent in one phase, COMMIT and all: a chain of effects waits for it again and again.
If one of them is refused, the statement fails, nothing is committed, and the batch is sent in two phases.

Owns the writing connection. Which writes form a batch, and which rows it locks, is in batch.py.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from perdure._ground import crash
from perdure._store.contract import Again, Row
from perdure._store.postgres import arrays, batch, fork
from perdure._store.postgres.connector import Connection, Connector, Lost, Patience
from perdure._store.sql import Queries
from perdure._store.write import Write
from perdure.errors import StoreBusy, StoreUnavailable

_HERE = Path(__file__).parent

# A client that vanished in the middle of a transaction is ended by the server after `idle`; others wait
# for its rows longer than that, so that they outlast it.
_SETTINGS = {"idle_ms": "5000", "lock_ms": "10000", "statement_ms": "60000"}
_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
# From this many on, executemany saves more than its round trip costs.
_MANY = 8

_NOT_KNOWN = "all that was acknowledged; of this batch it is not known, so read before trying again"

Answers = list[Row | None]


class _Refused(Exception):
    """Entries of these places were refused; nothing of the batch was written."""

    def __init__(self, places: list[int]) -> None:
        self.places = places


class Writer:
    """The one connection this process writes through; one caller at a time, the committer sees to that."""

    def __init__(self, connector: Connector, open_: Callable[[], Connection]) -> None:
        self._connector, self._open = connector, open_
        self._queries, self._statements = Queries(_HERE / "queries"), Queries(_HERE / "statements")
        self._connection: Connection | None = None
        self._committer = uuid.uuid4().hex
        self._number = 0

    def commit(self, writes: Sequence[Write]) -> Answers:
        """Commit a prefix of `writes`; answers in the order they were given."""
        taken = batch.prefix(writes)
        order = batch.arrange(taken)
        try:
            answers = self._commit_once([taken[place] for place in order])
        except _Refused as refused:
            # What an attempt wrote after an entry that is refused must not be in: once more, without it.
            first = min(order[place] for place in refused.places)
            before = self.commit(taken[:first]) if first else []
            return [*before, None] if len(before) == first else before
        given: Answers = [None] * len(order)
        for place, answer in zip(order, answers, strict=True):
            given[place] = answer
        return given

    def _commit_once(self, writes: Sequence[Write]) -> Answers:
        patience = Patience(self._connector)
        if batch.is_only_entries(writes) and self._commit_entries(writes, patience):
            return [(write.params["position"],) for write in writes]
        self._number += 1
        while True:
            try:
                answers = self._send(writes)
            except Lost as lost:
                patience.wait(lost)
                continue
            if refused := [place for place, write in enumerate(writes) if write.ordered and answers[place] is None]:
                assert self._connection is not None
                self._roll_back(self._connection)
                raise _Refused(refused)
            try:
                self._end_transaction()
                return answers
            except Lost as lost:
                if self._is_in(lost, patience):
                    return answers

    # ── in one phase ────────────────────────────────────────────────────────────────────────────

    def _commit_entries(self, writes: Sequence[Write], patience: Patience) -> bool:
        """Commit them all; False, with nothing written, when that cannot be."""
        self._number += 1
        while True:
            try:
                return self._send_entries(writes)
            except Lost as lost:
                if self._is_in(lost, patience):
                    return True

    def _send_entries(self, writes: Sequence[Write]) -> bool:
        connection = self._connection = self._connection or self._open()
        crash.place("postgres.before_commit")
        with self._sending(connection):
            try:
                with _quiet_pipeline(connection):
                    self._begin(connection)
                    self._lock(connection, batch.locks(writes))
                    connection.execute(self._statement("append_all"), _columns(writes))
                    ending = connection.execute("COMMIT", prepare=False)
            except psycopg.errors.DivisionByZero:
                self._roll_back(connection)
                return False
        return ending.statusmessage == "COMMIT"

    # ── the first phase ─────────────────────────────────────────────────────────────────────────

    def _send(self, writes: Sequence[Write]) -> Answers:
        """Open a transaction with all of the writes in it, and read what they answered."""
        connection = self._connection = self._connection or self._open()
        reading: list[Callable[[], Answers]] = []
        with self._sending(connection):
            with _quiet_pipeline(connection):
                self._begin(connection)
                self._lock(connection, batch.locks(writes))
                reading += [self._run(connection, run) for run in batch.runs(writes)]
            return [answer for read in reading for answer in read()]

    @contextlib.contextmanager
    def _sending(self, connection: Connection) -> Iterator[None]:
        """What goes wrong in it leaves no transaction open, and is told in our words."""
        began = time.monotonic()
        try:
            yield
        except Exception as error:
            explained = self._connector.explain(error, connection)
            if isinstance(explained, StoreBusy) and time.monotonic() - began < _soonest():
                explained = Again(str(error))
            if isinstance(explained, Lost):
                self._drop()
            else:
                self._roll_back(connection)
            raise explained from error
        except BaseException:
            self._drop()
            raise

    def _begin(self, connection: Connection) -> None:
        connection.execute(_BEGIN)
        which = {"committer": self._committer, "batch": self._number}
        connection.execute(self._statement("begin_batch"), {**which, **_SETTINGS})

    def _lock(self, connection: Connection, locks: batch.Locks) -> None:
        if not locks.are_needed:
            return
        lock_leases = "lock_leases" if locks.changes_leases else "share_leases"
        lock_workers = "lock_workers" if locks.changes_workers else "share_workers"
        for name, ids in (("lock_tasks", locks.tasks), (lock_leases, locks.leases), (lock_workers, locks.workers)):
            if ids:
                connection.execute(self._statement(name), {"ids": arrays.texts(ids)})

    def _run(self, connection: Connection, run: Sequence[Write]) -> Callable[[], Answers]:
        """Send neighbours of one verb; what is given back reads their answers once the pipeline has ended."""
        if batch.is_appended_at_once(run):
            return self._append(connection, run)
        if batch.is_done_at_once(run):
            return self._do_at_once(connection, run)
        statement = self._queries[run[0].verb][0].encode()
        if len(run) < _MANY:
            cursors = [connection.execute(statement, write.params) for write in run]
            return lambda: [cursor.fetchone() for cursor in cursors]
        cursor = connection.cursor()
        cursor.executemany(statement, [write.params for write in run], returning=True)
        return lambda: _one_of_each(cursor)

    def _append(self, connection: Connection, run: Sequence[Write]) -> Callable[[], Answers]:
        cursor = connection.execute(self._statement("append_entries"), _columns(run))

        def read() -> Answers:
            done = set(cursor.fetchall())
            places = ((given["uid"], given["line"], given["position"]) for given in (write.params for write in run))
            return [(place[2],) if place in done else None for place in places]

        return read

    def _do_at_once(self, connection: Connection, run: Sequence[Write]) -> Callable[[], Answers]:
        rows = msgspec.json.encode([write.params for write in run]).decode()
        cursor = connection.execute(self._statement(batch.SETS[run[0].verb]), {"rows": rows})

        def read() -> Answers:
            done = {uid for (uid,) in cursor.fetchall()}
            return [(uid,) if (uid := write.params["uid"]) in done else None for write in run]

        return read

    def _statement(self, name: str) -> bytes:
        return self._statements[name][0].encode()

    def _roll_back(self, connection: Connection) -> None:
        """Leave no transaction open; a connection that cannot even do that is dropped."""
        try:
            connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self._drop()

    # ── the second phase ────────────────────────────────────────────────────────────────────────

    def _end_transaction(self) -> None:
        """COMMIT.

        Raises:
            Lost: it was sent, and nobody said what became of it.
        """
        connection = self._connection
        assert connection is not None
        crash.place("postgres.before_commit")
        try:
            # By name: a test, or an administrator, can see it go by.
            answer = connection.execute("COMMIT", prepare=False).statusmessage
        except Exception as error:
            explained = self._connector.explain(error, connection)
            self._drop()
            raise explained from error
        except BaseException:
            self._drop()
            raise
        if answer != "COMMIT":
            raise StoreUnavailable(
                f"{self._connector.place} answered COMMIT with {answer}",
                kept="all that was acknowledged; nothing of this batch was written",
                do="this is a fault in perdure; please report it",
            )

    def _is_in(self, lost: Lost, patience: Patience) -> bool:
        """Whether the batch whose COMMIT was cut off is in; waits until its old transaction has ended."""
        while True:
            patience.wait(lost, kept=_NOT_KNOWN)
            try:
                return self._newest_batch() == self._number
            except Lost as again:
                lost = again

    def _newest_batch(self) -> int:
        connection = self._connection = self._connection or self._open()
        try:
            asked = {"committer": self._committer, **_SETTINGS}
            with connection.transaction():
                row = connection.execute(self._statement("newest_batch"), asked).fetchone()
            assert row is not None
            return int(row[0])
        except Exception as error:
            # Whatever it is, even a lock that is not let go: as long as it is not known, we go on asking.
            self._drop()
            raise Lost(error) from error
        except BaseException:
            self._drop()
            raise

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.execute("DELETE FROM perdure.committers WHERE id = %s", (self._committer,))
        self._drop()

    def mark_forked(self) -> None:
        fork.leave_alone(self._connection)
        self._connection = None


def _soonest() -> float:
    """Seconds before which nobody can have waited too long. A server that says so counts on the wall, and its clock was
    set forward: the batch is sent again."""
    return 0.8 * min(int(_SETTINGS["lock_ms"]), int(_SETTINGS["statement_ms"])) / 1000


def _columns(run: Sequence[Write]) -> dict[str, arrays.Column]:
    """Entries as append_entries takes them: column by column."""
    params = [write.params for write in run]
    return {
        "uid": arrays.texts([given["uid"] for given in params]),
        "line": arrays.wholes([given["line"] for given in params]),
        "position": arrays.wholes([given["position"] for given in params]),
        "entry": arrays.payloads([given["entry"] for given in params]),
        "epoch": arrays.wholes([given["epoch"] for given in params]),
        "worker": arrays.texts([given["worker"] for given in params]),
    }


@contextlib.contextmanager
def _quiet_pipeline(connection: Connection) -> Iterator[None]:
    """A pipeline that raises its first error, and does not log those that follow from it."""
    first: Exception | None = None
    try:
        with connection.pipeline():
            try:
                yield
            except Exception as error:
                first = error
    except psycopg.Error as error:
        first = first or error
    if first is not None:
        raise first


def _one_of_each(cursor: psycopg.Cursor[Any]) -> Answers:
    """The first row of each of executemany's results."""
    answers: Answers = []
    while True:
        answers.append(cursor.fetchone())
        if not cursor.nextset():
            return answers
