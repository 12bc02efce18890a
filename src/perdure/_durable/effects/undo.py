"""Take back what a task has done: settle what is uncertain, then undo the rest, the newest first.

`undo(result, *same args)` is an effect too: it has its own intent, key and outcome in the journal, so it is done once
even if the process is killed inside it. Where it cannot act by itself, a person is asked.

An uncertain effect without an undo does not hold up the others: perdure probes it, and if the outcome stays unknown, it
remains in the inbox.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from typing import Any

from perdure._durable.attempt import Attempt
from perdure._durable.effects import settlement
from perdure._durable.effects.declaration import DidNotHappen, EffectCall, EffectOutcome, key_of, known_effect
from perdure._durable.effects.effect_walk import Walk
from perdure._durable.effects.ledger import UNDO, Account, accounts, not_known_to, undo_path
from perdure._durable.journal import failure_in
from perdure._durable.pauses import answer_to
from perdure._ground import crash_points as crash
from perdure._ground.bridge import drive
from perdure._ground.encoding import codec
from perdure._model import Entry
from perdure._tasks import EFFECT_QUESTION
from perdure.errors import PerdureError

log = logging.getLogger("perdure.effects")

# The entry that says: the function failed with this error, and its effects are being undone.
COMPENSATING = "~compensating"
_NOTHING = codec.encode(None)

Entries = Sequence[tuple[int, Entry]]


def failure_of(attempt: Attempt) -> bytes | None:
    """The error the function failed with, if an earlier attempt had begun to undo what it did."""
    found = [entry.value for _, entry in attempt.entries if entry.path == COMPENSATING]
    return found[-1] if found else None


async def note_failure(attempt: Attempt, error: bytes) -> None:
    """Put the failure on disk before the first undo: from here on the function does not run again."""
    attempt.record(
        Entry("result", "compensate", COMPENSATING, b"", error, at=attempt.store.clock.now_ms(), epoch=attempt.epoch)
    )
    await attempt.flush()
    crash.place("undo.noted")


def unknown_here(attempt: Attempt, kept: Entries = ()) -> list[str]:
    """Effects that must be undone or settled, and that this process does not know."""
    found = _since(attempt, kept)
    return sorted({one.name for one in found if _is_due(one) and _call(attempt, one) is None})


def _since(attempt: Attempt, kept: Entries) -> list[Account]:
    said = {**dict.fromkeys(attempt.unwinding.asked), **attempt.answers}
    return not_known_to(kept, accounts(attempt.entries, said))


def _is_due(account: Account) -> bool:
    return account.has_undo and account.state in ("done", "uncertain")


async def take_back(attempt: Attempt, kept: Entries = ()) -> int:
    """Undo what the task has done, but for what these entries tell of; how many effects that were.

    Raises:
        Paused: a person is asked, and the attempt is unwound.
    """
    found = _since(attempt, kept)
    for account in found:
        if account.state == "uncertain" and not account.is_inherited:
            await _settle(attempt, account)
    # Reading it again would cost a query: the accounts already show what was settled just now.
    done = [account for account in found if account.state == "done" and account.has_undo]
    for account in sorted(done, key=lambda one: one.position, reverse=True):
        crash.place("undo.before")
        await _undo(attempt, account)
    await attempt.flush()
    return sum(account.state == "undone" for account in found)


# ── settling ─────────────────────────────────────────────────────────────────────────────────────


async def _settle(attempt: Attempt, account: Account) -> None:
    """Find out whether it happened. If an effect must be undone a person is asked, any other stays open."""
    call, kept = _call(attempt, account), account.intent.value
    if call is None:
        if account.has_undo:
            await _by_hand(attempt, account, f"it is uncertain, and this process knows no effect {account.name}")
        return
    args, kwargs = call.kept(kept) if kept is not None else ((), {})
    # Without its instance a method can be neither probed nor sent again.
    can_call = kept is not None and not call.signature.is_method
    walk = _ending_walk(call, attempt, account.path, account.intent.digest, args, kwargs, "effect")
    walk.follow(account.intent)
    await settlement.may_settle(attempt, account.path, account.intent)
    may_send, may_ask = can_call and account.has_undo, account.has_undo
    outcome = await settlement.settle(walk, None, may_look=can_call, may_send=may_send, may_ask=may_ask)
    if outcome.is_open:
        return
    if outcome.again and outcome.again != "same key":
        settled = "person" if outcome.again == "a person said so" else "verify"
        outcome = EffectOutcome(error=DidNotHappen("it had not happened when the task was ended"), settled=settled)
    try:
        # The only way to know what a keyed target has done: by the same key it knows the call again.
        walk.again = outcome.again
        await (_go(walk) if outcome.again else walk.ended(outcome))
    except Exception:
        attempt.fence.check()
    account.refresh(walk.recorded)


def _ending_walk(
    call: EffectCall, attempt: Attempt, path: str, asked: bytes, args: tuple[Any, ...], kwargs: dict[str, Any], op: str
) -> Walk:
    """The walk of an effect when its task is being ended."""
    key, is_inline = key_of(attempt.uid, attempt.line, path, asked), not call.is_async
    op = f"{op}.inline" if is_inline else op
    return Walk(call, attempt, path, asked, args, kwargs, key, is_body=True, is_ending=True, is_inline=is_inline, op=op)


async def _go(walk: Walk, intent: Entry | None = None) -> None:
    if walk.is_inline:
        drive(walk.go(intent))
    else:
        await walk.go(intent)


# ── undoing ──────────────────────────────────────────────────────────────────────────────────────


async def _undo(attempt: Attempt, account: Account) -> None:
    call, kept = _call(attempt, account), account.intent.value
    if call is None or call.undo is None or kept is None:
        await _by_hand(attempt, account, f"this process knows no undo of {account.name}")
        return
    try:
        result = account.result(call)
    except Exception as problem:
        await _by_hand(attempt, account, f"its result is not known: {_first_line(problem)}")
        return
    args, kwargs = call.kept(kept)
    while await _is_worth_a_try(attempt, account):
        walk = _undo_walk(attempt, account, call.undo, (result, *args), kwargs)
        intent = account.undo_intent if account.undo_end is None else None
        if account.undo_end is not None and account.undo_intent is not None:
            walk.follow(account.undo_intent)
        try:
            await _go(walk, intent)
            account.state = "undone"
            return
        except Exception as error:
            attempt.fence.check()
            if walk.recorded is None:
                raise  # not the undo's own failure
            account.undo_end, account.undo_intent = walk.recorded[1], attempt.cursor.intent(walk.path)
            log.warning("the undo of %s failed: %s", account.shown, error)


def _undo_walk(
    attempt: Attempt, account: Account, undo: EffectCall, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Walk:
    path, asked = undo_path(account.path), account.key.encode()
    return _ending_walk(undo, attempt, path, asked, args, kwargs, UNDO)


async def _is_worth_a_try(attempt: Attempt, account: Account) -> bool:
    """Yes at first; after a definite failure a person says what now."""
    end = account.undo_end
    if end is None:
        return True
    tries = int((end.note or {}).get("tries") or 1)
    return await _by_hand(attempt, account, str(failure_in(end)), tries=tries) == "retry"


async def _by_hand(attempt: Attempt, account: Account, why: str, *, tries: int | None = None) -> str:
    """Ask for what only a person can do: `done` once it is undone, `retry`, or `fail` to leave it as it is."""
    path = undo_path(account.path)
    details = {"effect": path, "name": account.name, "call": f"undo of {account.shown}", "key": account.key, "why": why}
    question = {"question": f"cannot undo {account.shown}: {why}", "details": {**details, "waits": True}}
    for number in itertools.count():
        place = f"{path}!{tries}" if tries is not None else f"{path}!by hand {number}"
        answer: Any = await answer_to(attempt, place, "human_input", question, topic=EFFECT_QUESTION)
        choice = str(answer.get("choice") if isinstance(answer, dict) else answer)
        if choice == "retry" and tries is None:
            continue  # there is nothing that could be tried here
        if choice == "done":
            account.state = "undone"
            now = attempt.store.clock.now_ms()
            note: dict[str, str | int | float | None] = {"key": account.key, "settled": "person"}
            attempt.record(Entry("result", UNDO, path, b"", _NOTHING, at=now, epoch=attempt.epoch, note=note))
        return choice
    raise AssertionError


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────


def _call(attempt: Attempt, account: Account) -> EffectCall | None:
    own: EffectCall | None = attempt.effects.get(account.name)
    home = (account.intent.note or {}).get("home")
    return own or known_effect(account.name, None if home is None else str(home))


def _first_line(error: BaseException) -> str:
    text = error.what if isinstance(error, PerdureError) else f"{type(error).__name__}: {error}"
    return text.splitlines()[0] if text else type(error).__name__
