"""Decide why a task runs or does not: twenty rows, of which the first that fits wins. Pure.

Each row is a function of the facts that answers None when it does not fit. The sentences are in texts.py, the ways on
in ways.py; this file owns the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.inspect.situation import texts, ways
from perdure._durable.inspect.situation.facts import Facts, OpenQuestion
from perdure._model import BY_ITSELF, FOR_YOU, Cause, LastError, Situation, SituationKind, Wait, Way


class _Found(Struct, frozen=True, kw_only=True):
    """The content of a row."""

    kind: SituationKind
    cause: Cause
    say: str
    next: str
    since: datetime | None
    until: datetime | None = None
    details: Sequence[str] = ()
    facts: Mapping[str, Any] = {}
    by_itself: bool = False
    unattended: bool = False
    waits: Sequence[Wait] = ()
    last_error: LastError | None = None
    ways: Sequence[Way] = ()


def decide(facts: Facts) -> Situation:
    """Why this task is, or is not, running."""
    found = next(answer for row in ROWS if (answer := row(facts)) is not None)
    is_ready = facts.status == "running" and found.cause not in ("switch", "cancel", "damaged", "sealed", "question")
    then = found.next
    if is_ready and facts.uncertain is not None and not found.waits:
        then = texts.settled_first(facts.uncertain, found.next if found.kind == "stuck" else "")
    say = texts.cut(found.say)
    return Situation(
        kind=found.kind,
        cause=found.cause,
        say=say,
        since=found.since,
        until=found.until,
        you=sum(one.kind in FOR_YOU for one in _questions(facts)),
        headline=texts.headline(found.kind, found.say),
        details=[text for text in found.details if text],
        next=then,
        facts={name: value for name, value in found.facts.items() if value is not None},
        by_itself=found.by_itself,
        unattended=found.unattended,
        holder=facts.holder if facts.status not in ("completed", "failed", "cancelled") else None,
        waits=found.waits,
        last_error=found.last_error,
        ways=found.ways,
    )


# ── 1, 2: it has ended ───────────────────────────────────────────────────────────────────────────


def _ended(facts: Facts) -> _Found | None:
    if facts.status not in ("completed", "cancelled"):
        return None
    is_cancelled = facts.status == "cancelled"
    return _Found(
        kind="cancelled" if is_cancelled else "completed",
        cause="ended",
        say=texts.cancelled(facts) if is_cancelled else facts.result or "completed",
        next=texts.nothing_follows(facts),
        since=facts.finished_at,
        facts={"by": facts.ended_by or None, "undone": facts.undone, "attempts": facts.attempts},
        ways=(ways.fork(facts.id), ways.archive(facts.id)),
    )


def _failed(facts: Facts) -> _Found | None:
    if facts.status != "failed":
        return None
    return _Found(
        kind="failed",
        cause="ended",
        say=texts.failed(facts.error),
        next=texts.nothing_follows(facts),
        since=facts.finished_at,
        details=(texts.kept(facts),),
        facts={"attempts": facts.attempts},
        last_error=facts.error,
        ways=ways.of_failure(facts),
    )


# ── 3, 4: stopped from outside ───────────────────────────────────────────────────────────────────


def _stopped(facts: Facts) -> _Found | None:
    if facts.switch is None:
        return None
    return _Found(
        kind="stopped",
        cause="switch",
        say=texts.stopped(facts.switch),
        next=texts.how_to_lift(facts, facts.switch),
        since=facts.switch.since,
        details=(texts.kept(facts),),
        facts={"by": facts.switch.user, "why": facts.switch.why, "all": facts.switch.is_for_all},
        ways=(ways.lift(facts.id, is_for_all=facts.switch.is_for_all),),
    )


def _cancelling(facts: Facts) -> _Found | None:
    if not facts.is_cancelling:
        return None
    is_unattended = facts.at_work is None and not facts.workers
    return _Found(
        kind="cancelling",
        cause="cancel",
        say=texts.cancelling(facts),
        next=texts.next_of_cancel(facts),
        since=facts.cancel_asked_at,
        details=(texts.kept(facts),),
        by_itself=True,
        unattended=is_unattended,
        ways=() if facts.at_work is not None else (ways.start_worker(facts.queue),),
    )


# ── 5, 6, 7: its record or its code prevents it ──────────────────────────────────────────────────


def _damaged(facts: Facts) -> _Found | None:
    if not facts.damaged or facts.at_work is not None:
        return None
    return _Found(
        kind="stuck",
        cause="damaged",
        say=facts.damaged,
        next=facts.damaged_do or "restore the store from a backup, or fork the task before the damage",
        since=facts.updated_at,
        details=(texts.kept(facts),),
        ways=(ways.fork(facts.id, "Fork before it…"), ways.journal(facts.id)),
    )


def _sealed(facts: Facts) -> _Found | None:
    if not facts.sealed or facts.at_work is not None:
        return None
    return _Found(
        kind="stuck",
        cause="sealed",
        say=facts.sealed,
        next="give this process the key; then it can be read again",
        since=facts.updated_at,
        ways=(ways.give_key(),),
    )


def _diverged(facts: Facts) -> _Found | None:
    if facts.status != "paused" or facts.pause_kind != "diverged":
        return None
    pause = facts.pause
    return _Found(
        kind="stuck",
        cause="diverged",
        say=texts.diverged(pause),
        next=texts.advice(facts),
        since=pause.since if pause is not None else facts.updated_at,
        details=(texts.kept(facts),),
        ways=(ways.journal(facts.id), ways.resume(facts.id, "Compare again"), ways.fork(facts.id)),
    )


# ── 8, 9, 10: it waits ───────────────────────────────────────────────────────────────────────────


def _asks_you(facts: Facts) -> _Found | None:
    asked = [one for one in _questions(facts) if one.kind in FOR_YOU and _holds_it_up(facts, one)]
    if not asked:
        return None
    first = asked[0]
    others = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
    return _Found(
        kind="you",
        cause="question",
        say=texts.cut(texts.question(first), texts.MOST_SAID - len(others)) + others,
        next=first.way_on,
        since=first.since,
        until=first.expires_at,
        details=(
            texts.asked_at(facts, first) if first.path else "",
            texts.otherwise(first, facts.now),
            texts.kept(facts),
        ),
        facts={"kind": first.kind, "otherwise": first.otherwise or None},
        by_itself=first.expires_at is not None,
        unattended=first.expires_at is not None and not facts.workers,
        waits=_waits(facts),
        last_error=facts.error,
        ways=[way for one in asked[:5] for way in _ways_of(facts, one)],
    )


def _paused(facts: Facts) -> _Found | None:
    if facts.status != "paused" or facts.pause_kind != "outside":
        return None
    pause = facts.pause
    return _Found(
        kind="stopped",
        cause="paused",
        say=texts.paused(pause),
        next="perdure resume",
        since=pause.since if pause is not None else facts.updated_at,
        details=(texts.kept(facts),),
        facts={"by": pause.by.get("user") if pause is not None else None},
        ways=(ways.resume(facts.id), ways.cancel(facts.id)),
    )


def _waiting(facts: Facts) -> _Found | None:
    asked = [one for one in _questions(facts) if one.kind in BY_ITSELF and _holds_it_up(facts, one)]
    if facts.status != "paused" or not asked:
        return None
    first = min(asked, key=lambda one: (one.due_at is None, one.due_at or facts.now))
    needs_command = _needs_command(facts)
    is_unattended = first.kind != "signal" and (not facts.workers or needs_command)
    tries, most = _tries(facts)
    is_retry = tries is not None and first.due_at is not None
    say = (
        texts.retry(facts, tries=tries, most=most, due=first.due_at or facts.now, error=_tried(facts))
        if is_retry
        else texts.wait(facts, first)
    )
    remark = f" — but {texts.unnoticed(facts, needs_command=needs_command)}" if is_unattended else ""
    return _Found(
        kind="waiting",
        cause="retry" if is_retry else "pause",
        say=texts.cut(say, texts.MOST_SAID - len(remark)) + remark,
        next=texts.end_of_wait(facts, first, needs_command=needs_command),
        since=first.since,
        until=first.expires_at or first.due_at,
        details=(texts.otherwise(first, facts.now), texts.kept(facts)),
        facts={"kind": first.kind, "looks": first.checks or None, "task": _task_of(first) or None},
        by_itself=first.kind != "signal",
        unattended=is_unattended,
        waits=_waits(facts),
        last_error=LastError(type="", message=_tried(facts)) if is_retry and _tried(facts) else None,
        ways=_ways_of(facts, first),
    )


# ── 11: it depends on others ─────────────────────────────────────────────────────────────────────


def _blocked(facts: Facts) -> _Found | None:
    still = [id for id, status in facts.dependencies.items() if status != "completed"]
    if facts.status not in ("pending", "running") or facts.started_at is not None or not still:
        return None
    ended = [id for id in still if facts.dependencies[id] in ("failed", "cancelled")]
    is_stuck = bool(ended) and facts.policy == "wait"
    return _Found(
        kind="stuck" if is_stuck else "blocked",
        cause="dependency_failed" if is_stuck else "dependencies",
        say=texts.failed_dependencies(facts) if is_stuck else texts.dependencies(facts),
        next=texts.BLOCKED,
        since=facts.created_at,
        facts={"dependencies": dict(facts.dependencies)},
        by_itself=not is_stuck,
        waits=[
            Wait(kind="task", say=f"task {id} ({facts.dependencies[id] or 'not there yet'})", task=id,
                 status=facts.dependencies[id] or "")
            for id in still
        ],
        ways=[ways.look_at(id) for id in (ended or still)[:5]] + [ways.cancel(facts.id)],
    )  # fmt: skip


# ── 12, 13, 14: a process holds it ───────────────────────────────────────────────────────────────


def _stalled(facts: Facts) -> _Found | None:
    if not _is_held(facts) or facts.stalled_seconds is None:
        return None
    return _Found(
        kind="stalled",
        cause="stalled",
        say=texts.stalled(facts),
        next="it continues where it is, or pause it at once and look",
        since=facts.held_since,
        details=(texts.kept(facts),),
        facts={"seconds": facts.stalled_seconds, "call": facts.call.path if facts.call else None},
        ways=(ways.terminal(facts.id), ways.pause(facts.id, now=True), ways.take(facts.id)),
    )


def _working(facts: Facts) -> _Found | None:
    if not _is_held(facts) or (facts.holder is not None and facts.holder.state == "silent"):
        return None
    return _Found(
        kind="working",
        cause="at_work",
        say=texts.working(facts),
        next="it continues where it is",
        since=facts.call.since if facts.call and facts.call.since else facts.held_since,
        details=(texts.kept(facts),),
        facts={"call": facts.call.path if facts.call else None},
        by_itself=True,
        ways=(ways.pause(facts.id), ways.terminal(facts.id)),
    )


def _silent(facts: Facts) -> _Found | None:
    holder = facts.holder
    if not _is_held(facts) or holder is None or holder.state != "silent":
        return None
    return _Found(
        kind="starting",
        cause="silent",
        say=texts.silent(holder),
        next="it continues where it is, or another process takes it over",
        since=facts.held_since,
        facts={"silent_seconds": holder.silent_seconds, "lease_seconds": holder.lease_seconds},
        by_itself=True,
        unattended=not facts.workers,
    )


# ── 15 to 20: no process holds it ────────────────────────────────────────────────────────────────


def _before_its_time(facts: Facts) -> _Found | None:
    due = facts.not_before
    if not facts.is_function or due is None or due <= facts.now:
        return None
    remark = "" if facts.workers else " — but no worker is there to notice"
    return _Found(
        kind="waiting",
        cause="retry",
        say=texts.retry(facts, tries=None, most=None, due=due, error=str(facts.error or "")) + remark,
        next=texts.before_next_attempt(due),
        since=facts.updated_at,
        until=due,
        details=(texts.kept(facts),),
        by_itself=True,
        unattended=not facts.workers,
        last_error=facts.error,
        ways=(ways.cancel(facts.id),),
    )


def _without_worker(facts: Facts) -> _Found | None:
    if not facts.is_function or facts.workers:
        return None
    return _Found(
        kind="stuck",
        cause="no_worker",
        say=texts.NO_WORKER,
        next=f"{texts.NO_WORKER}: {texts.start_one(facts.queue)}",
        since=facts.updated_at,
        details=(texts.workers_there(facts.workers, str(facts.function)), texts.kept(facts)),
        facts={"function": facts.function, "version": facts.version, "queue": facts.queue},
        ways=(ways.start_worker(facts.queue), ways.cancel(facts.id)),
    )


def _without_code(facts: Facts) -> _Found | None:
    if not facts.is_function:
        return None
    knowing = [worker for worker in facts.workers if worker.knows(str(facts.function), facts.version)]
    if any(facts.queue in worker.queues for worker in knowing):
        return None
    return _Found(
        kind="stuck",
        cause="code",
        say=texts.unknown_code(facts),
        next=texts.start_with_code(facts),
        since=facts.updated_at,
        details=(
            texts.workers_there(facts.workers, str(facts.function)),
            texts.queues_taken(knowing),
            texts.kept(facts),
        ),
        facts={"function": facts.function, "version": facts.version, "queue": facts.queue},
        ways=(ways.start_worker(facts.queue), ways.cancel(facts.id)),
    )


def _not_begun(facts: Facts) -> _Found | None:
    if facts.could_not_begin is None:
        return None
    return _Found(
        kind="stuck",
        cause="could_not_begin",
        say=texts.not_begun(facts),
        next=texts.next_of_not_begun(facts),
        since=facts.updated_at,
        details=(texts.kept(facts),),
        facts={"process": facts.last_process},
        ways=(ways.plan(facts.id), ways.cancel(facts.id)),
    )


def _its_turn(facts: Facts) -> _Found | None:
    if not facts.is_function:
        return None
    return _Found(
        kind="starting",
        cause="turn",
        say=texts.turn(facts),
        next=texts.ITS_TURN,
        since=facts.updated_at,
        details=(texts.kept(facts),),
        facts={"queue": facts.queue, "ahead": facts.ahead},
        by_itself=True,
    )


def _idle(facts: Facts) -> _Found | None:
    return _Found(
        kind="idle",
        cause="unattended",
        say=texts.idle(facts),
        next="the next attempt continues after the last call that ended" if facts.attempts else "an attempt begins it",
        since=facts.updated_at,
        details=(texts.kept(facts),),
        ways=(ways.attach(facts.id), ways.cancel(facts.id)),
    )


ROWS: tuple[Callable[[Facts], _Found | None], ...] = (
    _ended,
    _failed,
    _stopped,
    _cancelling,
    _damaged,
    _sealed,
    _diverged,
    _asks_you,
    _paused,
    _waiting,
    _blocked,
    _stalled,
    _working,
    _silent,
    _before_its_time,
    _without_worker,
    _without_code,
    _not_begun,
    _its_turn,
    _idle,
)


# ── what several rows ask ────────────────────────────────────────────────────────────────────────


def _is_held(facts: Facts) -> bool:
    return facts.at_work is not None


def _questions(facts: Facts) -> Sequence[OpenQuestion]:
    """Its open questions; of a plain task, its pause."""
    return facts.questions


def _holds_it_up(facts: Facts, asked: OpenQuestion) -> bool:
    return asked.is_waited_for or (facts.status == "paused" and not any(one.is_waited_for for one in facts.questions))


def _waits(facts: Facts) -> list[Wait]:
    return [_wait(facts, one) for one in _questions(facts)]


def _wait(facts: Facts, asked: OpenQuestion) -> Wait:
    task = _task_of(asked)
    return Wait(
        kind=asked.kind,
        say=texts.question(asked) if asked.kind in FOR_YOU else texts.wait(facts, asked),
        since=asked.since,
        until=asked.expires_at or asked.due_at,
        path=asked.path,
        task=task,
        status=facts.awaited.get(task) or "" if task else "",
    )


def _task_of(asked: OpenQuestion) -> str:
    return asked.topic if asked.kind == "task" else ""


def _ways_of(facts: Facts, asked: OpenQuestion) -> list[Way]:
    found = list(ways.of_question(facts.id, asked))
    if not asked.path:  # the pause of a plain task, or one that was made for a durable function
        found = [replace(way, verb="resume", about="") if way.label == "End the wait now" else way for way in found]
        is_own = asked.kind == "input" and facts.is_function
        found = [ways.resume(facts.id), ways.cancel(facts.id)] if is_own else found
    task = _task_of(asked)
    return [*found, ways.look_at(task)] if task else found


def _needs_command(facts: Facts) -> bool:
    """True if it waits for a command that no live worker may run."""
    is_asked = facts.pause is not None and facts.pause_kind == "poll" and "command" in facts.pause.payload
    return is_asked and not any(worker.commands for worker in facts.workers)


def _tries(facts: Facts) -> tuple[int | None, int | None]:
    details = facts.pause.details if facts.pause is not None else {}
    tries, most = details.get("tries"), details.get("most")
    return (tries, most) if type(tries) is int and type(most) is int else (None, None)


def _tried(facts: Facts) -> str:
    return str(facts.pause.details.get("failed") or "") if facts.pause is not None else ""
