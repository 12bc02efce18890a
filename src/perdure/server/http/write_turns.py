"""Turns to write for a task: requests of one server that do so without an attempt go one after the other."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class WriteTurns:
    """The queue of each task that somebody waits for or writes for now."""

    def __init__(self) -> None:
        self._of: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, uid: str) -> asyncio.Lock:
        return self._of.setdefault(uid, asyncio.Lock())
