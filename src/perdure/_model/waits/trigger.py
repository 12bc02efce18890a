"""Triggers: what to start when something happens outside: an event, a changed file, a dropped file. Pure.

Files and folders are watched and make events of their own, so there is one way from an event to a task: the event
is kept once under its id, each trigger that wants it acts, and only then is it written off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from perdure.errors import InvalidInput

Source = Literal["event", "file", "directory"]
# How long a handled event is remembered, so that a repeated one is recognized.
REMEMBERED_MS = 7 * 24 * 3600 * 1000
_PLACE = r"\{(\w+)\}"


class Trigger(Struct, frozen=True, kw_only=True):
    """One trigger as it is kept."""

    source: Source = "event"
    event: str = ""  # the event's name; of a file or folder, one of the trigger's own
    path: str = ""
    pattern: str = "*"
    host: str = ""  # where a file or folder is watched
    seen: str = ""  # what a watched file looked like when it was last dealt with
    function: str = ""  # what it starts …
    version: int = 1
    module: str = ""
    arguments: bytes = b""
    takes: str = ""  # the parameter that gets what the event carries
    queue: str = "default"
    priority: int = 0
    task: str = ""  # … or the task it signals; {name} stands for a field of the event
    signal: str = ""
    schema: Mapping[str, Any] | None = None
    most: int = 0  # at most so many in `per_ms`; 0: any number
    per_ms: int = 0
    is_paused: bool = False
    begun: Sequence[tuple[int, str]] = ()  # when, for which event; as many as count for the limit

    def slot(self, event: str, now: int) -> tuple[int, Trigger]:
        """When this event may be acted on, and the trigger with that noted. The same question gets the same answer."""
        if not self.most:
            return now, self
        for when, who in self.begun:
            if who == event:
                return when, self
        recent = [one for one in self.begun if one[0] > now - self.per_ms]
        if len(recent) >= self.most:
            return recent[-self.most][0] + self.per_ms, self
        return now, replace(self, begun=[*recent, (now, event)])


class Incoming(Struct, frozen=True, kw_only=True):
    """An event that was sent in, and what became of it."""

    name: str
    id: str
    data: Any
    received_at: int
    done: Mapping[str, str]  # by trigger: the task that was started or signalled, or "!" and what was wrong
    is_over: bool = False
    path: str = ""  # of a dropped file: while it lies there, the event is remembered
    host: str = ""


def incoming_key(name: str, id: str) -> str:
    return f"{name}/{id}"


def signalled_task(template: str, data: object) -> str:
    """The task a trigger's signal is for: `order-{number}` with what the event carries.

    Raises:
        InvalidInput: it carries no such field.
    """

    def fill(found: re.Match[str]) -> str:
        value = data.get(found[1]) if isinstance(data, Mapping) else None
        if not isinstance(value, str | int):
            raise InvalidInput(f"the event has no field {found[1]!r} that could name a task")
        return str(value)

    return re.sub(_PLACE, fill, template)
