"""Note the number of a transaction before its COMMIT is sent, so that its outcome can be asked for later.

Before a batch that may end a transaction, and only if nothing else is under way, the server is asked for the number of
that transaction. The session does not see that answer. A client can ask for the number earlier, to note it in a place
of its own. Then the batch is noted in the session's trace with the number, and sent. A batch that is sent behind
another one, without waiting for it, is noted without a number: if its answer is lost, its outcome is uncertain.
"""

from __future__ import annotations

from perdure.keeper.pgproxy.login import server_queries as questions
from perdure.keeper.pgproxy.protocol import transaction_ends as endings
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.recovery.trace import HAS_COMMITTED, LONGEST_STATEMENT, UNDER_WAY, Left, Server, Trace
from perdure.keeper.pgproxy.session import Session

_ROW, _ERROR, _READY = b"DEZ"
ONLY_NUMBER = "-"  # what is asked when no statement waits for the number
_HEARD_HERE = frozenset(b"1DCE23sZ")


class CommitWitness:
    def __init__(self, trace: Trace, server: Server) -> None:
        self._trace, self.server = trace, server
        self.rests = 0
        self.is_asking = False
        self.failure: dict[str, str] = {}  # of the question, and with it of the transaction
        self.number: str | None = None  # of the transaction, once it was asked for
        self._noted = 0
        self._changes = -1
        self._before = b"I"
        self._frames = wire.Frames()

    def must_ask(self, session: Session, *, is_idle: bool) -> bool:
        """True if the number of the transaction is needed before the waiting batch is sent."""
        may_commit = session.ending in (endings.COMMIT, endings.MIXED) and session.status == b"T"
        return may_commit and is_idle and self._can_ask(session)

    def may_ask(self, session: Session) -> bool:
        """True if the number of the open transaction can be asked for separately."""
        return session.status == b"T" and session.is_quiet and not session.to_server and self._can_ask(session)

    def _can_ask(self, session: Session) -> bool:
        return self.server.tells and session.is_between and self.number is None

    def question(self) -> bytes:
        self.is_asking, self.failure, self._frames = True, {}, wire.Frames()
        return questions.messages("transaction")

    def hear(self, data: bytes) -> bytes:
        """Take our answer out of the server's messages; the rest belongs to the session."""
        others = bytearray()
        for kind, message in self._frames.feed(data):
            if not self.is_asking or kind not in _HEARD_HERE or _is_fatal(kind, message):
                others += message
            elif kind == _ROW:
                self.number = questions.row_of(message[5:])[0] or ""
            elif kind == _ERROR:
                self.failure = wire.fields(message[5:])
            elif kind == _READY:
                self.is_asking = False
                if message[5:6] != b"E":
                    self.failure = {}
        if not self.is_asking:
            others += self._frames.rest()
        return bytes(others)

    def note(self, session: Session, *, is_idle: bool) -> None:
        """Write down what is about to be sent."""
        if is_idle:
            self._before = session.status
        elif self._noted == session.batches:
            return
        self._noted, self._changes = session.batches, session.changes
        self._trace.note(self._left(session, UNDER_WAY))

    def rest(self, session: Session) -> None:
        """All that was sent has been answered."""
        self.rests += 1
        self.number, self._noted = None, 0
        session.rested()
        if self._changes != session.changes:
            self._changes = session.changes
            self._trace.note(self._left(session, _at_rest(session)))
        else:
            self._trace.rest(_at_rest(session))

    def begin(self, session: Session) -> None:
        """The session is this one from now on."""
        self._trace.note(self._left(session, _at_rest(session)))

    def put_back(self, path: str) -> None:
        """The session's folder was removed, and is there again, empty."""
        self._trace = self._trace.moved_to(path)

    def forget(self) -> None:
        """It was ended on purpose."""
        self._trace.clear()

    def _left(self, session: Session, state: bytes) -> Left:
        return Left(
            state.decode(),
            self.server,
            self._before.decode(),
            session.asked_last[:LONGEST_STATEMENT],
            session.ending,
            self.number is not None,
            self.number or "",
            session.batches,
            self.rests,
            session.blocks.facts(),
        )


def _at_rest(session: Session) -> bytes:
    return HAS_COMMITTED if session.status == b"I" and session.has_committed else session.status


def _is_fatal(kind: int, message: bytes) -> bool:
    return kind == _ERROR and wire.fields(message[5:]).get("V") in ("FATAL", "PANIC")
