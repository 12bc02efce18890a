"""Hear that another process has written to the file: SQLite counts it, and asking costs a few microseconds.

No process has to send anything. The content of a write is unknown, so it may be of every kind; our own writes count as
well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from perdure._store.contract import ALL_KINDS, Kinds

_LOOK_SECONDS = 0.01
_LONGEST_SECONDS = 1.0


class SqliteLine:
    has_to_be_told = False
    is_open = True

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._seen = 0
        self._interrupted = threading.Event()

    def tell(self, kinds: Kinds) -> None:
        """It is in the file."""

    def hear(self) -> Kinds:
        end = time.monotonic() + _LONGEST_SECONDS
        while not self._interrupted.wait(_LOOK_SECONDS) and time.monotonic() < end:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return ALL_KINDS
        return frozenset()

    def pass_over(self, before: int, after: int) -> None:
        """Ignore the change of the file between these two versions, if all earlier changes were heard."""
        if self._seen == before:
            self._seen = after

    def interrupt(self) -> None:
        self._interrupted.set()

    def hang_up(self) -> None:
        """The connection is the engine's."""
