"""The protocol of a kept session: the messages it passes on, those it keeps, and its reaction to a client's death.
Pure: bytes in, bytes out.

The rules; breaking any of them would lose data:

- A client's messages go upstream in whole batches, up to a Query, Sync or Flush. Half a batch of a dead client is
  dropped and never ran.
- A statement that was sent runs to its end, client or not. Its outcome is kept; its rows are dropped.
- A batch that ended in a Flush may still hold an implicit transaction, which a Sync would commit. It is made to fail.
- A COPY from a dead client is ended with CopyFail. Its names for statements and portals are closed.
- A client sees nothing of what was asked before it came, and the transaction's true status from its first moment.
- A statement that comes with its call (calls.py) is done once: asked for again, it is answered from the ledger.

`Session` is told of events (`client_said`, `server_said`, `attach`, `detach`) and fills `to_server` and `to_client`.
process.py reads these, and knows which bytes are on their way.
"""

from __future__ import annotations

from collections import deque

from perdure.keeper.pgproxy.protocol import TRANSACTION, Guard, Names, Outcome, calls, resync, wire
from perdure.keeper.pgproxy.protocol import transaction_ends as endings
from perdure.keeper.pgproxy.session.blocks import Blocks
from perdure.keeper.pgproxy.session.cycle import ENDING, OURS, Cycle
from perdure.keeper.session import ROLLED_BACK, UNCERTAIN, Ledger

_MOST_NOTIFICATIONS = 1000
_MOST_MISSED = 50
_LONGEST_TEXT = 2000

_GOODBYE, _QUERY, _SYNC, _FLUSH, _PARSE, _BIND, _CLOSE = b"XQSHPBC"
_READY, _COMPLETE, _ERROR, _STATUS, _NOTIFY, _COPY_IN = b"ZCESAG"
_AT_BOUNDARY = frozenset(b"QSHF")
_COPY_KINDS = frozenset(b"dcf")
_IN_COPY = frozenset(b"dcfHSX")
_ALONE = frozenset(b"QF")
_OF_BATCH = frozenset(b"PBDEC")
_LOOKED_AT = frozenset(b"CESAG")
# Server messages that are only passed on, in any size: rows, COPY data, descriptions.
_PASSED_ON = frozenset(b"DdTtn123VcHIs")


