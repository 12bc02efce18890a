"""Write batches, each exactly once, whatever happens to the connection.

A batch is sent in two phases. The first sends everything but the COMMIT in one go and reads all answers;
the second is the COMMIT alone. A connection lost in the first phase has committed nothing, and the batch
is sent again. Lost in the second, the batch may be in or not: its number, written in the same
transaction, tells, and then it is acknowledged with the answers already read, or sent again.

Two kinds of batches are sent in one phase, COMMIT and all, because somebody waits for them again and again. One is a
batch of nothing but entries: if one of them is refused, the statement fails, nothing is committed, and the batch is
sent in two phases. The other is a batch of one write: it notes its answer beside the batch's number.

Owns the writing connection. Which writes form a batch, and which rows it locks, is in batch.py; the statements for
them are in plan.py.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import psycopg
from psycopg.pq.abc import PGresult

from perdure._ground import crash
from perdure._store.contract import Again, Row
from perdure._store.postgres import batch, fork, plan
from perdure._store.postgres.connector import Connection, Connector, Lost, Patience
from perdure._store.postgres.plan import Answers
from perdure._store.postgres.wire import Asked, Wire
from perdure._store.write import Write
from perdure.errors import StoreBusy, StoreUnavailable

_NOT_KNOWN = "all that was acknowledged; of this batch it is not known, so read before trying again"


class _Refused(Exception):
    """Entries of these places were refused; nothing of the batch was written."""

    def __init__(self, places: list[int]) -> None:
        self.places = places


class Writer:
    """The one connection this process writes through; one caller at a time, the committer sees to that."""

    def __init__(self, connector: Connector, open_: Callable[[], Connection]) -> None:
        self._connector, self._open = connector, open_
        self._wire: Wire | None = None
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
        if len(writes) == 1 and (asked := plan.alone(writes[0], self._committer)) is not None:
            return [self._commit_alone(writes[0], asked, patience)]
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
                self._roll_back(self._connected())
                raise _Refused(refused)
            try:
                self._end_transaction()
                return answers
            except Lost as lost:
                newest, _ = self._newest_batch(lost, patience)
                if newest == self._number:
                    return answers

    # ── in one phase ────────────────────────────────────────────────────────────────────────────

    def _commit_alone(self, write: Write, asked: Asked, patience: Patience) -> Row | None:
        self._number += 1
        while True:
            try:
                return self._send_alone(write, asked)
            except Lost as lost:
                newest, answer = self._newest_batch(lost, patience)
                if newest == self._number:
                    return plan.noted_answer(answer)

    def _send_alone(self, write: Write, asked: Asked) -> Row | None:
        wire = self._connected()
        crash.place("postgres.before_commit")
        with self._sending(wire):
            *_, result, ending = wire.run([*self._opening([write]), asked, plan.COMMIT])
            self._check_ending(ending)
            return plan.answer_in(wire.rows(result))

    def _commit_entries(self, writes: Sequence[Write], patience: Patience) -> bool:
        """Commit them all; False, with nothing written, when that cannot be."""
        self._number += 1
        while True:
            try:
                return self._send_entries(writes)
            except Lost as lost:
                newest, _ = self._newest_batch(lost, patience)
                if newest == self._number:
                    return True

    def _send_entries(self, writes: Sequence[Write]) -> bool:
        wire = self._connected()
        crash.place("postgres.before_commit")
        with self._sending(wire):
            try:
                results = wire.run([*self._opening(writes), plan.all_entries(writes), plan.COMMIT])
            except psycopg.errors.DivisionByZero:
                self._roll_back(wire)
                return False
        return results[-1].command_status == b"COMMIT"

    # ── the first phase ─────────────────────────────────────────────────────────────────────────

    def _send(self, writes: Sequence[Write]) -> Answers:
        """Open a transaction with all of the writes in it, and read what they answered."""
        wire = self._connected()
        with self._sending(wire):
            opening, parts = self._opening(writes), plan.parts(writes)
            results = iter(wire.run([*opening, *(asked for part in parts for asked in part.asked)]))
            deque(itertools.islice(results, len(opening)), maxlen=0)
            return [
                answer
                for part in parts
                for answer in part.read([wire.rows(result) for result in itertools.islice(results, len(part.asked))])
            ]

    def _opening(self, writes: Sequence[Write]) -> list[Asked]:
        return plan.opening({"committer": self._committer, "batch": self._number}, batch.locks(writes))

    def _connected(self) -> Wire:
        if self._wire is None:
            self._wire = Wire(self._open())
        return self._wire

    @contextlib.contextmanager
    def _sending(self, wire: Wire) -> Iterator[None]:
        """What goes wrong in it leaves no transaction open, and is told in our words."""
        began = time.monotonic()
        try:
            yield
        except Exception as error:
            explained = self._connector.explain(error, wire.connection)
            if isinstance(explained, StoreBusy) and time.monotonic() - began < _soonest():
                explained = Again(str(error))
            if isinstance(explained, Lost):
                self._drop()
            else:
                self._roll_back(wire)
            raise explained from error
        except BaseException:
            self._drop()
            raise

    def _roll_back(self, wire: Wire) -> None:
        """Leave no transaction open; a connection that cannot even do that is dropped."""
        try:
            wire.connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self._drop()

    # ── the second phase ────────────────────────────────────────────────────────────────────────

    def _end_transaction(self) -> None:
        """COMMIT.

        Raises:
            Lost: it was sent, and nobody said what became of it.
        """
        wire = self._wire
        assert wire is not None
        crash.place("postgres.before_commit")
        try:
            [ending] = wire.run([plan.COMMIT])
        except Exception as error:
            explained = self._connector.explain(error, wire.connection)
            self._drop()
            raise explained from error
        except BaseException:
            self._drop()
            raise
        self._check_ending(ending)

    def _check_ending(self, ending: PGresult) -> None:
        if ending.command_status != b"COMMIT":
            raise StoreUnavailable(
                f"{self._connector.place} answered COMMIT with {ending.command_status!r}",
                kept="all that was acknowledged; nothing of this batch was written",
                do="this is a fault in perdure; please report it",
            )

    # ── after a COMMIT that was cut off ─────────────────────────────────────────────────────────

    def _newest_batch(self, lost: Lost, patience: Patience) -> tuple[int, str | None]:
        """The last batch that is in, with its noted answer; waits until the transaction that was cut off has ended."""
        while True:
            patience.wait(lost, kept=_NOT_KNOWN)
            try:
                return self._ask_newest()
            except Lost as again:
                lost = again

    def _ask_newest(self) -> tuple[int, str | None]:
        wire = self._connected()
        try:
            asked = {"committer": self._committer, **plan.SETTINGS}
            with wire.connection.transaction():
                [result] = wire.run([(plan.statement("newest_batch"), asked)])
            [(newest, answer)] = wire.rows(result)
            return newest, answer
        except Exception as error:
            # Whatever it is, even a lock that is not let go: as long as it is not known, we go on asking.
            self._drop()
            raise Lost(error) from error
        except BaseException:
            self._drop()
            raise

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.connection.close()

    def close(self) -> None:
        if self._wire is not None:
            with contextlib.suppress(psycopg.Error):
                self._wire.connection.execute("DELETE FROM perdure.committers WHERE id = %s", (self._committer,))
        self._drop()

    def mark_forked(self) -> None:
        if self._wire is not None:
            fork.leave_alone(self._wire.connection)
        self._wire = None


def _soonest() -> float:
    """Seconds before which nobody can have waited too long. A server that says so counts on the wall, and its clock was
    set forward: the batch is sent again."""
    return 0.8 * min(int(plan.SETTINGS["lock_ms"]), int(plan.SETTINGS["statement_ms"])) / 1000
