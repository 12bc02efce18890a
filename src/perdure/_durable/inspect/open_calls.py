"""Calls that a task has begun and not ended, read from its journal and its open questions; and recent results.

Owns how a call is shown to a person: with its arguments, the plain functions around it, where its last try failed, and
until when it can still be running elsewhere. Pure: where_report.py reads the store, this file formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.control import BEGUN
from perdure._durable.effects import shown_of
from perdure._durable.journal import failure_in, shown_data
from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._ground.secrets.known_secrets import redact
from perdure._ground.traceback_text import place_in
from perdure._model import Entry, name_of, scope_of
from perdure._tasks import Question

_MOST_RETURNED = 5


class CallFrame(Struct, frozen=True, kw_only=True):
    """One call on the way to where the task is now."""

    name: str
    scope: str
    path: str = ""  # its scope, its name, and its number among calls of that name: chapter#8
    call: str = ""  # with its arguments, as text
    state: str  # under way, cut off (no process works on it any more), uncertain, waiting
    since: datetime | None = None
    note: str = ""
    stack: Sequence[str] = ()  # the plain functions around the call, outermost first, with their arguments
    returned: Sequence[str] = ()  # recent results in its scope, if that is not the function's own
    error: str = ""  # the error of the last try, or the reason why the outcome is open
    traceback: str = ""  # the traceback of that error
    until: datetime | None = None  # uncertain effect: the latest moment its process can still be running it


def open_calls(
    entries: Sequence[Entry],
    questions: Sequence[Question],
    *,
    at_work: int | None,
    until: Mapping[int, datetime] | None = None,
) -> list[CallFrame]:
    """The calls under way. `at_work` is the epoch of the running attempt, if there is one. `until` maps the epoch of an
    attempt whose process may still run its effect to the moment after which that effect is certainly over."""
    asked = {question.path.rpartition("?")[0]: question for question in questions}
    ended = {entry.path for entry in entries if entry.kind != "intent"}
    found: dict[str, CallFrame] = {}
    effects: set[str] = set()
    for entry in entries:
        if entry.op == BEGUN and entry.epoch > 0 and (path := entry.path.removesuffix(f"|{BEGUN}")) not in ended:
            begun = _begun(path, entry, at_work)
            found[path] = replace(found[path], stack=begun.stack) if path in effects else begun
        elif entry.kind == "intent" and entry.path not in ended:
            before = found.get(entry.path)
            question = asked.get(entry.path)
            found[entry.path] = _intended(entry, at_work, before, question, (until or {}).get(entry.epoch))
            if _is_effect(entry):
                effects.add(entry.path)
    for question in questions:
        if not question.is_left:
            found[question.path] = _asked(question)
    calls = sorted(found.values(), key=lambda frame: (frame.scope, frame.name))
    return [_with_returned(call, entries) if call.scope else call for call in calls]


def _begun(path: str, entry: Entry, at_work: int | None) -> CallFrame:
    stack = str((entry.note or {}).get("stack") or "")
    return CallFrame(
        name=name_of(path),
        scope=scope_of(path),
        path=path.removeprefix("|"),
        call=redact(str(codec.decode(entry.value))) if entry.value else "",
        state="under way" if at_work is not None else "cut off",
        since=moment(entry.at),
        stack=stack.split("\n") if stack else (),
    )


def _is_effect(entry: Entry) -> bool:
    return entry.op.partition(".")[0] == "effect"


def _intended(
    entry: Entry, at_work: int | None, before: CallFrame | None, question: Question | None, until: datetime | None
) -> CallFrame:
    note = entry.note or {}
    is_known = not _is_effect(entry) or (entry.epoch == at_work and question is None)
    failure = failure_in(entry)
    why = redact(str(question.details.get("why") or "")) if question is not None else str(failure)
    trace = str(question.details.get("traceback") or "") if question is not None else failure.traceback
    return CallFrame(
        name=name_of(entry.path),
        scope=scope_of(entry.path),
        path=entry.path.removeprefix("|"),
        call=shown_of(entry) if _is_effect(entry) else str(note.get("shown") or (before.call if before else "")),
        state="under way" if is_known else "uncertain",
        since=moment(entry.at),
        note=f"try {note.get('tries') or 1}",
        stack=question.stack if question is not None else (before.stack if before else ()),
        error=why,
        traceback=trace,
        until=None if is_known or question is not None else until,
    )


def _asked(question: Question) -> CallFrame:
    return CallFrame(
        name=name_of(question.path),
        scope=scope_of(question.path),
        path=question.path.removeprefix("|"),
        state="waiting",
        since=question.asked_at,
        note=redact(question.text),
        stack=() if question.is_about_effect else question.stack,  # else the frame of the effect shows it
    )


def _with_returned(call: CallFrame, entries: Sequence[Entry]) -> CallFrame:
    own = [entry for entry in entries if entry.kind == "result" and scope_of(entry.path) == call.scope]
    return replace(call, returned=last_returned([entry for entry in own if entry.op != BEGUN]))


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def last_returned(ends: Sequence[Entry]) -> list[str]:
    """The results of the last of these calls, the newest last."""
    return [_returned(entry) for entry in ends[-_MOST_RETURNED:]]


def _returned(entry: Entry) -> str:
    """The result of a call, for people: short, and without secrets."""
    path = entry.path.removeprefix("|")
    if entry.error is not None:
        failure = failure_in(entry)
        place = place_in(failure.traceback)
        return f"{path} raised {failure}" + (f", {place}" if place else "")
    return f"{path} -> {shown_data(entry.value)}"
