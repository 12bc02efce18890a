"""Take over the connection of a proxy that has died.

Anything half sent or half read is finished first, so that the next client finds the session quiet, in the state that
the server reports. A connection that cannot be finished safely is closed, which makes the server roll back.
"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass
from typing import Any

from perdure.keeper.pgproxy.protocol import TRANSACTION, Names, Outcome, calls, resync, wire
from perdure.keeper.pgproxy.recovery.notebook import IDLE, LARGE, SENDING, Notebook
from perdure.keeper.pgproxy.recovery.parking import Parking
from perdure.keeper.pgproxy.recovery.witness import ONLY_NUMBER
from perdure.keeper.pgproxy.session import Blocks, RecordingSession, Session, SessionRecipe
from perdure.keeper.session import UNCERTAIN, Ledger


class Unusable(Exception):
    """The session is lost, and why."""


@dataclass(frozen=True)
class Adopted:
    link: socket.socket
    notes: Notebook
    facts: dict[str, Any]
    session: Session
    page: Notebook | None = None  # of its recipe


def adopt(name: str, parking: Parking, ledger: Ledger) -> Adopted | None:
    """The parked session, quiet; None when none was parked.

    Raises:
        Unusable: there was one, and it cannot go on. Its connection is closed.
    """
    parked, kept = parking.take(name), parking.take(f"{name}.notes")
    if kept is None:
        return None
    if parked is None:
        raise Unusable("its connection was encrypted, and the keys died with its proxy")
    link, notes = socket.socket(fileno=parked[0]), Notebook(kept[0])
    recipe = parking.take(f"{name}.recipe")
    facts = notes.read()
    try:
        if not facts:
            raise Unusable("the proxy died before it had written anything down")
        if facts["gone"]:
            raise Unusable(facts["gone"])
        if notes.phase == LARGE:
            raise Unusable("the proxy died while a large message was on its way; the server rolls back")
        return _quieten(link, notes, facts, Notebook(recipe[0]) if recipe is not None else None, ledger)
    except Unusable:
        _shut(link)
        raise
    except OSError as problem:
        _shut(link)
        raise Unusable(f"the connection to the server broke: {problem}") from None
    except (wire.Broken, KeyError, ValueError, TypeError, IndexError) as problem:
        _shut(link)  # a proxy that dies here would leave it open for ever
        raise Unusable(f"what was written down or said about it cannot be understood: {problem}") from None


def _shut(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()


def _quieten(
    link: socket.socket, notes: Notebook, facts: dict[str, Any], page: Notebook | None, ledger: Ledger
) -> Adopted:
    phase, status, is_all_there = notes.phase, facts["status"].encode(), not notes.taken
    if asking := facts.get("asking"):  # for a transaction's number only: the statement itself was not sent
        phase = IDLE
    answer = _resync(link, implicit=notes.unsynced and status == b"I")
    session = _session(answer.status, facts["parameters"], page, phase)
    session.blocks = Blocks.of(facts["blocks"])
    session.missed.extend(map(Outcome.of, facts["missed"]))
    session.outcome = Outcome.of(facts["outcome"]) if facts["outcome"] else None
    if asking == ONLY_NUMBER:
        pass
    elif asking:
        session.outcome = Outcome("never sent", asking, transaction=TRANSACTION[answer.status])
        session.missed.append(session.outcome)
    elif phase != IDLE:
        session.outcome = _outcome(phase, answer, status)
        session.missed.append(session.outcome)
    if answer.status == b"I" and status != b"I":
        tag = (session.outcome.tag if session.outcome else None) or "unknown"
        session.has_committed = tag == "COMMIT"
        session.blocks.transaction_ended(tag, "" if tag in ("COMMIT", "ROLLBACK") else UNCERTAIN)
    session.ledger = ledger
    _settle(session, phase, answer.past if is_all_there and not answer.is_short else None, status)
    session.server_said(answer.rest)
    _close_names(session, facts)
    notes.phase, notes.unsynced, notes.taken = IDLE, False, False
    return Adopted(link, notes, facts, session, page)


def _settle(session: Session, phase: int, past: bytes | None, before: bytes) -> None:
    """Write down what became of the call that was under way, and of the transaction.

    `past` is all that the server has said since that call went out; None when a part of it was taken already.
    """
    ledger, status = session.ledger, session.status
    call, is_open = ledger.pending, session.status != b"I" or before != b"I"
    if call is not None and call.block and status != b"I" and not session.blocks.open:
        session.blocks.enter(call.line, call.block)
    answer = _first_answer(past) if past is not None else None
    error = session.outcome.error if session.outcome is not None else {}
    if phase == IDLE or answer == b"" or (error and status == b"I"):
        ledger.never_ran()
    elif answer is not None:
        ledger.done(answer, is_open=is_open)
    elif error:
        told = wire.complaint(b"E", "ERROR", error["code"] or "XX000", error["message"])
        ledger.done(told, is_open=True)
    elif is_open or (session.outcome is not None and session.outcome.tag):
        ledger.done(None, is_open=is_open)
    else:
        ledger.uncertain()
    if status == b"I":
        ledger.ended(is_committed=session.blocks.ended.get("how") == "COMMIT")
    elif ledger.open and not session.blocks.open:
        session.blocks.enter(ledger.line, ledger.block)


def _first_answer(past: bytes) -> bytes | None:
    """The answer to the statement that was under way; empty when it never went out: then only what we have asked
    ourselves was answered."""
    at = 0
    while at + 5 <= len(past) and past[at : at + 1] != b"Z":
        at += 1 + wire.LENGTH.unpack_from(past, at + 1)[0]
    return calls.kept(past[:at]) if at < len(past) else None


def _session(status: bytes, parameters: dict[str, str], page: Notebook | None, phase: int) -> Session:
    if page is None:
        return Session(status, parameters)
    facts = page.read()
    recipe = SessionRecipe.of(facts) if facts else SessionRecipe()
    if status == b"I":
        recipe.spoil("")
    elif phase != IDLE:
        recipe.spoil("its proxy died while a statement was under way")
    return RecordingSession(status, parameters, recipe)


def _resync(link: socket.socket, *, implicit: bool) -> resync.ResyncAnswer:
    noise = int.from_bytes(os.urandom(resync.BITS // 8))
    bits = [bool(noise >> number & 1) for number in range(resync.BITS)]
    answer = resync.ResyncAnswer(bits)
    # A statement may run for hours and is waited for; only a broken connection ends this.
    link.setblocking(True)
    link.settimeout(None)
    link.sendall(resync.ask(bits, implicit=implicit))
    while True:
        data = link.recv(1 << 18)
        if not data:
            _, error = resync.tail(answer.seen)
            raise Unusable(error.get("M") or "the server closed the connection")
        if answer.feed(data):
            return answer


def _outcome(phase: int, answer: resync.ResyncAnswer, before: bytes) -> Outcome:
    """The outcome of the statement that was under way, as far as it can be known."""
    tag, error = resync.tail(answer.past)
    outcome = Outcome(transaction=TRANSACTION[answer.status], tag=tag or None)
    if error and resync.POISON not in error.get("M", ""):
        outcome.failed(error)
    if tag or outcome.error:
        return outcome
    if phase == SENDING and _first_answer(answer.past) == b"":
        outcome.state = "never sent"
    elif before == b"T" and answer.status in b"TE":
        # In a transaction the status tells: it would have failed with the statement.
        outcome.state = "done"
        if answer.status == b"E":
            outcome.error = {"code": "", "message": "the statement failed; its message was lost with the proxy"}
    else:
        outcome.state = "uncertain"
    return outcome


def _close_names(session: Session, facts: dict[str, Any]) -> None:
    if facts["statements"] is None:
        session.ask(wire.query("DEALLOCATE ALL"))
        return
    session.names = Names.of(facts)
    session.end_names()
