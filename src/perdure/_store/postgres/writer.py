"""Write batches, each exactly once, whatever happens to the connection.

A batch is sent in two phases. The first sends everything but the COMMIT in one go and reads all answers;
the second is the COMMIT alone. A connection lost in the first phase has committed nothing, and the batch
is sent again. Lost in the second, the batch may be in or not: its number, written in the same
transaction, tells, and then it is acknowledged with the answers already read, or sent again.

Two kinds of batches are sent in one phase, COMMIT and all, because somebody waits for them again and again. One is a
batch of nothing but entries: if one of them is refused, the statement fails, nothing is committed, and the batch is
sent in two phases. The other is a batch of one write: it notes its answer beside the batch's number.

What was sent in one phase may still be on its way to the server when we have a new connection. So whoever asks what
became of a batch also shuts it out: no batch is begun under our name of then any more, and we take another one.

A signal's handler may raise where we wait for the server. The batch that was under way is remembered, and looked for
when it is given to us again.

Owns the writing connection. Which writes form a batch, and which rows it locks, is in batch.py; the statements for
them are in batch_plan.py.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import psycopg
from psycopg.pq.abc import PGresult

from perdure._ground import crash_points as crash
from perdure._store.contract import Again
from perdure._store.postgres import batch, fork
from perdure._store.postgres import batch_plan as plan
from perdure._store.postgres.batch_plan import Answers
from perdure._store.postgres.connector import Connection, Connector, Lost, Patience
from perdure._store.postgres.wire import Asked, Wire
from perdure._store.rows import Row
from perdure._store.write import Write
from perdure.errors import PerdureError, StoreBusy, StoreUnavailable

_NOT_KNOWN = "all that was acknowledged; of this batch it is not known, so read before trying again"


class _Refused(Exception):
    """Entries of these places were refused; nothing of the batch was written."""

    def __init__(self, places: list[int]) -> None:
        self.places = places


class _NotAll(Exception):
    """Some entry was refused; nothing of the batch was written."""


class _Sent(NamedTuple):
    """A batch whose COMMIT may have reached the server, and how to read its noted answer."""

    writes: Sequence[Write]
    read: Callable[[str | None], Answers]


class Writer:
    """The one connection this process writes through; one caller at a time, the committer sees to that."""

    def __init__(self, connector: Connector, open_: Callable[[], Connection]) -> None:
        self._connector, self._open = connector, open_
        self._wire: Wire | None = None
        self._committer = uuid.uuid4().hex
        self._number = 0
        self._sent: _Sent | None = None  # until it is known what became of it
        self._found: dict[int, tuple[Write, Row | None]] = {}  # by id(): committed, but not reported yet

    def commit(self, writes: Sequence[Write]) -> Answers:
        """Commit a prefix of `writes`; answers in the order they were given."""
        if self._sent is not None:
            self._look_for(self._sent)
        if found := self._take_found(writes):
            return found
        if batch.is_only_entries(writes):  # as many as a batch ever has, in any order: each is told where it goes
            sent = _Sent(writes, lambda _: plan.positions(writes))
            with contextlib.suppress(_NotAll):
                return self._until_in(sent, self._send_entries, Patience(self._connector))
        taken = batch.prefix(writes)
        order = batch.arrange(taken)
        try:
            answers = self._commit_once(list(map(taken.__getitem__, order)))
        except _Refused as refused:
            # What an attempt wrote after an entry that is refused must not be in: once more, without it.
            first = min(order[place] for place in refused.places)
            before = self.commit(taken[:first]) if first else []
            return [*before, None] if len(before) == first else before
        given = dict(zip(order, answers, strict=True))
        return list(map(given.__getitem__, range(len(order))))

    def _commit_once(self, writes: Sequence[Write]) -> Answers:
        patience = Patience(self._connector)
        if len(writes) == 1 and plan.is_noted(writes[0]):
            sent = _Sent(writes, lambda note: [plan.noted_answer(note)])
            return self._until_in(sent, self._send_alone, patience)
        return self._commit_in_two_phases(writes, patience)

    def _commit_in_two_phases(self, writes: Sequence[Write], patience: Patience) -> Answers:
        while True:
            self._number += 1
            try:
                answers = self._send(writes)
            except Lost as lost:
                patience.wait(lost)
                continue
            refused = [] if all(answers) else [n for n, write in enumerate(writes) if write.ordered and not answers[n]]
            if refused:
                self._roll_back(self._connected())
                raise _Refused(refused)
            if self._is_in(_Sent(writes, _just(answers)), self._end_transaction, patience) is not None:
                return answers

    # ── in one phase ────────────────────────────────────────────────────────────────────────────

    def _until_in(self, sent: _Sent, send: Callable[[_Sent], Answers], patience: Patience) -> Answers:
        while True:
            self._number += 1
            if (answers := self._is_in(sent, send, patience)) is not None:
                return answers

    def _send_alone(self, sent: _Sent) -> Answers:
        wire = self._connected()
        crash.place("postgres.before_commit")
        with self._sending(wire):
            asked = plan.alone(sent.writes[0], self._committer)
            *_, result, ending = wire.run([*self._opening(sent.writes), asked, plan.COMMIT])
            self._check_ending(ending, wire)
            return [plan.answer_in(wire.rows(result))]

    def _send_entries(self, sent: _Sent) -> Answers:
        wire = self._connected()
        crash.place("postgres.before_commit")
        with self._sending(wire):
            try:
                opening = plan.opening(self._which(), batch.locks_of_entries(sent.writes))
                *_, ending = wire.run([*opening, *plan.all_entries(sent.writes), plan.COMMIT])
            except plan.REFUSALS:
                self._roll_back(wire)
                raise _NotAll from None
            self._check_ending(ending, wire)
        return sent.read(None)

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
        return plan.opening(self._which(), batch.locks(writes))

    def _which(self) -> dict[str, str | int]:
        return {"committer": self._committer, "batch": self._number}

    def _connected(self) -> Wire:
        if self._wire is None:
            self._wire = Wire(self._open())
        return self._wire

    @contextlib.contextmanager
    def _sending(self, wire: Wire) -> Iterator[None]:
        """An error inside leaves no transaction open, and is raised as one of ours."""
        began = time.monotonic()
        try:
            yield
        except _NotAll:
            raise
        except psycopg.Error as error:
            explained = self._connector.explain(error, wire.connection)
            if isinstance(explained, StoreBusy) and time.monotonic() - began < _soonest():
                explained = Again(str(error))
            if isinstance(explained, Lost):
                self.hang_up()
            else:
                self._roll_back(wire)
            raise explained from error
        except BaseException:
            self.hang_up()
            raise

    def _roll_back(self, wire: Wire) -> None:
        """Leave no transaction open; a connection that cannot even do that is dropped."""
        try:
            wire.connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self.hang_up()

    # ── the second phase ────────────────────────────────────────────────────────────────────────

    def _end_transaction(self, sent: _Sent) -> Answers:
        """COMMIT.

        Raises:
            Lost: it was sent, and nobody said what became of it.
        """
        wire = self._wire
        assert wire is not None
        crash.place("postgres.before_commit")
        try:
            [ending] = wire.run([plan.COMMIT])
        except psycopg.Error as error:
            explained = self._connector.explain(error, wire.connection)
            self.hang_up()
            raise explained from error
        except BaseException:
            self.hang_up()
            raise
        self._check_ending(ending, wire)
        return sent.read(None)

    def _check_ending(self, ending: PGresult, wire: Wire) -> None:
        if ending.command_status != b"COMMIT":
            raise StoreUnavailable(
                f"{self._connector.place} answered COMMIT with {ending.command_status!r}",
                kept="all that was acknowledged; nothing of this batch was written",
                do="this is a fault in perdure; please report it",
            )
        self._check_replicated(wire)

    def _check_replicated(self, wire: Wire) -> None:
        """Call no batch written that its server committed without its standby: a promoted standby would lack it.

        Raises:
            Lost: the server gave up waiting. The next commit that it does wait for proves the ones before it too.
        """
        if not wire.connection.is_replicated:
            self.hang_up()
            raise Lost(psycopg.OperationalError("the server did not wait for its standby"))

    # ── after a COMMIT that was cut off ─────────────────────────────────────────────────────────

    def _is_in(self, sent: _Sent, send: Callable[[_Sent], Answers], patience: Patience) -> Answers | None:
        """Send it with its COMMIT. Returns its answer; None if it was not committed, and can be sent again.

        Raises:
            PerdureError, Again, _NotAll: nothing of it was written.
            StoreUnreachable: it is not known.
        """
        self._sent = sent
        try:
            answers: Answers | None = send(sent)
        except (PerdureError, Again, _NotAll):
            self._sent = None
            raise
        except Exception as error:  # of a handler too, that was called while we waited
            answers = self._ask_about(sent, error, patience)
            if answers is None and not isinstance(error, Lost):
                raise
        self._sent = None
        return answers

    def _ask_about(self, sent: _Sent, error: Exception, patience: Patience) -> Answers | None:
        """The answer of the batch sent last, if it was committed; if not, it never will be."""
        newest, note = self._newest_batch(error if isinstance(error, Lost) else Lost(error), patience)
        self._committer, self._sent = uuid.uuid4().hex, None
        return sent.read(note) if newest == self._number else None

    def _newest_batch(self, lost: Lost, patience: Patience) -> tuple[int, str | None]:
        while True:
            patience.wait(lost, kept=_NOT_KNOWN)
            try:
                return self._shut_out()
            except Lost as again:
                lost = again

    def _shut_out(self) -> tuple[int, str | None]:
        """The last committed batch, with its noted answer. Waits until the transaction that was cut off has ended, and
        lets no other begin under our name."""
        try:
            wire = self._connected()
            asked = {"committer": self._committer, **plan.SETTINGS}
            with wire.connection.transaction():
                [result] = wire.run([(plan.statement("newest_batch"), asked)])
            self._check_replicated(wire)
            [(newest, note)] = wire.rows(result)
            return newest, note
        except Exception as error:
            # Whatever the error, even a lock that is not released: we ask until we know.
            self.hang_up()
            raise Lost(error) from error
        except BaseException:
            self.hang_up()
            raise

    def _look_for(self, sent: _Sent) -> None:
        """A batch was interrupted, or given up: before another is sent, it is in or never will be."""
        error = Lost(psycopg.OperationalError("the batch before was interrupted"))
        answers = self._ask_about(sent, error, Patience(self._connector))
        self._found = {id(write): (write, row) for write, row in zip(sent.writes, answers or (), strict=False)}

    def _take_found(self, writes: Sequence[Write]) -> Answers:
        """The answers of those that come first and are in already; they are given to us again."""
        if not self._found:
            return []
        again = list(itertools.takewhile(lambda write: id(write) in self._found, writes))
        answers = [self._found.pop(id(write))[1] for write in again]
        if not answers:
            self._found = {}
        return answers

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def hang_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.connection.close()

    def close(self) -> None:
        if self._wire is not None:
            with contextlib.suppress(psycopg.Error):
                self._wire.connection.execute("DELETE FROM perdure.committers WHERE id = %s", (self._committer,))
        self.hang_up()

    def mark_forked(self) -> None:
        if self._wire is not None:
            fork.leave_alone(self._wire.connection)
        self._wire = None


def _just(answers: Answers) -> Callable[[str | None], Answers]:
    """Answers that were read already, whatever was noted."""
    return lambda _: answers


def _soonest() -> float:
    """Seconds before which nobody can have waited too long. A server that says so counts on the wall, and its clock was
    set forward: the batch is sent again."""
    return 0.8 * min(int(plan.SETTINGS["lock_ms"]), int(plan.SETTINGS["statement_ms"])) / 1000
