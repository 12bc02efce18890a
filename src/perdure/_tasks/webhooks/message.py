"""The body of a message: what happened to which task, and where to look. Pure.

A message is thin. It names the task and the event, and leaves out text written by agents (questions, errors, data of
events) unless the webhook asks for data. Secrets are hidden in both cases.
"""

from __future__ import annotations

import hashlib
from base64 import b32hexencode
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from perdure._ground.encoding.json_values import as_json
from perdure._ground.ids import least_uid
from perdure._ground.secrets.known_secrets import redact_value
from perdure._model import Event, event_name

MOST = 20 * 1024  # bytes
PREFIX = "msg_"
_TOLD_OF_AUTHOR = ("user", "agent", "via")
_LONGEST_TEXT = 2000


def message_id(hook: str, uid: str, number: int, at_ms: int) -> str:
    """The id of the message about one event to one webhook: always the same, in the order of moments and numbers."""
    digest = hashlib.sha256(f"{hook}\0{uid}\0{number}".encode()).digest()
    tail = b32hexencode(digest[:10]).decode().lower()[:11]
    return f"{PREFIX}{least_uid(at_ms)}{number % 4096:03x}{tail}"


def before_moment(ms: int) -> str:
    """A text that comes after the ids of all messages from before this moment, and before all others."""
    return f"{PREFIX}{least_uid(ms)}"


def body_of(event: Event, uid: str, status: str, *, with_data: bool) -> bytes:
    """The message body for an event of a task that has this status now."""
    name = event_name(event.kind)
    author = {key: event.author[key] for key in _TOLD_OF_AUTHOR if key in event.author}
    told: dict[str, Any] = {"number": event.number, "kind": name, "author": author}
    data: dict[str, Any] = {"task": {"id": event.task_id, "uid": uid, "status": status}, "event": told}
    if name == "task.paused" and isinstance(event.data, Mapping):
        data["pause"] = _pause(event.data, with_data)
    data["links"] = _links(uid)
    if with_data:
        whole = _encoded(name, event.at, {**data, "event": {**told, "data": redact_value(event.data)}})
        if len(whole) <= MOST:
            return whole
        told["data_left_out"] = f"it has more than {MOST // 1024} kB"
    return _encoded(name, event.at, data)


def plain_body(name: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """A message that is not about a task: a ping, a webhook that was disabled."""
    return _encoded(name, at, data)


def _pause(data: Mapping[str, Any], with_data: bool) -> dict[str, Any]:
    pause: dict[str, Any] = {"kind": data.get("reason")}
    text = data.get("message")
    if with_data and isinstance(text, str):
        pause["text"] = redact_value(text[:_LONGEST_TEXT])
    return pause


def _links(uid: str) -> dict[str, str]:
    return {"task": f"/v1/tasks/~{quote(uid)}", "page": f"/tasks/~{quote(uid)}"}


def _encoded(name: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    return as_json({"type": name, "timestamp": at, "data": data}, ascii=True).encode()
