"""The facts of several tasks at once; the same names and columns as `sqlite/queries`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row, SituationRow, TaskRow

_LONGEST_RESULT, _LONGEST_ERROR, _LONGEST_ENTRY = 4096, 65536, 16384


def situations_of(tables: Tables, p: Params) -> list[Row]:
    return [_row(tables, tables.tasks[uid]) for uid in _uids(p) if uid in tables.tasks]


def _row(tables: Tables, task: TaskRow) -> SituationRow:
    call, lease = tables.calls.get(task.uid), tables.leases.get(task.uid)
    attempts = tables.attempts.get(task.uid, {})
    last = attempts[max(attempts)] if attempts else None
    own: dict[str, Any] = {name: getattr(task, name) for name in TaskRow._fields if name in SituationRow._fields}
    own |= {"result": _short(task.result, _LONGEST_RESULT), "error": _short(task.error, _LONGEST_ERROR)}
    own |= {name: getattr(call, name, None) for name in ("function", "version", "queue", "not_before")}
    own |= {name: getattr(lease, name, None) for name in ("epoch", "worker", "taken_at")}
    own |= {name: getattr(last, name, None) for name in ("host", "pid", "ended")}
    return SituationRow(**own, attempt=getattr(last, "number", None), attempt_user=getattr(last, "user", None))


def _short(value: bytes | None, most: int) -> bytes | None:
    return value if value is not None and len(value) <= most else None


def open_pauses_of(tables: Tables, p: Params) -> list[Row]:
    found = [
        (uid, *question[:6])
        for uid in _uids(p)
        for question in tables.pauses.get(uid, {}).values()
        if question.answer is None
    ]
    return sorted(found, key=lambda row: (row[0], row[5], row[1]))


def signals_named(tables: Tables, p: Params) -> list[Row]:
    return [
        (uid, signal.value, signal.sent_at, signal.sent_by)
        for uid in _uids(p)
        for (name, _), signal in sorted(tables.signals.get(uid, {}).items())
        if name == p["name"]
    ]


def statuses_of(tables: Tables, p: Params) -> list[Row]:
    uids = {id: tables.current.get((p["namespace"], id)) for id in json.loads(p["ids"])}
    return [(id, tables.tasks[uid].status) for id, uid in sorted(uids.items()) if uid is not None]


def journal_tails(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid in _uids(p):
        entries = tables.journal.get(uid, {})
        if not entries:
            continue
        last_line, end = max(entries)
        found += [
            (uid, position, entry)
            for (line, position), entry in sorted(entries.items())
            if line == last_line and position > end - p["count"] and len(entry) <= _LONGEST_ENTRY
        ]
    return found


def recent_events_of(tables: Tables, p: Params) -> list[Row]:
    kinds = json.loads(p["kinds"])
    return [
        (uid, event.number, event.at, event.kind, event.author, event.body)
        for uid in _uids(p)
        if uid in tables.tasks
        for _, event in sorted(tables.events.get(uid, {}).items())
        if event.number > tables.tasks[uid].event_count - p["look"] and event.kind in kinds
    ]


def _uids(p: Params) -> list[str]:
    return sorted(set(json.loads(p["uids"])))


VERBS: dict[str, Callable[[Tables, Params], Row | None]] = {}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (situations_of, open_pauses_of, signals_named)
_QUERIES += (statuses_of, journal_tails, recent_events_of)
QUERIES = {query.__name__: query for query in _QUERIES}
