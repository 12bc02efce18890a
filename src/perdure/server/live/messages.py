"""Messages of a stream, and the buffer that each client has.

A message is encoded once for all clients with the same scopes. A buffer holds the newest
message about each thing. One that overflows is emptied, and its client is told to read the page again: memory is
bounded, and a slow client sees what is true now, never a backlog.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any

from perdure.server.http import Caller, to_json

MOST_MESSAGES, MOST_BYTES = 512, 512 * 1024


class Message:
    """One thing to tell. `make` gives its value for a caller, as far as that one may know it."""

    __slots__ = ("_encoded", "_is_personal", "_make", "about", "event")

    def __init__(
        self, event: str, about: Hashable, make: Callable[[Caller], Any], *, is_personal: bool = False
    ) -> None:
        """In a buffer it takes the place of an older message about the same thing. One that is not personal says the
        same to all callers with the same scopes."""
        self.event, self.about, self._make, self._is_personal = event, about, make, is_personal
        self._encoded: dict[Hashable, bytes] = {}

    def data(self, caller: Caller) -> bytes:
        key = caller if self._is_personal else caller.scopes
        found = self._encoded.get(key)
        if found is None:
            found = self._encoded[key] = to_json(self._make(caller))
        return found


class Buffer:
    """The messages that one client must still be sent."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.begins_at = ""  # the id of the last message before those that come into it
        self.is_resumed = False
        self.woken = asyncio.Event()
        self._kept: OrderedDict[Hashable, tuple[str, Message]] = OrderedDict()
        self._size = 0
        self._why_reset = ""

    def put(self, id: str, message: Message) -> None:
        before = self._kept.pop(message.about, None)
        if before is not None:
            self._size -= self._length(before[1])
        self._kept[message.about] = (id, message)
        self._size += self._length(message)
        if len(self._kept) > MOST_MESSAGES or self._size > MOST_BYTES:
            self.reset("overflow")
        self.woken.set()

    def reset(self, why: str) -> None:
        """Forget what is here: the client has to read the page again."""
        self._kept.clear()
        self._size, self._why_reset = 0, why
        self.woken.set()

    def take(self) -> tuple[str, list[tuple[str, Message]]]:
        """Why the client has to read the page again, if it has to; and what came since, oldest first."""
        why, kept = self._why_reset, list(self._kept.values())
        self._kept.clear()
        self._size, self._why_reset = 0, ""
        self.woken.clear()
        return why, kept

    def _length(self, message: Message) -> int:
        return len(message.data(self.caller))


def sse(event: str, data: bytes, id: str = "") -> bytes:
    """One server-sent event. JSON has no line breaks of its own."""
    head = f"id: {id}\nevent: {event}\n" if id else f"event: {event}\n"
    return head.encode() + b"data: " + data + b"\n\n"


def comment(now: datetime) -> bytes:
    """It keeps proxies from closing the line, and tells the server's time."""
    return f": {now:%Y-%m-%dT%H:%M:%S}Z\n\n".encode()
