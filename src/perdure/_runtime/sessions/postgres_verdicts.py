"""Judge how a PostgreSQL session came back, from its proxy's report. Pure."""

from __future__ import annotations

from typing import Any

from perdure._model import Verdict

NEW_SESSION = "new; nothing was kept before"
# A session that was there always leaves a trace. Without one, nobody can ask about its last COMMIT.
_WITHOUT_TRACE = {"transaction": "uncertain", "why": "the session's notes are gone"}


def verdict_of(answer: dict[str, Any], state: dict[str, Any], lost: str) -> Verdict:
    """The verdict on a session whose proxy was started just now; `lost` says why the previous one is gone."""
    if answer["how"] == "kept":
        return kept(state)
    found = answer.get("found") or {}
    if answer["how"] == "rebuilt":
        return _rebuilt(lost, answer, state, found)
    if not lost and not found:
        return Verdict("kept", NEW_SESSION)
    why = lost or "its process is gone, and with it the connection"
    return _lost(why, answer.get("refused", ""), found or _WITHOUT_TRACE)


def kept(state: dict[str, Any]) -> Verdict:
    """The verdict for a returning client."""
    same = [f"backend {state['pid']} with its settings, temp tables, cursors and locks"]
    if state["transaction"] != "none":
        same.append(f"the transaction is {state['transaction']}")
    since = [*state["lost_parts"]]
    missed = state["missed"] or [state["outcome"]] if state["outcome"] else []
    since += [_told(outcome) for outcome in missed]
    if state["dropped"]:
        since.append("a batch that was sent in part never ran")
    limit, whose = state["hold_seconds"], state["hold_by"]
    assume = [f"an open transaction is rolled back after {limit:g} s without a client ({whose})"]
    if state["encrypted"]:
        assume.append("the connection is encrypted: it survives this process, not the proxy's")
    failed = state["transaction"] == "failed"
    return Verdict(
        "kept",
        f"the same backend ({state['pid']}), {_transaction(state)}",
        same=same,
        since_you_left=since,
        waiting="a statement is still running" if state["busy"] else None,
        do_not_assume=assume,
        options=["roll back: the transaction has failed"] if failed else [],
    )


def _transaction(state: dict[str, Any]) -> str:
    return "in no transaction" if state["transaction"] == "none" else f"its transaction is {state['transaction']}"


def _told(outcome: dict[str, Any]) -> str:
    what = outcome["statement"].split("\n")[0][:80] or "a statement"
    if outcome["state"] == "never sent":
        return f"{what}: never ran"
    if outcome["error"]:
        return f"{what}: failed, {outcome['error']['message']}"
    if outcome["state"] == "undone":
        return f"{what}: was under way, and was rolled back with its transaction"
    if outcome["state"] == "uncertain":
        return f"{what}: was under way; whether it was done is uncertain"
    return f"{what}: {outcome['tag'] or 'ended, its outcome is not known'}"


def _lost(why: str, refused: str, found: dict[str, Any]) -> Verdict:
    transaction, reason = found.get("transaction"), found.get("why", "")
    assume, options = [], ["begin the transaction anew"]
    if transaction == "committed":
        assume.append("that the last transaction is open or was rolled back: it was committed")
        options = ["continue after the transaction: it was committed"]
    elif transaction == "prepared":
        assume.append("that the last transaction was rolled back: it is prepared, and holds its locks")
        options = ["commit or roll back the prepared transaction"]
    elif transaction == "uncertain":
        assume.append(f"that the last transaction was rolled back, or was not: that is uncertain, {reason}")
        options = ["look at the data before you do any of it again"]
    elif found.get("backend"):
        assume.append(f"that what was not committed is rolled back already: {found['backend']}")
    else:
        assume.append("that anything uncommitted is there; what was not committed was rolled back")
    if refused and transaction != "committed":
        assume.append(f"that its statements can simply be run again: they were not, {refused}")
    return Verdict(
        "lost",
        why,
        differs=["a new session: another backend, no temp tables, no locks, no open transaction"],
        since_you_left=_since(found),
        do_not_assume=assume,
        options=options,
    )


def _since(found: dict[str, Any]) -> list[str]:
    """The fate of the session before."""
    since = [_told(found["outcome"])] if found.get("outcome") else []
    if found.get("transaction") == "committed":
        is_lost = ", says the server; the answer to that was lost" if found.get("outcome") else ""
        since.append(f"its last transaction was committed{is_lost}")
    elif found.get("transaction") == "uncertain":
        since.append(f"whether its last transaction was committed is uncertain: {found['why']}")
    return since


def _rebuilt(why: str, answer: dict[str, Any], state: dict[str, Any], found: dict[str, Any]) -> Verdict:
    same = ["settings and temp tables, made again by the statements that had made them"]
    if state["transaction"] != "none":
        same.append(f"the transaction: {answer['applied']} batches were applied again and came to the same")
    return Verdict(
        "rebuilt",
        why,
        same=same,
        differs=[f"another backend ({state['pid']}) and another transaction id", "locks were free in between"],
        since_you_left=_since(found),
        do_not_assume=["that temp tables have rows that were put in outside the open transaction"],
    )
