"""Compare what a durable function asks for with what its journal holds. Pure.

The cursor reads no clock, opens no file and awaits nothing. For each call it answers one of five things:

    Recorded    it ended before; here is how. Its body is not run.
    Fresh       it was never made; run it.
    Cut         it was ended by a cancellation; wait for the code's own, and do not run it.
    Uncertain   its intent is on record and its outcome is not; settle that first.
    Diverged    the code has changed: nothing may run.

A function has diverged when a recorded call is made with other arguments; when a fresh call is made while
its scope still has a result that nobody asked for; or when it ends with such a result. Not counted are
calls that were cut, intents without an outcome, what was recorded inside a step, marks of `patched`, and
scopes that do not exist yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from perdure._model import Entry, name_of, path_of, scope_of


class Recorded(NamedTuple):
    path: str
    position: int
    entry: Entry


class Fresh(NamedTuple):
    path: str


class Cut(NamedTuple):
    path: str
    position: int


class Uncertain(NamedTuple):
    path: str
    position: int
    intent: Entry


class Diverged(NamedTuple):
    position: int
    recorded: str
    asked: str


Answer = Recorded | Fresh | Cut | Uncertain | Diverged

# Marks that decide something once per task; code may stop asking for them.
UNCOUNTED = frozenset({"patched", "progress", "stream"})


class Cursor:
    """A journal on its way through a function."""

    def __init__(self, entries: Iterable[tuple[int, Entry]]) -> None:
        self._ends: dict[str, tuple[int, Entry]] = {}
        self._intents: dict[str, tuple[int, Entry]] = {}
        self._unasked: dict[str, dict[str, int]] = {}  # by scope: paths of results nobody has asked for
        self._left = 0
        self._counts: dict[tuple[str, str], int] = {}
        self.last = 0
        for position, entry in entries:
            self.last = position
            if entry.kind == "intent":
                self._intents[entry.path] = (position, entry)
                continue
            self._ends[entry.path] = (position, entry)
            if entry.kind == "cut":
                # A result that was recorded and then not handed out, because the code was cancelled first.
                self._asked(scope_of(entry.path), entry.path)
            elif entry.op not in UNCOUNTED:
                self._unasked.setdefault(scope_of(entry.path), {})[entry.path] = position
                self._left += 1

    @property
    def is_at_frontier(self) -> bool:
        """Whether everything that was recorded has been asked for."""
        return self._left == 0

    def next_path(self, scope: str, name: str) -> str:
        """The path of the next call of this name in this scope; calling it is making the call."""
        key = (scope, name)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return path_of(scope, name, count)

    def ask(self, scope: str, name: str, digest: bytes, *, in_body: bool = False) -> Answer:
        """What to do about a call. `in_body`: it is made inside a step, where nothing is counted."""
        path = self.next_path(scope, name)
        found = self._ends.get(path)
        if found is None:
            return self._unknown(scope, name, path, digest, in_body)
        position, entry = found
        if entry.digest != digest:
            return Diverged(position, _call(entry), f"{name} with other arguments")
        self._asked(scope, path)
        return Cut(path, position) if entry.kind == "cut" else Recorded(path, position, entry)

    def _asked(self, scope: str, path: str) -> None:
        unasked = self._unasked.get(scope)
        if unasked is not None and unasked.pop(path, None) is not None:
            self._left -= 1

    def _unknown(self, scope: str, name: str, path: str, digest: bytes, in_body: bool) -> Answer:
        intent = self._intents.get(path)
        if intent is not None and intent[1].digest != digest:
            return Diverged(intent[0], _call(intent[1]), f"{name} with other arguments")
        if not in_body:
            missed = self._first_unasked(scope)
            if missed is not None:
                return Diverged(missed[0], _call(missed[1]), name)
        return Fresh(path) if intent is None else Uncertain(path, *intent)

    def intent(self, path: str) -> Entry | None:
        """The last intent at this path."""
        found = self._intents.get(path)
        return None if found is None else found[1]

    def peek(self, scope: str, name: str) -> Entry | None:
        """The end of the next call of this name, without making the call."""
        count = self._counts.get((scope, name), 0) + 1
        found = self._ends.get(path_of(scope, name, count))
        return None if found is None else found[1]

    def end(self) -> Diverged | None:
        """The function has ended: a result that nobody asked for means that it has changed."""
        missed = [self._first_unasked(scope) for scope in self._unasked]
        first = min((found for found in missed if found is not None), default=None, key=lambda found: found[0])
        return None if first is None else Diverged(first[0], _call(first[1]), "its end")

    def _first_unasked(self, scope: str) -> tuple[int, Entry] | None:
        unasked = self._unasked.get(scope)
        if not unasked:
            return None
        path = next(iter(unasked))
        return self._ends[path]


def _call(entry: Entry) -> str:
    return name_of(entry.path)
