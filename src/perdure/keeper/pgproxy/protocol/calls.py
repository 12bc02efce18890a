"""The call that a statement belongs to, announced by the client, and answers in the server's place. Pure.

A client that works for a durable function says before a statement, on the same connection, in a message that no
server knows:

    ~ N <call>      this is the call; do it once
    ~ G <answer>    this is the answer, from the task's journal; the server is not asked
    ~ U <path>      rolls back to the savepoint of that call; what came after it is forgotten

An answer is kept as the server's own messages, without those that depend on how the statement was sent: prepared,
with values, or as plain text. A repeated statement may come in another way than the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.protocol.outcome import Outcome
from perdure.keeper.session import LONGEST_ANSWER, Ledger, Noted, StatementCall

KIND = 0x7E  # ~
_QUERY, _PARSE, _BIND, _DESCRIBE, _EXECUTE, _CLOSE = b"QPBDEC"
_ROWS, _ROW, _COMPLETE, _EMPTY, _ERROR = b"TDCIE"
_KEPT = frozenset((_ROWS, _ROW, _COMPLETE, _EMPTY, _ERROR))

# Complaints of ours, told to drivers as errors of the server.
ANOTHER, NOT_KEPT, UNCERTAIN, UNWRITTEN = "PD001", "PD002", "PD003", "PD004"
# The hint by which a client that is sent away tells this from a broken connection.
FENCED = "connect to the session again to take it over"


@dataclass(slots=True)
class Asked:
    """A client's announcement of its next statement."""

    call: StatementCall | None = None
    given: bytes | None = None
    undone: str = ""
    gathered: bytearray = field(default_factory=bytearray)

    @classmethod
    def of(cls, message: bytes) -> Asked:
        """Raises: Broken."""
        what, told = message[5:6], message[6:]
        try:
            if what == b"N":
                return cls(StatementCall.of(told))
            if what == b"G":
                return cls(given=told)
            if what == b"U":
                return cls(undone=told.decode())
        except ValueError as problem:
            raise wire.Broken(f"a call that cannot be read: {problem}") from None
        raise wire.Broken("a call of no known kind")

    def gather(self, data: bytes) -> None:
        if self.call is not None and len(self.gathered) <= LONGEST_ANSWER:
            self.gathered += data


def note(call: StatementCall) -> bytes:
    return wire.message(b"~", b"N" + call.told())


def give(answer: bytes) -> bytes:
    return wire.message(b"~", b"G" + answer)


def undo(path: str) -> bytes:
    return wire.message(b"~", b"U" + path.encode())


def executes(batch: bytes | bytearray, begin: int = 0) -> bool:
    """True if the batch runs something; one that only prepares does not."""
    at = begin
    while at + 5 <= len(batch):
        if batch[at] in (_QUERY, _EXECUTE):
            return True
        at += 1 + wire.LENGTH.unpack_from(batch, at + 1)[0]
    return False


def kept(answer: bytes | bytearray) -> bytes | None:
    """The part of a server's answer that is kept; None when it is too large."""
    if len(answer) > LONGEST_ANSWER:
        return None
    parts, at = [], 0
    while at + 5 <= len(answer):
        stop = at + 1 + wire.LENGTH.unpack_from(answer, at + 1)[0]
        if answer[at] in _KEPT:
            parts.append(bytes(answer[at:stop]))
        at = stop
    return b"".join(parts)


def answered(batch: bytes, answer: bytes, status: bytes) -> bytes:
    """A stored answer to this batch, as the server would have sent it."""
    said, out = list(wire.Frames().feed(answer)), bytearray()
    rows = [message for kind, message in said if kind == _ROWS]
    rest = b"".join(message for kind, message in said if kind != _ROWS)
    for kind, _ in wire.Frames().feed(batch):
        if kind == _QUERY:
            out += answer
        elif kind == _PARSE:
            out += b"1\0\0\0\4"
        elif kind == _BIND:
            out += b"2\0\0\0\4"
        elif kind == _CLOSE:
            out += b"3\0\0\0\4"
        elif kind == _DESCRIBE:
            out += rows[0] if rows else b"n\0\0\0\4"
        elif kind == _EXECUTE:
            out += rest
    return bytes(out) + wire.ready(status)


def answer_of(known: Noted, call: StatementCall) -> bytes:
    """The answer to a call that was made before."""
    if known.call.digest != call.digest:
        text = f"at this place of the task the statement was {known.call.text!r}"
        return wire.complaint(b"E", "ERROR", ANOTHER, text, known.call.text)
    if known.is_uncertain:
        return wire.complaint(b"E", "ERROR", UNCERTAIN, "it is not known whether this statement was carried out")
    if known.answer is None:
        return wire.complaint(b"E", "ERROR", NOT_KEPT, "this statement was carried out, and its answer was not kept")
    return known.answer


def known_answer(ledger: Ledger, asked: Asked) -> bytes | None:
    """The earlier result of a statement; None if it is new, and is sent now."""
    if asked.given is not None:
        return asked.given
    if asked.call is None:
        return None
    known = ledger.find(asked.call)
    if known is not None:
        return answer_of(known, asked.call)
    try:
        ledger.begin(asked.call)
    except OSError as problem:
        text = f"the statement could not be written down first: {problem}"
        return wire.complaint(b"E", "ERROR", UNWRITTEN, text)
    return None


def write_down(ledger: Ledger, asked: Asked | None, outcome: Outcome, before: bytes, status: bytes) -> None:
    """Note what a statement came to; `before` and `status`: of the transaction around it and after it."""
    if asked is not None and asked.call is not None:
        if status == b"I" and outcome.error:
            ledger.never_ran()  # it was rolled back, by itself or with its transaction
        else:
            answer = kept(asked.gathered) if outcome.state == "done" else None
            ledger.done(answer, is_open=status != b"I" or before != b"I")
    if asked is not None and asked.undone and not outcome.error:
        ledger.forget(asked.undone)
    if status == b"I" and before != b"I":
        ledger.ended(is_committed=outcome.tag == "COMMIT")
