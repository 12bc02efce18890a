"""Settle an effect whose outcome is unknown: look, send it again with the same key, or ask a person.

Owns the order of these, and decides when another attempt may begin to settle.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import logging
from collections.abc import Awaitable, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from perdure._durable.attempt import LEASE_MS, STOPPED, Aside, Attempt, Retry, Scope, current, running_effect
from perdure._durable.effects.declaration import DID_NOT_HAPPEN, UNKNOWN, EffectOutcome, Happened
from perdure._durable.effects.effect_in_progress import EffectInProgress
from perdure._durable.effects.running_effects import all_under_way
from perdure._durable.pauses import answer_to, close_question, note_question
from perdure._ground.bridge import Nap
from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._ground.exception_text import in_one_line, name_and_message, printable
from perdure._ground.ids import Process, is_proven_dead
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traceback_text import trace_of
from perdure._model import Entry
from perdure._store import AttemptRow, Store, WorkerRow
from perdure._tasks import EFFECT_QUESTION, TAKEN_OVER
from perdure.errors import EffectUncertain

log = logging.getLogger("perdure.effects")

# How a keyed effect without options for that is sent again.
_SAME_KEY = Retry()
_LOOK_SECONDS = 0.05
# With an intent that was copied from a damaged journal: what the effect returned, as far as that journal can be read.
KNOWN = "mark.known"


async def settle(
    walk: EffectInProgress,
    error: BaseException | None,
    *,
    may_send: bool = True,
    may_ask: bool = True,
    may_look: bool = True,
) -> EffectOutcome:
    """How the effect ended, or why it must run once more.

    `error` is what the body raised in this very process; without one the process that ran it is gone.

    Raises:
        Paused: a person is asked, and the attempt is unwound.
    """
    call = walk.call
    if (known := walk.marks.get(KNOWN)) is not None:
        return EffectOutcome(codec.decode(base64.b64decode(str(known)), call.signature.returns), settled="journal")
    answer = walk.attempt.answers.get(question_path(walk))
    if answer is None:
        verdict, remark = await probe(walk) if may_look else (UNKNOWN, "")
        if isinstance(verdict, Happened):
            return EffectOutcome(verdict.value, settled="verify")
        if verdict is DID_NOT_HAPPEN:
            walk.is_open = False
            if error is None:
                return EffectOutcome(again="not done")
            return EffectOutcome(error=error, settled="verify", may_retry=True)
        if may_send and call.keyed and (error is None or await _may_send_again(walk, error)):
            return EffectOutcome(again="same key")
        why = "; ".join(filter(None, (_why(error), remark)))
        if call.on_uncertain != "ask" or not may_ask:
            uncertain = EffectUncertain(call.name, why)
            uncertain.__cause__ = error
            return EffectOutcome(error=uncertain, is_open=True)
        answer = await ask(walk, why, error=error)
    return await _as_answered(walk, answer)


async def _may_send_again(walk: EffectInProgress, error: BaseException) -> bool:
    return await walk.wait_for_another(walk.call.retry or _SAME_KEY, error)


def _why(error: BaseException | None) -> str:
    return "the process died" if error is None else in_one_line(name_and_message(error))


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


async def probe(walk: EffectInProgress) -> tuple[Any, str]:
    """What `verify` says, and a remark if it could not say anything."""
    call = walk.call
    if call.verify is None:
        return UNKNOWN, ""
    # Like the effect's own body, it is not part of the function: nothing in it is numbered, and a pause is refused.
    task = None if walk.is_inline else asyncio.current_task()
    scope = current.set(Scope(walk.attempt, walk.path, is_body=True, task=task))
    running = running_effect.set(walk)
    try:
        args, kwargs = call.signature.in_order(walk.args, walk.kwargs)
        found = call.verify(*args, **kwargs)
        if inspect.isawaitable(found):
            with nullcontext() if walk.is_inline else walk.attempt.unwinding.held_off():
                found = await Aside(_within(found, call.limit_seconds))
    except Exception as problem:  # a probe that fails has not answered
        log.warning("the probe of %s failed: %s: %s", walk.shown, type(problem).__name__, problem)
        return UNKNOWN, f"its probe failed: {type(problem).__name__}: {problem}"
    finally:
        running_effect.reset(running)
        current.reset(scope)
    if found is DID_NOT_HAPPEN or found is UNKNOWN or isinstance(found, Happened):
        return found, ""
    log.error("the probe of %s answered %r, not Happened(…), DID_NOT_HAPPEN or UNKNOWN", walk.shown, found)
    return UNKNOWN, f"its probe answered {found!r}"


async def _within(found: Awaitable[Any], seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        return await found


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def question_path(walk: EffectInProgress, again: int = 0) -> str:
    return f"{walk.path}?{walk.tries}" + (f".{again}" if again else "")


def _question(walk: EffectInProgress, why: str, error: BaseException | None, *, waits: bool) -> dict[str, Any]:
    shown, why = redact(walk.shown), redact(why)
    details = {"effect": walk.path, "name": walk.call.name, "call": shown, "key": walk.key, "why": why}
    trace = "" if error is None else trace_of(error)
    if trace:
        details["traceback"] = trace
    what = f"whether {shown} happened is not known: {why}"
    log.warning("task %s: %s%s", walk.attempt.task_id, printable(what), f"\n{trace}" if trace else "")
    return {"question": f"outcome unknown: {shown}", "details": {**details, "waits": waits}}


async def ask(walk: EffectInProgress, why: str, again: int = 0, error: BaseException | None = None) -> Any:
    """A person's answer; the attempt is unwound until there is one."""
    return await answer_to(
        walk.attempt,
        question_path(walk, again),
        "human_input",
        _question(walk, why, error, waits=True),
        topic=EFFECT_QUESTION,
        counts=walk.is_body and not walk.is_ending,
        at_once=walk.is_inline,
    )


