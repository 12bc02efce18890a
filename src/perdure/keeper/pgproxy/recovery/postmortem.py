"""Find out what became of a session that is lost, before it is called so.

Its backend is ended, or seen to be gone: a session called lost must hold no lock. Then the server is asked how the
transaction ended whose COMMIT was under way. If the server cannot say, the outcome is uncertain: that is reported, and
the transaction is never built anew.

A transaction's number is only trusted on the server that assigned it. After a crash a number can be assigned again:
then "aborted" still holds, because its first owner did not commit, and "committed" can be another one's.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from perdure.keeper.pgproxy.login import Upstream
from perdure.keeper.pgproxy.login import server_queries as questions
from perdure.keeper.pgproxy.login import upstream as login
from perdure.keeper.pgproxy.protocol import Outcome, wire
from perdure.keeper.pgproxy.protocol import transaction_ends as endings
from perdure.keeper.pgproxy.recovery.trace import UNDER_WAY, Left, Server
from perdure.keeper.pgproxy.session import Blocks, SessionRecipe
from perdure.keeper.session import COMMITTED, ROLLED_BACK, UNCERTAIN

PREPARED = "prepared"
# For a COMMIT that still runs, and for a backend that was told to end.
_COMMIT_SECONDS, _END_SECONDS, _LOOK_SECONDS = 30.0, 10.0, 0.02
_IN_THE_FUTURE = "22023"


@dataclass
class Finding:
    """The outcome of a lost session."""

    transaction: str  # committed, rolled back, prepared, uncertain; empty when none was open
    why: str = ""  # it is uncertain
    backend: str = ""  # why its end is not proven
    outcome: Outcome | None = None  # of the statement that was under way
    blocks: dict[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """For the next client that opens the session."""
        told = {"transaction": self.transaction, "why": self.why, "backend": self.backend}
        return {**told, "outcome": self.outcome.facts() if self.outcome else None}

    def amend(self, recipe: SessionRecipe | None, left: Left) -> None:
        """Leave out of a recipe what must not be applied again."""
        if recipe is None:
            return
        if self.transaction == COMMITTED:
            recipe.committed()
        elif self.transaction in (UNCERTAIN, PREPARED):
            recipe.spoil(f"whether it was committed is uncertain: {self.why}" if self.why else "it was prepared")
        if self.outcome is not None and recipe.rests > left.rests:
            self.outcome = None  # it had been answered, and is part of the recipe


# ── which server, which backend ──────────────────────────────────────────────────────────────────


def server_of(upstream: Upstream) -> Server:
    """The server of this connection, as far as it tells."""
    try:
        row = questions.ask(upstream.socket, "server")
    except questions.QueryFailed:
        return Server()
    pid, since, system, timeline, counters, _ = row or [None] * 6
    backend = int(pid or 0)
    return Server(
        backend,
        since or "",
        system or "",
        timeline or "",
        counters or "",
        backend != upstream.pid,
        tells=bool(timeline),
    )


def examine(options: dict[str, str], left: Left) -> Finding:
    """End what is left of a session, and ask how its transaction ended.

    Raises:
        LoginFailed: the server refuses us, or stays away.
        OSError: the connection broke.
    """
    upstream = login.log_in(options)
    link = upstream.socket
    try:
        link.settimeout(_COMMIT_SECONDS + _END_SECONDS)
        here = server_of(upstream)
        backend = _end_backend(link, left, here)
        said, why = _ask_outcome(link, left, here) if left.may_have_committed else ("", "")
    finally:
        with contextlib.suppress(OSError):
            link.sendall(wire.TERMINATE)
        link.close()
    return judge(left, said, why, backend)


def outcome_of_commit(options: dict[str, str], note: dict[str, Any], *, is_over: bool) -> tuple[str, str]:
    """The outcome of a COMMIT of which only the note is left: committed, rolled back or uncertain, and the reason.

    `is_over`: that connection is no longer used, so the rest of it may be ended.

    Raises:
        LoginFailed: the server refuses us, or stays away.
        OSError: the connection broke.
    """
    if not note.get("server"):
        return UNCERTAIN, "its number was not noted"
    server, number = Server(**note["server"]), note.get("number")
    if not is_over:
        server.backend = 0
    left = Left(UNDER_WAY.decode(), server, "T", "COMMIT", endings.COMMIT, number is not None, number or "", blocks={})
    finding = examine(options, left)
    if finding.transaction == PREPARED:
        return UNCERTAIN, "it is prepared"
    return finding.transaction, finding.why


def _end_backend(link: socket.socket, left: Left, here: Server) -> str:
    """Have the backend gone; why that is not proven, else."""
    of = left.server
    if not (of.backend and of.since and of.system and here.system):
        return "the server does not say which backend served it"
    if of.system != here.system:
        return "another server answers at its address"
    if of.timeline != here.timeline:
        return "another server has taken over at its address"
    if of.is_pooled:
        return "a pooler stands before the server, and its backend may serve others now"
    who, began = (str(of.backend), of.since), time.monotonic()
    try:
        while (row := questions.ask(link, "backend", *who)) is not None:
            is_committing = row[0] == "active" and left.before == "T" and left.may_have_committed
            if is_committing and time.monotonic() < began + _COMMIT_SECONDS:
                time.sleep(_LOOK_SECONDS)  # it is given the time to end by itself
                continue
            if row[0] == "active" and left.is_one_statement:
                left.transaction = row[1] or ""
            return _terminate(link, who)
    except questions.QueryFailed as problem:
        return f"the server does not tell: {problem}"
    return ""


def _terminate(link: socket.socket, who: tuple[str, str]) -> str:
    end = time.monotonic() + _END_SECONDS
    questions.ask(link, "end_backend", *who)
    while questions.ask(link, "backend", *who) is not None:
        if time.monotonic() > end:
            return f"backend {who[0]} was told to end and has not"
        time.sleep(_LOOK_SECONDS)
    return ""


def _ask_outcome(link: socket.socket, left: Left, here: Server) -> tuple[str, str]:
    """The server's word for the outcome of the noted transaction, or the reason that it cannot be asked."""
    of = left.server
    if not left.transaction:
        return "", "" if left.is_asked else "it had no number yet that could be asked for"
    if not of.system or (of.system, of.timeline) != (here.system, here.timeline):
        return "", "another server answers, or another has taken over"
    try:
        row = questions.ask(link, "outcome", left.transaction)
    except questions.QueryFailed as problem:
        if problem.code == _IN_THE_FUTURE:  # given out, and lost in a crash before anything of it was kept
            return "aborted", ""
        return "", f"the server does not tell: {problem}"
    said, is_prepared = row or [None, None]
    if is_prepared == "t":
        return PREPARED, ""
    if said == "committed" and of.counters != here.counters:
        return "", "the server has crashed since, and a transaction's number may be another's"
    if said in ("committed", "aborted"):
        return said, ""
    return "", "it is still in progress" if said else "it is too long ago"


