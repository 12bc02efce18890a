"""Reads and writes of durable functions; the same names and parameters as `sqlite/queries`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from perdure._store.memory.tables import Lease, Tables
from perdure._store.memory.verbs import change, create_task, end_attempts, forget_asked, free, put_entries
from perdure._store.rows import AttemptRow, Params, Row, TaskRow

_LIVE = ("pending", "running", "paused")
# The outcome of an effect can be asked and given after the task has ended, too.
_EFFECT = "~effect"


class Called(NamedTuple):
    function: str
    version: int
    arguments: bytes
    queue: str
    priority: int
    parent_uid: str | None
    budget: bytes | None
    key: str = ""
    not_before: int | None = None
    deadline_at: int | None = None
    losses: int = 0
    lost_position: int = 0


class Question(NamedTuple):
    path: str
    reason: str
    topic: str | None
    question: bytes
    asked_at: int
    due_at: int | None
    answer: bytes | None = None
    answered_at: int | None = None
    answered_by: str | None = None
    expires_at: int | None = None


class Signal(NamedTuple):
    name: str
    number: int
    value: bytes
    sent_at: int
    sent_by: str
    taken_by: str | None
    once: str | None


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────


def start_function(tables: Tables, p: Params) -> Row | None:
    row = create_task(tables, p)
    if row is not None:
        names = ["function", "function_version", "arguments", "queue", "priority", "parent_uid", "budget"]
        names += ["call_key", "not_before", "deadline_at"]
        tables.put(tables.calls, p["uid"], Called(*(p[name] for name in names)))
        if p["worker"] is not None:
            _begin_at_once(tables, p)
    return row


def start_hidden(tables: Tables, p: Params) -> Row | None:
    row = start_function(tables, p)
    if row is not None:
        tables.put(tables.tasks, p["uid"], tables.tasks[p["uid"]]._replace(hidden=1))
    return row


def _begin_at_once(tables: Tables, p: Params) -> None:
    """The process that starts the task carries it out: it has the lease from the beginning."""
    uid, at = p["uid"], p["at"]
    tables.put(tables.leases, uid, Lease(1, p["worker"], at))
    tables.put_of(
        tables.attempts, uid, 1, AttemptRow(1, p["worker"], p["host"], p["pid"], p["user"], p["agent"], at, None, "")
    )
    tables.put(tables.tasks, uid, tables.tasks[uid]._replace(attempts=1, started_at=at))


def complete_function(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or not task.is_current or task.status != "running":
        return None
    if not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    nothing = dict.fromkeys(("pause_reason", "pause", "due_at", "error"))
    change(tables, task, p, status="completed", finished_at=p["at"], result=p["result"], **nothing)
    free(tables, task.uid)
    end_attempts(tables, task.uid, p["at"], "completed")
    return (task.uid,)


def fork_function(tables: Tables, p: Params) -> Row | None:
    row = start_function(tables, p)
    if row is not None:
        put_entries(tables, p["uid"], 1, p)
    return row


def open_pause(tables: Tables, p: Params) -> Row | None:
    uid, path = p["uid"], p["path"]
    if not tables.may_write(uid, p["epoch"], p["worker"]):
        return None
    if path in tables.pauses.get(uid, {}):
        return (path,)
    question = Question(path, p["reason"], p["topic"], p["question"], p["at"], p["due_at"], expires_at=p["expires_at"])
    early = _first_signal(tables, uid, p["topic"])
    if early is not None:
        question = question._replace(answer=early.value, answered_at=p["at"], answered_by=early.sent_by)
        tables.put_of(tables.signals, uid, (early.name, early.number), early._replace(taken_by=path))
    tables.put_of(tables.pauses, uid, path, question)
    return (path,)


def _first_signal(tables: Tables, uid: str, topic: str | None) -> Signal | None:
    waiting = [s for s in tables.signals.get(uid, {}).values() if s.name == topic and s.taken_by is None]
    return min(waiting, key=lambda signal: signal.number, default=None)


def answer_pause(tables: Tables, p: Params) -> Row | None:
    task, question = tables.tasks.get(p["uid"]), tables.pauses.get(p["uid"], {}).get(p["path"])
    if task is None or question is None or question.answer is not None:
        return None
    if task.status not in _LIVE and question.topic != _EFFECT:
        return None
    if p["line"] not in (None, task.line):
        return None
    _answer(tables, task.uid, question, p["answer"], p)
    change(tables, task, p, **_woken(tables, task))
    return (question.path,)


def send_signal(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.status not in _LIVE:
        return None
    if p["once"] is not None and any(s.once == p["once"] for s in tables.signals.get(task.uid, {}).values()):
        return None
    waiting = [
        q for q in _in_order(tables.pauses.get(task.uid, {}).values()) if q.topic == p["name"] and q.answer is None
    ]
    number = 1 + max((n for name, n in tables.signals.get(task.uid, {}) if name == p["name"]), default=0)
    taken_by = waiting[0].path if waiting else None
    signal = Signal(p["name"], number, p["value"], p["at"], p["author"], taken_by, p["once"])
    tables.put_of(tables.signals, task.uid, (signal.name, number), signal)
    if waiting:
        _answer(tables, task.uid, waiting[0], p["value"], p)
    change(tables, task, p, **(_woken(tables, task) if waiting else {}))
    return (number,)


def _answer(tables: Tables, uid: str, question: Question, answer: bytes, p: Params) -> None:
    answered = question._replace(answer=answer, answered_at=p["at"], answered_by=p["author"])
    tables.put_of(tables.pauses, uid, question.path, answered)


def _woken(tables: Tables, task: TaskRow) -> dict[str, Any]:
    """Resume a task that waits for its questions; leave one that was paused from outside."""
    attempts = tables.attempts.get(task.uid, {})
    if task.status != "paused" or not attempts or attempts[max(attempts)].ended != "paused":
        return {}
    return {"status": "running", "pause_reason": None, "pause": None, "due_at": None}


def suspend(tables: Tables, p: Params) -> Row | None:
    task, paths = tables.tasks.get(p["uid"]), json.loads(p["paths"])
    if task is None or task.status != "running" or not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    if any(q.answer is not None and q.path in paths for q in tables.pauses.get(task.uid, {}).values()):
        return None
    columns = {name: p[name] for name in ("pause_reason", "pause", "due_at")}
    lease = tables.leases[task.uid]
    tables.put(tables.leases, task.uid, Lease(lease.epoch, None, lease.taken_at))
    end_attempts(tables, task.uid, p["at"], "paused")
    return (change(tables, task, p, status="paused", **columns).version,)


def begin_line(tables: Tables, p: Params) -> Row | None:
    task = tables.tasks.get(p["uid"])
    if task is None or task.status != "running" or not tables.may_write(task.uid, p["epoch"], p["worker"]):
        return None
    if task.uid in tables.calls:
        called = tables.calls[task.uid]._replace(version=p["function_version"], arguments=p["arguments"])
        tables.put(tables.calls, task.uid, called)
    forget_asked(tables, task.uid, task.line)
    put_entries(tables, task.uid, task.line + 1, p)
    return (change(tables, task, p, line=task.line + 1).line,)


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def get_call(tables: Tables, p: Params) -> list[Row]:
    end = tables.journal_ends.get(p["uid"], (0, 0))
    return [(*tables.calls[p["uid"]][:11], *end)] if p["uid"] in tables.calls else []


def read_pauses(tables: Tables, p: Params) -> list[Row]:
    return [question[:9] for question in _in_order(tables.pauses.get(p["uid"], {}).values())]


def list_questions(tables: Tables, p: Params) -> list[Row]:
    found = [
        (task.uid, task.id, *question[:6])
        for task in tables.tasks.values()
        if task.namespace == p["namespace"]
        for question in tables.pauses.get(task.uid, {}).values()
        if question.answer is None and (task.status in _LIVE or question.topic == _EFFECT)
    ]
    rows: list[Row] = sorted(found, key=lambda row: (row[6], row[2], row[0]))
    return rows[: p["limit"]]


def read_signals(tables: Tables, p: Params) -> list[Row]:
    return sorted(tables.signals.get(p["uid"], {}).values(), key=lambda s: (s.sent_at, s.name, s.number))


def calls_of(tables: Tables, p: Params) -> list[Row]:
    return _of_each(get_call, tables, p)


def pauses_of(tables: Tables, p: Params) -> list[Row]:
    return _of_each(read_pauses, tables, p)


def signals_of(tables: Tables, p: Params) -> list[Row]:
    return _of_each(read_signals, tables, p)


def _of_each(query: Callable[[Tables, Params], list[Row]], tables: Tables, p: Params) -> list[Row]:
    return [(uid, *row) for uid in sorted(json.loads(p["uids"])) for row in query(tables, {"uid": uid})]


def find_live(tables: Tables, p: Params) -> list[Row]:
    uids = sorted(json.loads(p["uids"]))
    return [(uid,) for uid in uids if uid in tables.tasks and tables.tasks[uid].status in _LIVE]


def find_signalled(tables: Tables, p: Params) -> list[Row]:
    uids = sorted(json.loads(p["uids"]))
    return [(uid,) for uid in uids if any(name == p["signal"] for name, _ in tables.signals.get(uid, {}))]


def _in_order(questions: Any) -> list[Any]:
    return sorted(questions, key=lambda question: (question.asked_at, question.path))


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (start_function, start_hidden, open_pause, answer_pause)
_VERBS += (begin_line, send_signal, suspend, fork_function, complete_function)
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (get_call, read_pauses, list_questions)
_QUERIES += (read_signals, find_live, find_signalled, calls_of, pauses_of, signals_of)
QUERIES = {query.__name__: query for query in _QUERIES}
