"""Compare what a durable function asks for with what its journal holds. Pure.

The cursor reads no clock, opens no file and awaits nothing. For each call it answers one of five things:

    Recorded    it ended before; this is its outcome. Its body is not run.
    Fresh       it was never made; run it.
    Cut         it was cancelled; wait until the code cancels it again, and do not run it.
    Uncertain   its intent is on record and its outcome is not; settle that first.
    Diverged    the code has changed: nothing may run.

A function has diverged when a recorded call is made with other arguments; when a call is made while its scope has an
earlier result that the code did not ask for; or when the function ends with such a result. Not counted are: cancelled
calls, intents without an outcome, calls recorded inside a step, marks of `patched`, progress and streams, scopes that
have not begun or not ended, and loose results. Those are left of a transaction block that runs again, and are given to
the code whenever it asks for them, if it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import Any, Literal, final

import msgspec

from perdure._model import Entry, name_of, scope_of
from perdure._replay.digest import spell


@final
class Recorded(msgspec.Struct, frozen=True, gc=False):
    path: str
    position: int
    entry: Entry


@final
class Fresh(msgspec.Struct, frozen=True, gc=False):
    path: str


@final
class Cut(msgspec.Struct, frozen=True, gc=False):
    path: str
    position: int
    entry: Entry


@final
class Uncertain(msgspec.Struct, frozen=True, gc=False):
    path: str
    position: int
    intent: Entry


@final
class Diverged(msgspec.Struct, frozen=True, gc=False):
    position: int
    recorded: str
    asked: str
    cause: Literal["arguments", "name", ""] = ""  # what alone differs, if one of them does


Answer = Recorded | Fresh | Cut | Uncertain | Diverged

# Says that timers and threads are recorded in this journal, and after which position.
TIMERS = "timers"
# Entries that wake the code without a result: an expired timer, an ended thread. Code may set other ones.
WAKING = frozenset({"timer", "thread"})
# Marks that decide something once per task; the code may stop asking for them.
UNCOUNTED = frozenset({"patched", "progress", "stream", "again", "begun", "lost", "committing", TIMERS})
# Calls that may be made once more.
_REPEATABLE = frozenset({"step", "inline"})
# In the note of a loose result.
LOOSE = "loose"
# Handed out at once, by a call that cannot wait: never in the gate's order.
INLINE = frozenset({"inline", "effect.inline", "now", "random", "uuid4"}) | UNCOUNTED


class Track(msgspec.Struct, eq=False):
    """One scope's part of the journal on its way through the code."""

    _cursor: Cursor
    path: str
    _prefix: str
    _counts: dict[str, int] = {}
    _unasked: dict[str, Recorded] = {}  # in the order of their positions
    _loose: dict[str, Recorded] = {}
    _furthest: int = 0  # the position of the latest result that was asked for

    __repr__ = object.__repr__

    @property
    def is_used(self) -> bool:
        """True if the scope has made any call."""
        return bool(self._counts)

    def ask(self, name: str, digest: bytes, in_body: bool = False) -> Answer:
        """Decide what to do about a call; asking counts as making it. `in_body`: inside a step nothing is counted."""
        number = self._counts[name] = self._counts.get(name, 0) + 1
        path = f"{self._prefix}{name}#{number}"
        cursor = self._cursor
        if cursor.is_empty:
            return Fresh(path)
        # A body that is tried again asks for the same things again.
        found = self._unasked.get(path) if in_body else self._unasked.pop(path, None)
        if found is not None and not in_body:
            if found.position < self._furthest:
                return self._out_of_order(found)
            self._furthest = found.position
        elif found is None and self._loose:
            found = self._loose.pop(path, None)
            if found is not None and found.entry.digest != digest and found.entry.op in _REPEATABLE:
                found = None  # the block came to other values this time
        if found is None:
            if not (self._unasked or cursor.cuts or cursor.intents):
                return Fresh(path)  # all that is recorded is behind us
            return self._unknown(path, name, digest, in_body)
        if found.entry.digest != digest:
            return _changed(found.position, found.entry, name, digest)
        return found

    def _out_of_order(self, found: Recorded) -> Diverged:
        asked = call_of(found.entry)
        return Diverged(found.position, f"{asked}, before entry {self._furthest}", f"{asked} after it")

    def look(self, name: str, digest: bytes) -> tuple[str, Recorded | Cut | Diverged | None]:
        """Like `ask`, for a call that only sometimes leaves an entry: an earlier result it did not ask for is not a
        divergence."""
        number = self._counts[name] = self._counts.get(name, 0) + 1
        path = f"{self._prefix}{name}#{number}"
        found = self._unasked.pop(path, None) or self._loose.pop(path, None) or self._cursor.cuts.get(path)
        if found is not None and found.entry.digest != digest:
            return path, _changed(found.position, found.entry, name, digest)
        return path, found

    def _unknown(self, path: str, name: str, digest: bytes, in_body: bool) -> Answer:
        cursor = self._cursor
        cut = cursor.cuts.get(path)
        if cut is not None:
            cursor.open.pop(path, None)
            return cut if cut.entry.digest == digest else _changed(cut.position, cut.entry, name, digest)
        intent = cursor.intents.get(path)
        if intent is not None and intent[1].digest != digest:
            return _changed(*intent, name, digest)
        if not in_body and (missed := self.first_unasked()) is not None:
            return _missed(missed, name, digest)
        if intent is None:
            return Fresh(path)
        cursor.open.pop(path, None)
        return Uncertain(path, *intent)

    def count(self, name: str) -> int:
        """The number of times the scope has passed here, including now; for code that leaves no entry."""
        number = self._counts[name] = self._counts.get(name, 0) + 1
        return number

    def is_fresh(self, name: str) -> bool:
        """True if the next call of this name has not ended yet, as far as the journal shows."""
        path = f"{self._prefix}{name}#{self._counts.get(name, 0) + 1}"
        return path not in self._unasked and path not in self._loose and path not in self._cursor.cuts

    def first_unasked(self) -> Recorded | None:
        return next(iter(self._unasked.values()), None)

    def is_unasked(self, path: str) -> bool:
        return path in self._unasked

    def put(self, found: Recorded) -> None:
        self._unasked[found.path] = found

    def put_loosely(self, found: Recorded) -> None:
        self._loose[found.path] = found

    def withdraw(self, path: str) -> None:
        self._unasked.pop(path, None)

    def begin_again(self) -> None:
        self._counts.clear()

    @property
    def counts(self) -> dict[str, int]:
        """The number of calls the scope has made, by name."""
        return dict(self._counts)

    def begin_at(self, counts: dict[str, int]) -> None:
        """The scope continues after these calls, which are not made again."""
        self._counts = dict(counts)