# ── judging; pure ────────────────────────────────────────────────────────────────────────────────


def judge(left: Left, said: str, why: str, backend: str) -> Finding:
    """The outcome of the session, by its trace and the server's answers."""
    finding = Finding(_transaction(left, said, why), why, backend)
    if backend and finding.transaction == ROLLED_BACK and not said:
        finding.why = backend
    if left.is_under_way:
        finding.outcome = _outcome(left, said, finding)
    finding.blocks = _blocks(left, finding)
    return finding


def _transaction(left: Left, said: str, why: str) -> str:
    if left.has_committed:
        return COMMITTED
    if not left.is_under_way:
        return "" if left.state == "I" else ROLLED_BACK
    if left.before == "I":
        return ""  # each statement is its own; its outcome is told
    if not left.may_have_committed:
        return ROLLED_BACK
    if said:
        return {"committed": COMMITTED, "aborted": ROLLED_BACK, PREPARED: PREPARED}[said]
    if left.ending == endings.COMMIT and not why:
        return COMMITTED  # of nothing: it had written nothing
    return UNCERTAIN


def _outcome(left: Left, said: str, finding: Finding) -> Outcome:
    outcome = Outcome(statement=left.statement)
    if left.before == "I" and said:
        outcome.state = "done" if said == "committed" else "undone"
    elif left.before == "I" or left.ending == endings.MIXED:
        outcome.state = "uncertain"
    elif finding.transaction == COMMITTED:
        outcome.tag = "COMMIT"
    elif finding.transaction == PREPARED:
        outcome.tag = "PREPARE TRANSACTION"
    elif finding.transaction == ROLLED_BACK:
        outcome.state = "undone"
    else:
        outcome.state = "uncertain"
    return outcome


def _blocks(left: Left, finding: Finding) -> dict[str, Any]:
    if not left.blocks:
        return {}
    blocks = Blocks.of(left.blocks)
    how = {COMMITTED: "COMMIT", ROLLED_BACK: "ROLLBACK"}.get(finding.transaction)
    if how is None:
        blocks.transaction_ended(f"whether it was committed is uncertain: {finding.why}", UNCERTAIN)
    else:
        blocks.transaction_ended(how)
    return blocks.facts()