def ask_later(walk: EffectInProgress, error: BaseException | None) -> None:
    """Put the question in the inbox, although no code waits for it: the code has continued without the outcome."""
    why = "the code was cancelled while it ran" if error is None else str(getattr(error, "why", error))
    question = _question(walk, why, error, waits=False)
    note_question(walk.attempt, question_path(walk), "human_input", question, topic=EFFECT_QUESTION)


def tell_inbox(walk: EffectInProgress, outcome: EffectOutcome) -> None:
    """Its outcome is on record: it stays in the inbox if that is still open, and only then."""
    if outcome.is_open:
        ask_later(walk, outcome.error)
    else:
        withdraw(walk)


def withdraw(walk: EffectInProgress) -> None:
    """Withdraw the question to a person: the effect was settled otherwise, and that is on record."""
    for path in [path for path in walk.attempt.unwinding.asked if path.startswith(f"{walk.path}?")]:
        close_question(walk.attempt, path, "withdrawn", {"withdrawn": True})


async def _as_answered(walk: EffectInProgress, answer: Any) -> EffectOutcome:
    again = 0
    while True:
        choice = answer.get("choice") if isinstance(answer, dict) else answer
        if choice == "retry":
            return EffectOutcome(again="a person said so")
        if choice == "fail":
            return EffectOutcome(
                error=EffectUncertain(walk.call.name, "a person said that it failed"), settled="person"
            )
        value = answer.get("value") if isinstance(answer, dict) else None
        if value is None:  # done, but the person gave no result: the code has to deal with that
            return EffectOutcome(None, settled="person")
        try:
            return EffectOutcome(codec.decode(codec.encode(value), walk.call.signature.returns), settled="person")
        except Exception as problem:
            again += 1
            answer = await ask(walk, f"the value given does not fit: {str(problem).splitlines()[0]}", again)


# ── when ─────────────────────────────────────────────────────────────────────────────────────────

# Ends of an attempt after which its process may still be running an effect.
GIVEN_UP_AT_WORK = "given up, with an effect under way"
_UNSURE = frozenset(
    {"", "silent for a whole lease", "stalled", GIVEN_UP_AT_WORK, "superseded", "rolled back", "cancelled"}
)


def is_at_work(uid: str) -> bool:
    """True if this process is in the middle of an effect of this task."""
    return any(walk.attempt.uid == uid for walk in all_under_way())


async def may_run_until(store: Store, uid: str, entries: Sequence[Entry]) -> dict[int, datetime]:
    """By epoch of each attempt whose process may still be alive: the moment when its newest open effect is certainly
    over.

    `may_settle` waits so long at most.
    """
    open_ = {entry.path: entry for entry in entries if entry.op.partition(".")[0] == "effect"}
    intents = [entry for entry in open_.values() if entry.kind == "intent" and "until" not in (entry.note or {})]
    if not intents:
        return {}
    workers = {row.id: _process_of(row) for row in await store.rows(WorkerRow, "read_workers")}
    found: dict[int, datetime] = {}
    for attempt in await store.rows(AttemptRow, "read_attempts", uid=uid):
        process = workers.get(attempt.worker)
        ends = [int((one.note or {}).get("not_after") or 0) for one in intents if one.epoch == attempt.number]
        if not ends or process is None or not _may_still_run(attempt):
            continue
        if not is_proven_dead(process, same_machine=store.engine.is_local):
            found[attempt.number] = moment(max(ends) + LEASE_MS)
    return found


def _process_of(row: WorkerRow) -> Process:
    return Process(row.host, row.boot_id, row.pid_ns, row.pid, row.pid_start)


async def may_settle(attempt: Attempt, path: str, intent: Entry) -> None:
    """Return when the earlier attempt can no longer be running the effect: it ended by itself, it recorded that it
    stopped (lost_lease.py), its process is proven dead, or its deadline and a whole lease have passed. The wall clock
    is read once: setting it meanwhile makes the wait neither longer nor shorter."""
    clock, not_after = attempt.store.clock, int((intent.note or {}).get("not_after") or 0)
    left = min(not_after - clock.now_ms(), not_after - intent.at) + LEASE_MS
    end = clock.boottime() + left / 1000
    while (former := await _still_unsure(attempt, intent.epoch)) is not None and clock.boottime() < end:
        if await _is_dead(attempt, path, former.worker):
            return
        await Nap(_LOOK_SECONDS)
        attempt.fence.check()


async def _still_unsure(attempt: Attempt, epoch: int) -> AttemptRow | None:
    """The attempt with this epoch, if some of its code may still run."""
    attempts = await attempt.store.rows(AttemptRow, "read_attempts", uid=attempt.uid)
    former = next((row for row in attempts if row.number == epoch), None)
    return former if former is not None and _may_still_run(former) else None


def _may_still_run(attempt: AttemptRow) -> bool:
    """True if the process of an attempt, unless it is dead, may still be running an effect."""
    is_taken_over = attempt.ended.startswith(TAKEN_OVER) and not attempt.ended.endswith(STOPPED)
    return attempt.ended in _UNSURE or is_taken_over


async def _is_dead(attempt: Attempt, path: str, worker: str) -> bool:
    if worker == attempt.store.presence.worker:
        return not any(walk.attempt.uid == attempt.uid and walk.path == path for walk in all_under_way())
    for row in await attempt.store.rows(WorkerRow, "read_workers"):
        if row.id == worker:
            return is_proven_dead(_process_of(row), same_machine=attempt.store.engine.is_local)
    return True  # its row is deleted when it is proven dead, or when it exits with nothing under way