_NOTHING: Any = MappingProxyType({})


class Cursor:
    """A journal on its way through a function."""

    __slots__ = (
        "__weakref__", "_reached", "_tracks", "cuts", "intents", "is_empty", "last", "loose", "marks", "open",
        "sequence", "timers", "timers_from",
    )  # fmt: skip

    def __init__(self, entries: Iterable[tuple[int, Entry]], after: int = 0) -> None:
        """`after`: entries up to this position are not replayed; of them, only one-time decisions count."""
        self._tracks: dict[str, Track] = {}
        self.is_empty = True  # nothing was recorded: a function that has just begun needs none of these
        self.intents: dict[str, tuple[int, Entry]] = _NOTHING
        self.cuts: dict[str, Cut] = _NOTHING
        self.open: dict[str, None] = _NOTHING  # cancelled or uncertain calls that were not made again yet
        self.marks: dict[str, Entry] = _NOTHING
        self.sequence: list[Recorded] = _NOTHING  # results outside of bodies, in order
        self.loose: dict[int, None] = _NOTHING  # positions of loose results
        self.timers: dict[str, int] = {}  # by path: the position of each timer and thread that has woken the code
        self.timers_from: int | None = None  # the position after which they are recorded
        self.last = self._reached = 0
        for position, entry in entries:
            self.last = position
            if position > after or entry.op in UNCOUNTED:
                self._read(position, entry)

    def _read(self, position: int, entry: Entry) -> None:
        if self.is_empty:
            self.is_empty = False
            self.intents, self.cuts, self.open, self.marks, self.sequence, self.loose = {}, {}, {}, {}, [], {}
        path = entry.path
        if entry.kind == "intent":
            self.intents[path] = (position, entry)
            if "|" not in scope_of(path):
                self.open[path] = None
        elif entry.op in WAKING:
            self.timers[path] = position
        elif entry.op in UNCOUNTED:
            self.marks[path] = entry
            if entry.op == TIMERS and entry.note is not None:
                since = entry.note.get("from")
                self.timers_from = since if isinstance(since, int) else 0
        elif entry.kind == "cut":
            # Perhaps after a result that was not handed out, because the code was cancelled first.
            self.track(scope_of(path)).withdraw(path)
            self.cuts[path] = Cut(path, position, entry)
            self.open[path] = None
        else:
            scope = scope_of(path)
            found = Recorded(path, position, entry)
            self.open.pop(path, None)
            if entry.note is not None and LOOSE in entry.note:
                self.track(scope).put_loosely(found)
                self.loose[position] = None
                return
            self.track(scope).put(found)
            if "|" not in scope:
                self.sequence.append(found)

    def track(self, scope: str) -> Track:
        found = self._tracks.get(scope)
        if found is None:
            found = self._tracks[scope] = Track(self, scope, f"{scope}|")
        return found

    def close(self) -> None:
        """The function has ended; a scope that is left keeps its own track."""
        self._tracks.clear()

    def in_order(self) -> list[int]:
        """The positions that are handed out one after the other: results and cuts, not what was had at once."""
        results = [
            found.position for found in self.sequence if found.entry.op not in INLINE and found.path not in self.cuts
        ]
        cuts = [found.position for found in self.cuts.values() if "|" not in scope_of(found.path)]
        return sorted([*results, *cuts, *self.timers.values()]) if cuts or self.timers else results

    def next_unasked(self) -> Recorded | None:
        """The first result, in order, that the code has not asked for."""
        while self._reached < len(self.sequence):
            found = self.sequence[self._reached]
            if self.track(scope_of(found.path)).is_unasked(found.path):
                return found
            self._reached += 1
        return None

    def ask(self, scope: str, name: str, digest: bytes, *, in_body: bool = False) -> Answer:
        """Decide what to do about a call in the scope of this path."""
        return self.track(scope).ask(name, digest, in_body=in_body)

    def learn(self, position: int, entry: Entry) -> None:
        """An entry was added inside a step's body, which this same attempt may run again."""
        self._read(position, entry)

    def begin_again(self, path: str) -> None:
        """The body at this path is run once more: its calls are numbered from the first."""
        self.track(path).begin_again()

    def intent(self, path: str) -> Entry | None:
        """The last intent at this path."""
        found = self.intents.get(path)
        return None if found is None else found[1]

    def end(self, asked: str = "its end", alive: Collection[str] = ()) -> Diverged | None:
        """The function has ended. A result it did not ask for means that the function has changed.

        `alive` are the scopes that had not ended.
        """
        for found in self.sequence:
            scope = scope_of(found.path)
            if self.track(scope).is_unasked(found.path) and scope not in alive:
                return Diverged(found.position, call_of(found.entry), asked)
        return None


def call_of(entry: Entry) -> str:
    return _call(name_of(entry.path), entry.digest)


def _call(name: str, digest: bytes) -> str:
    return f"{name}({spell(digest)})"


def _changed(position: int, entry: Entry, name: str, digest: bytes) -> Diverged:
    recorded, asked = call_of(entry), _call(name, digest)
    return Diverged(position, recorded, asked if asked != recorded else f"{asked} with other arguments", "arguments")


def _missed(missed: Recorded, name: str, digest: bytes) -> Diverged:
    """A call is made, and another one was recorded in its place."""
    is_renamed = missed.entry.digest == digest and name_of(missed.path) != name
    return Diverged(missed.position, call_of(missed.entry), _call(name, digest), "name" if is_renamed else "")
