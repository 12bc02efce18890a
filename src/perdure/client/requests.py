"""What requests about tasks are made of, and what their answers hold: addresses, callers' keys, values as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from perdure._ground.encoding.json_values import iso, plain
from perdure._ground.ids import check_id
from perdure._model import Event, TaskRecord, event_kind
from perdure._tasks import TaskCore, as_tool_call, once_of
from perdure.types import ToolCall

Json = Any


def path_of(id: str) -> str:
    """The address of a task. An id of dots only would be taken for a step in the path, and is escaped."""
    escaped = quote(check_id(id), safe="")
    return f"/v1/tasks/{escaped.replace('.', '%2E') if set(id) <= {'.'} else escaped}"


def address_of(task: str | TaskCore) -> str:
    """The address of a task; a handle stands for exactly its own task."""
    return f"/v1/tasks/~{task.uid}" if isinstance(task, TaskCore) else path_of(task)


def keyed(once: str | None, about: str) -> dict[str, str]:
    """The header for a caller's own key. As in this process, a key belongs to what it is about: two tasks may have
    the same one.

    Raises:
        InvalidInput: it is not a key.
    """
    if once is None:
        return {}
    once_of(once, "")
    return {"Idempotency-Key": hashlib.sha256(f"{about}\0{once}".encode()).hexdigest()}


def tool_calls(calls: Sequence[ToolCall | Mapping[str, Any]]) -> Json:
    return [plain(as_tool_call(call)) for call in calls]


def pause_payload(given: Mapping[str, Any]) -> dict[str, Json]:
    """What a pause waits for: lengths of time and moments as the texts that a pause takes for them."""
    return {name: _text_of_time(value) for name, value in given.items()}


def _text_of_time(value: Any) -> Any:
    if isinstance(value, timedelta):
        return f"{value / timedelta(milliseconds=1):f}ms"
    return iso(value) if isinstance(value, datetime) else value


def record_of(value: Any) -> TaskRecord:
    return msgspec.convert(value, TaskRecord, strict=False)


def event_of(task_id: str, item: dict[str, Any]) -> Event:
    kind = event_kind(item["kind"])
    return msgspec.convert({"task_id": task_id, "data": None, **item, "kind": kind}, Event)
