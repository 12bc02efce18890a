"""A recorded call as it is shown: on one line, or whole. Pure.

Texts and values are without secrets and raw bytes. Of classes that are not known here, the fields are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable.journal.journal_calls import MARKS, CallState, EntriesOf, Standing
from perdure._durable.journal.journal_reader import failure_in
from perdure._durable.journal.outline import start_of
from perdure._durable.journal.shown_values import shown_call, shown_data, whole_value, without_bytes
from perdure._ground.clock import moment
from perdure._ground.secrets.known_secrets import redact, redact_value
from perdure._model import Entry, name_of, scope_of
from perdure._replay import arguments_in
from perdure.errors import PerdureError


class CallError(Struct, frozen=True, kw_only=True):
    """How a call failed."""

    type: str
    message: str
    traceback: str = ""


class CallTry(Struct, frozen=True, kw_only=True):
    """A try of a call that failed and was followed by another."""

    number: int
    error: CallError
    again_at: datetime | None  # when the next one was due


class CallMark(Struct, frozen=True, kw_only=True):
    """A mark noted while a call ran: progress, a stream's pieces, a model's cost."""

    position: int
    kind: str
    at: datetime | None
    text: str


class JournalCall(Struct, frozen=True, kw_only=True):
    """One call of a durable function. The fields after `parent` are filled only when the call was requested alone."""

    position: int  # of its last entry; 0 for a pause without an entry yet
    path: str  # its scope, its name, and its number among calls of that name there: fetch#2
    name: str
    op: str  # step, effect, child, pause, now, …
    state: CallState
    at: datetime | None  # when it began
    took: timedelta
    attempt: int  # the epoch of the attempt that wrote its last entry
    call: str  # with its arguments, on one line
    returned: str = ""  # what it returned, on one line
    error: CallError | None = None
    scope: str = ""
    parent: str | None = None  # the path of the call whose body made this one
    arguments: Any = None  # {"args": […], "kwargs": {…}}; None if the journal does not keep them
    value: Any = None
    key: str = ""  # of an effect
    settled: str = ""  # by what an effect's outcome became known: verify, person
    undone_at: datetime | None = None
    tries: Sequence[CallTry] = ()
    marks: Sequence[CallMark] = ()
    tokens: int = 0
    money: float = 0.0


class Damage(NamedTuple):
    """An entry that cannot be read, or is missing."""

    position: int
    why: str


def unreadable(position: int, why: str) -> JournalCall:
    error = CallError(type="damaged", message=why)
    took = timedelta(0)
    return JournalCall(
        position=position, path="", name="", op="", state="damaged", at=None, took=took, attempt=0, call="", error=error
    )


def shown_as(call: EntriesOf | Damage, standing: Standing) -> JournalCall:
    if isinstance(call, Damage):
        return unreadable(*call)
    last, path, began = call.last, call.path, start_of(call)
    state, scope = standing.state_of(call), scope_of(path)
    ended = call.has_ended and last.at
    return JournalCall(
        position=call.position,
        path=redact(path.removeprefix("|")),
        name=redact(name_of(path)),
        op=call.op,
        state=state,
        at=moment(began) if began else None,
        took=timedelta(milliseconds=max(last.at - began, 0) if ended and call.intent is not None else last.took_ms),
        attempt=last.epoch,
        call=shown_call(last, call.said),
        returned=shown_data(last.value) if state == "done" and call.has_ended else "",
        error=_error(last),
        scope=redact(scope.partition("|")[0]),
        parent=redact(scope.removeprefix("|")) if "|" in scope else None,
    )


def _error(entry: Entry) -> CallError | None:
    failure = failure_in(entry)
    if not failure.type:
        return None
    return CallError(type=failure.type, message=redact(failure.message), traceback=redact(failure.traceback))


def shown_whole(call: EntriesOf, standing: Standing, entries: Sequence[tuple[int, Entry]]) -> JournalCall:
    shown, last = shown_as(call, standing), call.last
    note: Mapping[str, Any] = last.note or (call.intent.note if call.intent is not None else None) or {}
    found = arguments_in(last.digest)
    own = [one for one in entries if scope_of(one[1].path) == call.path]
    undone = [entry for _, entry in own if entry.op == "undo" and entry.kind == "result" and entry.error is None]
    return replace(
        shown,
        arguments=None
        if found is None
        else redact_value({"args": without_bytes(found[0]), "kwargs": without_bytes(found[1])}),
        value=_value(last) if call.has_ended else None,
        key=str(note.get("key") or ""),
        settled="person" if call.path in standing.choices else str(note.get("settled") or ""),
        undone_at=moment(undone[-1].at) if undone else None,
        tries=_failed_tries(call),
        marks=[_mark(position, entry) for position, entry in own if entry.op in MARKS],
        tokens=sum(int((entry.note or {}).get("spent_tokens") or 0) for _, entry in own),
        money=sum(float((entry.note or {}).get("spent_money") or 0) for _, entry in own),
    )


def _value(entry: Entry) -> Any:
    try:
        return whole_value(entry.value)
    except (PerdureError, RecursionError) as error:
        return str(error)


def _failed_tries(call: EntriesOf) -> list[CallTry]:
    """The tries whose failure an intent records."""
    found = []
    for entry in (call.intent, *(call.later or ())):
        error = _error(entry) if entry is not None else None
        if entry is None or error is None:
            continue
        note = entry.note or {}
        until = note.get("until")
        again = moment(until) if isinstance(until, int) else moment(entry.at) if entry.at else None
        tries = int(note.get("tries") or 1)
        found.append(CallTry(number=tries if until else tries - 1, error=error, again_at=again))
    return found


def _mark(position: int, entry: Entry) -> CallMark:
    text = shown_data(entry.value) if entry.op in ("progress", "begun") else ""
    return CallMark(position=position, kind=entry.op, at=moment(entry.at) if entry.at else None, text=text)
