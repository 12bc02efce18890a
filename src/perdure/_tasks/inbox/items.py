"""From rows to the items of the inbox. An item that is damaged or cannot be unsealed hides no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from perdure._ground.clock import moment
from perdure._model import (
    Event,
    InboxAnswer,
    InboxItem,
    Pause,
    UncertainCall,
    answer_of,
    kind_of_pause,
    of_pause,
    otherwise_of,
    pause_kind,
)
from perdure._store import AskingTask, PauseRow, QuestionRow, Store, TaskRow
from perdure._tasks.inbox.pause_ids import PauseId, write_pause_id
from perdure._tasks.pauses import Question, as_question, line_of
from perdure.errors import InvalidInput, KeyMissing, RecordDamaged

_UNREADABLE = (KeyMissing, RecordDamaged, InvalidInput)


class Asker(NamedTuple):
    """The asker: a task's function, and the task it is a hidden part of."""

    function: str = ""
    part_of: str = ""


# ── questions of durable functions ───────────────────────────────────────────────────────────────


def question_item(store: Store, row: QuestionRow) -> InboxItem:
    """An open question as the inbox shows it."""
    asked = row.path, row.reason, row.topic, row.question, row.asked_at, row.due_at
    pause = PauseRow(*asked, answer=None, answered_at=None, answered_by=None)
    place = PauseId(row.uid, *line_of(row.line, row.path))
    return _item_of_question(store, row.id, place, pause, Asker(row.function or "", row.part_of or ""))


def paused_item(store: Store, task: TaskRow, pause: PauseRow, asker: Asker) -> InboxItem:
    """A question of a task, answered or not."""
    place = PauseId(task.uid, *line_of(task.line, pause.path))
    return _item_of_question(store, task.id, place, pause, asker)


def _item_of_question(store: Store, task_id: str, place: PauseId, row: PauseRow, asker: Asker) -> InboxItem:
    known: dict[str, Any] = {
        "id": write_pause_id(place),
        "task_id": task_id,
        "uid": place.uid,
        "path": place.path,
        "reason": row.reason,
        "asked_at": moment(row.asked_at),
        "next_look_at": moment(row.due_at) if row.due_at is not None else None,
        **asker._asdict(),
    }
    try:
        question = as_question(store, task_id, place.uid, row)
        answer = _stored_answer(store, place.uid, row)
    except _UNREADABLE as error:
        kind: Any = "effect" if row.topic == "~effect" else "approval" if row.reason == "human_approval" else "input"
        return InboxItem(**known, kind=kind, text="", unreadable=error.what)
    return InboxItem(**known, **_shown(question), answer=answer)


def _stored_answer(store: Store, uid: str, row: PauseRow) -> InboxAnswer | None:
    if row.answer is None:
        return None
    at = moment(row.answered_at) if row.answered_at is not None else None
    return answer_of(store.unseal(uid, "answer", row.answer), at)


def _shown(question: Question) -> dict[str, Any]:
    asked = question.asked
    shown: dict[str, Any] = {
        "kind": pause_kind(asked, question.topic, question.details),
        "text": question.text,
        "stack": tuple(question.stack),
        "details": question.details,
    }
    if question.is_about_effect:
        shown |= {"choices": tuple(question.choices), "effect": _effect(question.details, question.text)}
    if asked is not None:
        shown |= {
            "expires_at": moment(asked.expires_at) if asked.expires_at is not None else None,
            "otherwise": otherwise_of(asked),
            "schema": asked.schema,
            "editable": asked.editable,
            "waits_for": {**(asked.check or {}), **({"checks": asked.checks} if asked.checks else {})},
        }
    elif question.is_about_signal:
        shown["schema"] = (question.signal or {}).get("schema")
    return shown


def _effect(details: Mapping[str, Any], text: str) -> UncertainCall:
    return UncertainCall(
        name=str(details.get("name", "")),
        call=str(details.get("call", text)),
        key=str(details.get("key", "")),
        why=str(details.get("why", "")),
        traceback=str(details.get("traceback", "")),
        is_waited_for=bool(details.get("waits", True)),
    )


# ── tasks that are paused by themselves ──────────────────────────────────────────────────────────


def task_item(store: Store, row: AskingTask) -> InboxItem:
    """The pause of a task as the inbox shows it."""
    known: dict[str, Any] = {
        "id": write_pause_id(PauseId(row.uid, row.number or 1)),
        "task_id": row.id,
        "uid": row.uid,
        "reason": row.pause_reason,
        "next_look_at": moment(row.due_at) if row.due_at is not None else None,
        "function": row.function or "",
        "part_of": row.part_of or "",
    }
    try:
        pause: Pause = store.unseal(row.uid, "pause", row.pause, Pause)
    except _UNREADABLE as error:
        kind: Any = "approval" if row.pause_reason == "human_approval" else "input"
        return InboxItem(**known, kind=kind, text="", asked_at=moment(row.updated_at), unreadable=error.what)
    return InboxItem(**known, **_of_pause(pause, row))


def _of_pause(pause: Pause, row: AskingTask) -> dict[str, Any]:
    asked = of_pause(pause)
    by = (pause.by.get("host"), pause.by.get("pid"))
    is_foreign = bool(row.function) or (row.host is not None and by != (row.host, row.pid))
    kind = kind_of_pause(pause, is_foreign=is_foreign, is_looked_at=row.due_at is not None)
    return {
        "kind": kind,
        "text": pause.message if kind == "credential" else str(pause.payload.get("question") or pause.message),
        "asked_at": pause.since,
        "by": pause.by,
        "expires_at": pause.expires_at,
        "otherwise": otherwise_of(asked),
        "schema": asked.schema,
        "editable": asked.editable,
        "waits_for": {name: pause.payload[name] for name in _WAITED_FOR if name in pause.payload},
        "details": pause.details,
    }


_WAITED_FOR = ("system", "job", "url", "command", "file", "task", "callback", "provider", "checks")


def ended_item(task: TaskRow, began: Event, end: Event | None, asker: Asker) -> InboxItem:
    """A pause that is over, as the events of its task tell it."""
    told: Mapping[str, Any] = began.data if isinstance(began.data, Mapping) else {}
    reason = str(told.get("reason") or "human_input")
    return InboxItem(
        id=write_pause_id(PauseId(task.uid, began.number)),
        task_id=task.id,
        uid=task.uid,
        kind="approval" if reason == "human_approval" else "input",
        reason=reason,  # type: ignore[arg-type]
        text=str(told.get("message") or ""),
        asked_at=began.at,
        by=began.author,
        answer=_end_of(end),
        **asker._asdict(),
    )


def _end_of(end: Event | None) -> InboxAnswer:
    if end is None:
        return InboxAnswer(how="ended", at=None)
    told: Mapping[str, Any] = end.data if isinstance(end.data, Mapping) else {}
    if end.kind == "resumed" and "by" in told:
        return answer_of(told, end.at)
    how = str(told.get("how") or ("ended" if end.kind == "resumed" else end.kind))
    return InboxAnswer(how=how, at=end.at, by=str(end.author.get("user") or ""))
