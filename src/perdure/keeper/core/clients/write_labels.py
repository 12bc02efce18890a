"""The right to write to a unit, held by a label for a while: several people type through one server process.

A connection that holds the write lease is one process. A label names what that process acts for: a session, a key. It
holds the lease for some seconds, renewed by each write, and any connection may write for it. It is kept in memory:
after the keeper's death it is free, and a write is refused until the label has taken it again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

# Most seconds for which a label holds a unit without writing.
MOST_SECONDS = 3600.0
_LONGEST = 200


@dataclass
class Label:
    name: str
    seconds: float  # for which each write renews it
    until: float


class Labels:
    """The label that holds each unit."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._held: dict[str, Label] = {}

    def holder(self, uid: str) -> Label | None:
        found = self._held.get(uid)
        if found is not None and found.until <= self._loop.time():
            del self._held[uid]
            return None
        return found

    def take(self, uid: str, name: str, seconds: float) -> Label:
        label = self._held[uid] = Label(name, seconds, self._loop.time() + seconds)
        return label

    def renew(self, uid: str, name: str) -> bool:
        """True if the label holds the unit; if so, its time begins anew."""
        found = self.holder(uid)
        if found is None or found.name != name:
            return False
        found.until = self._loop.time() + found.seconds
        return True

    def drop(self, uid: str, name: str | None = None) -> None:
        found = self._held.get(uid)
        if found is not None and name in (None, found.name):
            del self._held[uid]

    def seconds_left(self, uid: str) -> float:
        found = self.holder(uid)
        return 0.0 if found is None else max(0.0, found.until - self._loop.time())


def problem_with(name: str, seconds: float) -> str:
    """The problem with a label; empty if there is none."""
    if not 0 < len(name) <= _LONGEST or not name.isprintable():
        return f"a writer is a text of 1 to {_LONGEST} printable characters"
    if not 0 < seconds <= MOST_SECONDS:
        return f"a writer holds a unit for {MOST_SECONDS:.0f} s at most"
    return ""