class Session:
    """One server session, whichever client it has."""

    def __init__(self, status: bytes = b"I", parameters: dict[str, str] | None = None) -> None:
        self.status = status  # I, T or E, as last said by the server
        self.parameters = parameters if parameters is not None else {}
        self.client = 0  # its number; none is 0
        self.is_guarded = False
        self.to_server = bytearray()
        self.to_client = bytearray()
        self.changes = 0  # counts up with each change of names, parameters, blocks or missed outcomes
        self.unsynced = False  # something was sent that no Sync has followed
        self.copying = False  # the server waits for COPY data
        self.names = Names()
        self.blocks = Blocks()
        self.ledger = Ledger()
        self.outcome: Outcome | None = None  # of the last statement that has ended
        self.missed: deque[Outcome] = deque(maxlen=_MOST_MISSED)  # ended while no client was there
        self.has_committed = False  # its last transaction of more than one statement was committed
        self.ending = endings.NONE  # the possible effect on the transaction of everything asked since the last rest
        self.batches = 0  # since then
        self.dropped = 0  # messages of a batch that was never sent
        self.gone: str | None = None  # why there is no server any more
        self.discarded = 0  # bytes of results that arrived without a client
        self.notifications: deque[bytes] = deque(maxlen=_MOST_NOTIFICATIONS)
        self._numbers = 0
        self._cycles: deque[Cycle] = deque()  # one for each ReadyForQuery that is due
        self._ended_by = ""  # why the session itself ended a transaction
        self._loose: Outcome | None = None  # of what was sent without a Sync
        self._frames = wire.Frames()
        self._batch = bytearray()
        self._batch_outcome = Outcome()
        self._inherits = False  # the transaction was begun before this client came
        self._refusing = False  # a batch of the client is being left out, up to its Sync
        self._guard = Guard()
        self._asked_by: calls.Asked | None = None  # the call that the next statement belongs to
        self._is_in_batch = False  # the client has begun a batch and not sent its Sync
        self._rest = b""
        self._in_row = 0  # bytes of a passed-on message that are still to arrive

    # ── clients ─────────────────────────────────────────────────────────────────────────────────

    @property
    def is_quiet(self) -> bool:
        """True if nothing is under way: the next client may enter."""
        return not self._cycles and not self.unsynced

    def attach(self, *, guarded: bool = False) -> int:
        """Let a client in; its number. The caller has waited until all is quiet."""
        self._numbers += 1
        self.client, self.is_guarded = self._numbers, guarded
        self._inherits = self.status != b"I"
        self._frames, self._batch, self._refusing = wire.Frames(), bytearray(), False
        self._guard, self._is_in_batch = Guard(), False
        self._batch_outcome, self._asked_by = Outcome(), None
        return self.client

    def detach(self) -> None:
        """The client is gone, by its own will or not; the statements it sent run to their end."""
        if not self.client:
            return
        self.dropped = bool(self._batch) or not self._frames.is_between
        self._batch = bytearray()
        self.client = 0
        self.to_client.clear()
        if self.gone is None:
            self._end_what_it_began()

    def _end_what_it_began(self) -> None:
        front = self._cycles[0] if self._cycles else None
        if self.copying:
            self.to_server += wire.copy_fail("the client died during COPY")
            if front is not None and front.kind == "copy":
                front.kind = "sync"
                self.to_server += wire.SYNC  # the one before was lost in the COPY
        if self.unsynced:
            if self.status == b"I":
                self.to_server += wire.message(b"P", b"\0" + resync.POISON.encode() + b"\0\0\0")
            self.to_server += wire.SYNC
            self._cycles.append(Cycle(ENDING, "sync", self._loose or Outcome()))
            self.unsynced, self._loose = False, None
        self.end_names()

    def end_names(self) -> None:
        """Close the statements and portals of a client that is gone: the next one will use the same names."""
        if self.names:
            self.to_server += self.names.close_all()
            self.changes += 1
            self.ask(wire.SYNC)

    def ask(self, messages: bytes) -> Outcome:
        """A batch of the session's own, whose answer no client sees; returns its result."""
        self.to_server += messages
        self._cycles.append(Cycle(OURS, "query" if messages[:1] == b"Q" else "sync", Outcome()))
        return self._cycles[-1].outcome

    def commit(self) -> Outcome:
        """Like `ask`, for the session's owner."""
        self.ending, self.batches = endings.COMMIT, 1
        outcome = self.ask(wire.query("COMMIT"))
        outcome.statement = "COMMIT"
        return outcome

    @property
    def asked_last(self) -> str:
        """The statement that was asked for last and is not answered yet."""
        return self._cycles[-1].outcome.statement if self._cycles else ""

    @property
    def is_between(self) -> bool:
        """True if no message of the server is incomplete."""
        return not self._rest and not self._in_row

    def rested(self) -> None:
        """All that was asked has been answered."""
        self.batches = 0
        if self.status == b"I" or not self.names.portals:  # a portal may still end it
            self.ending = endings.NONE

    def fail_waiting(self, fields: dict[str, str]) -> None:
        """Nothing of what waits to be sent will be: the transaction has failed before."""
        self.to_server.clear()
        self.ledger.never_ran()
        self.status = b"E"
        while self._cycles:
            cycle = self._cycles.popleft()
            cycle.outcome.failed(fields)
            if cycle.client and cycle.client == self.client:
                self.to_client += wire.complaint(b"E", "ERROR", fields.get("C", "XX000"), fields.get("M", ""))
                self.to_client += wire.ready(b"E")

    def client_said(self, data: bytes) -> bool:
        """Take what the client says; False when it has said goodbye.

        Raises:
            Broken: its bytes are not a message.
        """
        sent = 0
        try:
            for kind, message in self._frames.feed(data):
                if kind == _GOODBYE:
                    return False
                if kind == calls.KIND:
                    self._send(sent)
                    sent, self._asked_by = 0, calls.Asked.of(message)
                    continue
                wire.check_from_client(kind, len(message))
                self._check_order(kind)
                if self._refusing or self._ends_foreign_work(kind, message):
                    self._send(sent)
                    sent = 0
                    self._refuse(kind)
                    continue
                self._batch += message
                if len(self._batch) > wire.LONGEST_MESSAGE:
                    raise wire.Broken("a batch without an end")
                self._note(kind, message)
                if kind in _AT_BOUNDARY:
                    asked = self._asked_by
                    if asked is not None and calls.executes(self._batch, sent):
                        self._asked_by = None
                        if (answer := calls.known_answer(self.ledger, asked)) is not None:
                            self._answer(answer, sent)
                            continue
                    else:
                        asked = None
                    self._boundary(kind, message)
                    if asked is not None and self._cycles:
                        self._cycles[-1].asked = asked
                    sent = len(self._batch)
                elif kind in _COPY_KINDS and (self.copying or not self._is_in_batch):
                    sent = len(self._batch)  # and not a part of a batch whose Sync may never arrive
        finally:
            self._send(sent)  # whatever follows it: its answer is waited for
        return True

    def _check_order(self, kind: int) -> None:
        """A server skips a query in a batch that has failed, and in a COPY: its answer could not be recognized then.

        Raises:
            Broken: a query stands where its answer may never come.
        """
        if kind in _ALONE and self._is_in_batch:
            raise wire.Broken("a query within a batch that no Sync has ended")
        if self.copying and kind not in _IN_COPY:
            raise wire.Broken("another statement within a COPY")
        self._is_in_batch = kind in _OF_BATCH or (self._is_in_batch and kind != _SYNC)

    def _send(self, size: int) -> None:
        if size:
            self.to_server += self._batch[:size]
            del self._batch[:size]

    # ── calls ───────────────────────────────────────────────────────────────────────────────────

    def _answer(self, answer: bytes, begin: int) -> None:
        """Answer the batch in the server's place."""
        if any(cycle.client == self.client for cycle in self._cycles):
            raise wire.Broken("a call inside a pipeline")
        self.to_client += calls.answered(bytes(self._batch[begin:]), answer, self.status)
        del self._batch[begin:]
        self._batch_outcome = Outcome()
        self._left_out()
        if self.is_quiet:
            self.rested()

    def _left_out(self) -> None:
        """The batch is never sent to the server."""

    def _call_ended(self, cycle: Cycle, before: bytes, status: bytes) -> None:
        """Write down what a statement came to, before its client hears of it."""
        asked = cycle.asked
        if asked is not None and asked.call is not None:
            call = asked.call
            if call.block and status != b"I" and not self.blocks.open:
                self.changes += 1
                self.blocks.enter(call.line, call.block)
        calls.write_down(self.ledger, asked, cycle.outcome, before, status)

    def _gather(self, data: bytes, begin: int, end: int) -> None:
        """Keep the answer of a statement that belongs to a call, as long as it is not too large."""
        asked = self._cycles[0].asked if self._cycles else None
        if asked is not None:
            asked.gather(data[begin:end])

    def _note(self, kind: int, message: bytes) -> None:
        """Remember which names a message makes or ends."""
        before = len(self.names)
        if kind == _PARSE:
            self._asked(self.names.parse(message))
        elif kind == _BIND:
            self.ending = endings.together(self.ending, self.names.bind(message))
        elif kind == _CLOSE:
            self.names.close(message)
        self.changes += len(self.names) != before

    def _asked(self, sql: bytes) -> None:
        self._batch_outcome.statement = sql[:400].decode("utf-8", "replace")
        self.changes += self.blocks.asked(sql)

    def _boundary(self, kind: int, message: bytes) -> None:
        """A Query, Sync, Flush or function call ends a batch."""
        if kind == _FLUSH and not self._is_in_batch:  # psycopg sends one behind the Sync of a pipeline
            return
        self.batches += 1
        if kind == _QUERY:
            self._asked(sql := message[5:-1])
            self.ending = endings.together(self.ending, endings.ending_of(sql))
        outcome, self._batch_outcome = self._loose or self._batch_outcome, Outcome()
        self.unsynced = kind == _FLUSH
        self._loose = outcome if self.unsynced else None
        if self.unsynced:
            return
        front = self._cycles[0] if self._cycles else None
        if kind == _SYNC and front is not None and front.kind == "copy":
            # The Sync before was lost in the COPY, as is this one while the COPY goes on.
            front.kind = front.kind if self.copying else "sync"
            return
        self._cycles.append(Cycle(self.client, "sync" if kind == _SYNC else "query", outcome))

    # ── guarding ────────────────────────────────────────────────────────────────────────────────

    @property
    def _is_guarding(self) -> bool:
        return self.is_guarded and self._inherits and self.status == b"T"

    def _ends_foreign_work(self, kind: int, message: bytes) -> bool:
        """True if a foreign driver would end what was begun before it came."""
        # The guard sees everything, so that it knows the names when they are used.
        return self.is_guarded and self._guard.would_end(kind, message, self.parameters) and self._is_guarding

    def _refuse(self, kind: int) -> None:
        """Answer in the server's place: a driver's pool must not end work it did not begin."""
        if not self._refusing:
            if not self.is_quiet:
                raise wire.Broken("a pipeline would end a transaction that was begun before this client came")
            hint = "use the session's connect(), commit() or rollback(); docs/guide/sessions.md tells about pools"
            text = "this transaction was begun before this client came and is kept; this statement would end it"
            self.to_client += wire.complaint(b"E", "ERROR", "25001", text, hint)
            self._refusing = True
        if kind in (_QUERY, _SYNC):
            self._refusing = False
            self._batch.clear()
            self._batch_outcome = Outcome()
            self.to_client += wire.ready(self.status)

    # ── the server ──────────────────────────────────────────────────────────────────────────────

    def server_said(self, data: bytes) -> None:
        """Take the server's message: pass it on, or count it if there is no client.

        Raises:
            Broken: it says what no server says; it cannot be understood any more.
        """
        buffer = self._rest + data if self._rest else data
        at = begin = 0
        end = len(buffer)
        if self._in_row:
            at = min(self._in_row, end)
            self._in_row -= at
        length = wire.LENGTH.unpack_from
        while at + 5 <= end:
            kind = buffer[at]
            stop = at + 1 + length(buffer, at + 1)[0]
            if kind not in _PASSED_ON or stop < at + 5:
                wire.check_from_server(kind, stop - at - 1)
            if kind in _PASSED_ON:
                if stop > end:
                    self._in_row = stop - end
                    at = end
                    break
                at = stop
                continue
            if stop > end:
                break
            if kind == _READY:
                self._gather(buffer, begin, at)
                cycle = self._ready(buffer[at + 5 : at + 6])
                self._pass_on(buffer, begin, at, cycle.client)
                if self.notifications and cycle.client == self.client:
                    self._tell_what_came_meanwhile()
                self._pass_on(buffer, at, stop, cycle.client)
                begin = stop
            elif kind in _LOOKED_AT and not self._look(kind, buffer[at + 5 : stop]):
                self._gather(buffer, begin, at)
                self._pass_on(buffer, begin, at, self._reader())
                begin = stop
            at = stop
        self._gather(buffer, begin, at)
        self._pass_on(buffer, begin, at, self._reader())
        self._rest = buffer[at:]

    def _reader(self) -> int:
        """Whom the next bytes are for."""
        return self._cycles[0].client if self._cycles else self.client

    def _pass_on(self, buffer: bytes, begin: int, end: int, reader: int) -> None:
        if reader == self.client and reader:
            self.to_client += buffer[begin:end] if begin or end < len(buffer) else buffer
        elif reader > 0:
            self.discarded += end - begin

    def _ready(self, status: bytes) -> Cycle:
        if status not in TRANSACTION:
            raise wire.Broken(f"the server is ready in a state that is none: {status!r}")
        cycle = self._cycles.popleft() if self._cycles else Cycle(OURS, "query", Outcome())
        self.copying = False
        self._call_ended(cycle, self.status, status)
        if status == b"I" and self.status != b"I":
            tag = cycle.outcome.tag or ""
            self.changes += 1
            self.has_committed = tag == "COMMIT"
            self.blocks.ended_by_server(tag, self._ended_by)
        if status == b"I":
            self._inherits = False
        self.status = status
        if cycle.client != OURS:
            outcome = cycle.outcome
            outcome.transaction = TRANSACTION.get(status, "none")
            outcome.handed_over = cycle.client == self.client
            self.outcome = outcome
            if not outcome.handed_over:
                self.missed.append(outcome)
                self.changes += 1
            elif self.missed:
                self.missed.clear()  # the present client was told, and has continued
                self.changes += 1
        return cycle

    def _look(self, kind: int, body: bytes) -> bool:
        """Take note of a message; False if it must not be passed on here."""
        if kind == _COMPLETE:
            tag = self._current().tag = body[:-1][:_LONGEST_TEXT].decode("utf-8", "replace")
            # COMMIT AND CHAIN, or a BEGIN after it: what is open then is the client's own.
            self._inherits = self._inherits and tag != "COMMIT"
        elif kind == _ERROR:
            said = wire.fields(body)
            if said.get("V") in ("FATAL", "PANIC"):
                self.gone = said.get("M", "the server ended the session")[:_LONGEST_TEXT]
            if resync.POISON not in said.get("M", "") and "perdure" not in said.get("M", "")[:7]:
                self._current().failed(said)
            self.copying = False
        elif kind == _STATUS:
            self.changes += 1
            wire.set_parameter(self.parameters, body)
            return self._told_at_once(wire.message(b"S", body))
        elif kind == _NOTIFY:
            if not self.client:
                self.notifications.append(wire.message(b"A", body))
            return self._told_at_once(wire.message(b"A", body))
        elif kind == _COPY_IN:
            self._begin_copy()
        return True

    def _tell_what_came_meanwhile(self) -> None:
        """Drivers look for notifications in an answer, so the first one of a new client brings them."""
        self.to_client += b"".join(self.notifications)
        self.notifications.clear()

    def _told_at_once(self, message: bytes) -> bool:
        """A client hears this also in an answer that is not its own."""
        if self._reader() == self.client:
            return True
        if self.client:
            self.to_client += message
        return False

    def _begin_copy(self) -> None:
        front = self._cycles[0] if self._cycles else None
        self.copying = True
        if front is not None and front.kind == "sync":
            front.kind = "copy"
        if self.client and (front is None or front.client == self.client):
            return
        self.to_server += wire.copy_fail("the client died before its COPY began")
        if front is not None and front.kind == "copy":
            front.kind = "sync"
            self.to_server += wire.SYNC

    def _current(self) -> Outcome:
        if self._cycles:
            return self._cycles[0].outcome
        return self._loose or Outcome()

    def lost(self, why: str) -> None:
        """The server is gone. The batch under way has no outcome.

        The ledger stays as it is: the next process finds out the outcome of its calls, and may build the transaction
        anew (session_start.take_over).
        """
        self.gone = self.gone or why
        if self._cycles and self._cycles[0].client != OURS:
            outcome = self._cycles[0].outcome
            outcome.state, outcome.transaction = "uncertain", "none"
            self.outcome = outcome
        may_have_committed = self._cycles and self.ending in (endings.COMMIT, endings.MIXED)
        self.blocks.transaction_ended(f"lost: {self.gone}", UNCERTAIN if may_have_committed else ROLLED_BACK)
        self._cycles.clear()
        self.unsynced, self.status = False, b"I"

    def rolled_back(self, why: str) -> None:
        """Roll the open transaction back, and remember why."""
        self._ended_by = why
        self.ask(wire.query("ROLLBACK"))
