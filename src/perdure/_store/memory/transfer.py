"""A task's rows on their way to another store and back: the same form as `dump_task.sql` and `import_task.sql`.

Each row is a JSON object of its columns; bytes are `\\x` and hex digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from perdure._store.memory.functions import Called, Question, Signal
from perdure._store.memory.memory_values import Kept
from perdure._store.memory.named_values import Value
from perdure._store.memory.tables import Lease, Tables
from perdure._store.rows import AttemptRow, EventRow, FrameRow, Params, Row, TaskRow

Columns = dict[str, Any]


class _Kind(NamedTuple):
    """The form of one table's rows in memory: their key columns, and their class (None: one value)."""

    key: tuple[str, ...]
    row: Any
    value: str = ""


_OF_TASK: Mapping[str, _Kind] = {
    "checkpoints": _Kind(("seq",), FrameRow),
    "chunks": _Kind(("owner", "n"), None, "body"),
    "attempts": _Kind(("number",), AttemptRow),
    "events": _Kind(("number",), EventRow),
    "journal": _Kind(("line", "position"), None, "entry"),
    "pauses": _Kind(("path",), Question),
    "signals": _Kind(("name", "number"), Signal),
    "shelf": _Kind(("kind", "key"), Value),
    "deliveries": _Kind(("handler",), None, "delivered"),
}
_BYTES = {"frame", "body", "digest", "hash", "entry", "arguments", "budget", "question", "answer", "value"}
_BYTES |= {"config", "pause", "progress", "result", "error", "event_head"}


def dump_task(tables: Tables, p: Params) -> list[Row]:
    task = tables.tasks.get(p["uid"])
    found = list(_rows(tables, p["uid"], task))
    return [(table, json.dumps({name: _shown(value) for name, value in row.items()})) for table, row in found]


def _rows(tables: Tables, uid: str, task: TaskRow | None) -> Iterator[tuple[str, Columns]]:
    if task is not None:
        columns = task._asdict()
        del columns["hidden"]  # its parent is not imported with it
        yield "tasks", columns
    for table, kind in _OF_TASK.items():
        for key, row in getattr(tables, table).get(uid, {}).items():
            keys = dict(zip(kind.key, key if isinstance(key, tuple) else (key,), strict=True))
            values = {kind.value: row} if kind.row is None else row._asdict()
            yield table, {"owner" if table == "shelf" else "task_uid": uid, **keys, **values}
    if uid in tables.calls:
        yield "calls", {"task_uid": uid, **tables.calls[uid]._asdict()}
    if uid in tables.leases:
        yield "leases", {"task_uid": uid, **tables.leases[uid]._asdict()}
    if task is not None:
        life = "" if task.is_current else task.uid
        for (namespace, of, key), kept in tables.memory.items():
            if (namespace, of, kept.owner) == (task.namespace, life, task.id):
                yield "memory", {"namespace": namespace, "life": of, "key": key, **kept._asdict()}


def import_task(tables: Tables, p: Params) -> Row | None:
    rows = [_read(row) for row in json.loads(p["tasks"])]
    if not rows:
        return None
    told = rows[0]
    task = TaskRow(**{**told, "is_current": bool(told["is_current"])})
    if (task.namespace, task.id) in tables.current or task.uid in tables.tasks:
        return None
    tables.put(tables.tasks, task.uid, task)
    tables.put(tables.current, (task.namespace, task.id), task.uid)
    for table, kind in _OF_TASK.items():
        for columns in map(_read, json.loads(p[table])):
            _put(tables, getattr(tables, table), kind, columns)
    for columns in map(_read, json.loads(p["calls"])):
        _put_once(tables, tables.calls, columns["task_uid"], _made(Called, columns))
    for columns in map(_read, json.loads(p["leases"])):
        _put_once(tables, tables.leases, columns["task_uid"], _made(Lease, columns))
    for columns in map(_read, json.loads(p["memory"])):
        place = (columns["namespace"], columns["life"], columns["key"])
        _put_once(tables, tables.memory, place, _made(Kept, columns))
    return (task.uid,)


def _put(tables: Tables, table: dict[str, dict[Any, Any]], kind: _Kind, columns: Columns) -> None:
    uid = columns["task_uid"] if "task_uid" in columns else columns["owner"]
    key = tuple(columns[name] for name in kind.key)
    place = key if len(key) > 1 else key[0]
    if place in table.get(uid, {}):
        return
    if kind is _OF_TASK["journal"]:
        tables.put_entry(uid, place, columns[kind.value])
    else:
        tables.put_of(table, uid, place, columns[kind.value] if kind.row is None else _made(kind.row, columns))


def _put_once(tables: Tables, table: dict[Any, Any], key: Any, row: Any) -> None:
    if key not in table:
        tables.put(table, key, row)


def _made(row: Any, columns: Columns) -> Any:
    return row(**{name: columns[name] for name in row._fields})


def _shown(value: Any) -> Any:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else value


def _read(columns: Columns) -> Columns:
    return {
        name: bytes.fromhex(value[2:]) if name in _BYTES and isinstance(value, str) else value
        for name, value in columns.items()
    }


VERBS: dict[str, Callable[[Tables, Params], Row | None]] = {"import_task": import_task}
QUERIES: dict[str, Callable[[Tables, Params], list[Row]]] = {"dump_task": dump_task}
