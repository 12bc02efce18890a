"""Pauses that wait for people; as in `sqlite/queries`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row, TaskRow

_LIVE = ("pending", "running", "paused")
_EFFECT = "~effect"
_ASKING = ("human_approval", "human_input")
_NEVER = 9007199254740991


def inbox_questions(tables: Tables, p: Params) -> list[Row]:
    found = []
    for task, question in _open_questions(tables, p["namespace"]):
        place = (_or_never(question.expires_at), question.asked_at, task.uid, question.path)
        is_wanted = _is_asked_for(tables, task, p["only"]) and _kind(question) in p["kinds"]
        if is_wanted and place > (p["expires"], p["asked"], p["uid"], p["path"]):
            row = (task.uid, task.id, task.line, *question[:6], question.expires_at)
            found.append((place, (*row, _function(tables, task.uid), _part_of(tables, task))))
    return [row for _, row in sorted(found)][: p["limit"]]


def inbox_tasks(tables: Tables, p: Params) -> list[Row]:
    found = []
    for task in _asking_tasks(tables, p["namespace"]):
        place = (_or_never(task.due_at), task.updated_at, task.uid)
        is_wanted = _is_asked_for(tables, task, p["only"]) and task.pause_reason in p["reasons"]
        if is_wanted and place > (p["expires"], p["asked"], p["uid"]):
            numbers = [one.number for one in tables.events.get(task.uid, {}).values() if one.kind == "paused"]
            row = (task.uid, task.id, task.pause_reason, task.pause, task.due_at, task.updated_at)
            attempts = tables.attempts.get(task.uid, {})
            latest = attempts[max(attempts)] if attempts else None
            process = (None, None) if latest is None else (latest.host, latest.pid)
            found.append(
                (
                    place,
                    (*row, _function(tables, task.uid), *process, max(numbers, default=None), _part_of(tables, task)),
                )
            )
    return [row for _, row in sorted(found)][: p["limit"]]


def count_inbox(tables: Tables, p: Params) -> list[Row]:
    kinds = Counter(_kind(question) for _, question in _open_questions(tables, p["namespace"]))
    reasons = Counter(task.pause_reason for task in _asking_tasks(tables, p["namespace"]))
    return [*kinds.items(), *reasons.items()]


def _open_questions(tables: Tables, namespace: str) -> Iterator[tuple[TaskRow, Any]]:
    for task in tables.tasks.values():
        for question in tables.pauses.get(task.uid, {}).values():
            is_asked = task.status in _LIVE or question.topic == _EFFECT
            if task.namespace == namespace and is_asked and question.answer is None and question.reason in _ASKING:
                yield task, question


def _asking_tasks(tables: Tables, namespace: str) -> Iterator[TaskRow]:
    """Those that are paused by themselves, and not for a question of their function."""
    for task in tables.tasks.values():
        if task.namespace != namespace or not task.is_current or task.status != "paused":
            continue
        attempts = tables.attempts.get(task.uid, {})
        has_paused = bool(attempts) and attempts[max(attempts)].ended == "paused"
        questions = tables.pauses.get(task.uid, {}).values()
        is_open = any(one.answer is None and one.reason == task.pause_reason for one in questions)
        if task.pause_reason in _ASKING and not (has_paused and is_open):
            yield task


def _is_asked_for(tables: Tables, task: TaskRow, only: str | None) -> bool:
    """The filter by one task: its own questions, and those of its hidden parts."""
    return only in (None, task.uid) or bool(task.hidden and tables.calls[task.uid].parent_uid == only)


def _kind(question: Any) -> str:
    if question.topic == _EFFECT:
        return "effect"
    return "approval" if question.reason == "human_approval" else "input"


def _or_never(moment: int | None) -> int:
    return _NEVER if moment is None else moment


def _function(tables: Tables, uid: str) -> str | None:
    return tables.calls[uid].function if uid in tables.calls else None


def _part_of(tables: Tables, task: TaskRow) -> str | None:
    parent = tables.tasks.get(tables.calls[task.uid].parent_uid or "") if task.hidden else None
    return None if parent is None else parent.id


_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (inbox_questions, inbox_tasks, count_inbox)
QUERIES = {query.__name__: query for query in _QUERIES}
VERBS: dict[str, Callable[[Tables, Params], Row | None]] = {}
