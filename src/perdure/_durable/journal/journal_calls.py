"""Put the entries of a journal together to calls: one for each that ended, and one for each that has not.

A call has one entry or several: an effect's intent and its outcome, a step's tries, marks of progress. Its position is
that of its last entry; for a call that has ended, that is where the code got its result. A call that failed and was
made again ended twice, and is two calls here. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct, field

from perdure._model import Entry, name_of, scope_of

CallState = Literal["done", "raised", "cut", "open", "uncertain", "pausing", "damaged"]
LETTERS: Mapping[CallState, str] = {
    "done": "d",
    "raised": "r",
    "cut": "c",
    "open": "o",
    "uncertain": "u",
    "pausing": "p",
    "damaged": "x",
}
# Beside the calls: what was noted while one of them ran.
MARKS = frozenset(
    {
        "progress",
        "stream",
        "patched",
        "model",
        "spent",
        "try",
        "compensate",
        "again",
        "begun",
        "timers",
        "timer",
        "thread",
        "lost",
        "committing",
    }
)
_TRY, _BEGUN = "try", "begun"
# With which the path of a question ends that is about a call, and not the call's own.
_ABOUT = re.compile(r"\?[0-9.]+$")


class EntriesOf(Struct):
    """One call, as its entries tell it."""

    path: str
    position: int  # of its last entry
    last: Entry  # its end, if it has ended; else its newest intent, or the mark that it had begun
    intent: Entry | None = None  # its first
    begun: Entry | None = None  # the mark of a step that was under way for long
    later: list[Entry] | None = None  # the intents after the first: one for each further try

    @property
    def has_ended(self) -> bool:
        last = self.last
        return last.kind != "intent" and last.op != _BEGUN

    @property
    def op(self) -> str:
        """The sort of a call, in one word."""
        last = self.last
        return "step" if last.op in (_TRY, _BEGUN) else last.op.partition(".")[0]

    @property
    def is_effect(self) -> bool:
        return self.last.op.startswith("effect")

    @property
    def said(self) -> str:
        """The call with its arguments, if one of its entries says so."""
        from perdure._ground.encoding import codec

        for entry in (self.intent, self.last):
            if entry is not None and entry.note and entry.note.get("shown"):
                return str(entry.note["shown"])
        return str(codec.decode(self.begun.value)) if self.begun is not None and self.begun.value else ""

    def tries(self) -> list[int]:
        """When each try after the first began, in milliseconds; of a step, when it was due."""
        found = [] if self.intent is None or self.intent.op != _TRY else [self.intent]
        return [_at(one) for one in (*found, *(self.later or ()))]


def _at(entry: Entry) -> int:
    until = (entry.note or {}).get("until")
    return entry.at or (until if isinstance(until, int) else 0)


class Gathering:
    """Entries on their way to calls: `add` gives each call that has ended; `open` has those that have not."""

    def __init__(self) -> None:
        self.open: dict[str, EntriesOf] = {}

    def add(self, position: int, entry: Entry) -> EntriesOf | None:
        path, kind, op = entry.path, entry.kind, entry.op
        if op in MARKS:
            if op == _TRY:
                self._intend(position, entry)
            elif op == _BEGUN:
                self._begin(position, scope_of(path), entry)
            return None
        if kind == "intent":
            self._intend(position, entry)
            return None
        before = self.open.pop(path, None) if self.open else None
        if before is None:
            return EntriesOf(path, position, entry)
        before.position, before.last = position, entry
        return before

    def _intend(self, position: int, entry: Entry) -> None:
        found = self.open.get(entry.path)
        if found is None:
            self.open[entry.path] = EntriesOf(entry.path, position, entry, intent=entry)
            return
        if found.intent is None:
            found.intent = entry
        else:
            found.later = [*(found.later or ()), entry]
        found.position, found.last = position, entry

    def _begin(self, position: int, path: str, entry: Entry) -> None:
        found = self.open.get(path)
        if found is None:
            self.open[path] = EntriesOf(path, position, entry, begun=entry)
        elif found.begun is None:
            found.begun = entry


def calls_in(entries: Iterable[tuple[int, Entry]]) -> list[EntriesOf]:
    """Every call, in the order of positions."""
    gathering = Gathering()
    ended = [gathering.add(position, entry) for position, entry in entries]
    found = [*(call for call in ended if call is not None), *gathering.open.values()]
    return sorted(found, key=attrgetter("position"))


# ── the state of a call ──────────────────────────────────────────────────────────────────────────


class Standing(Struct):
    """What is known about a task beside its journal: who works on it, its questions and their answers."""

    at_work: int = -1  # the epoch of the attempt at work; -1 if there is none
    asked: dict[str, int] = field(default_factory=dict)  # pauses that wait for their end, and since when
    doubted: set[str] = field(default_factory=set)  # effects that a person is asked about
    choices: dict[str, str] = field(default_factory=dict)  # effects whose outcome a person gave

    def ask(self, path: str, at: int) -> None:
        """A pause waits for its end."""
        self.asked[_ABOUT.sub("", path)] = at

    def doubt(self, path: str) -> None:
        """A person is asked whether an effect happened."""
        self.doubted.add(_ABOUT.sub("", path))

    def tell(self, path: str, answer: Any) -> None:
        """A person was asked whether an effect happened, and has answered."""
        if isinstance(answer, Mapping) and answer.get("choice") in ("done", "fail"):
            self.choices[_ABOUT.sub("", path)] = answer["choice"]

    def state_of(self, call: EntriesOf) -> CallState:
        last, note = call.last, call.last.note or {}
        if not call.has_ended:
            if not call.is_effect:
                return "pausing" if call.path in self.asked else "open"
            is_known = "until" in note or (last.epoch == self.at_work and call.path not in self.doubted)
            return "open" if is_known else self._told(call.path)
        if call.is_effect and note.get("open", last.kind == "cut"):
            return self._told(call.path)
        if last.kind == "cut":
            return "cut"
        return "done" if last.error is None else "raised"

    def _told(self, path: str) -> CallState:
        choice = self.choices.get(path)
        return "uncertain" if choice is None else "done" if choice == "done" else "raised"

    def waiting(self) -> list[EntriesOf]:
        """The pauses that have not ended. They have no entry yet, and their position is 0."""
        return [EntriesOf(path, 0, Entry("intent", name_of(path), path, b"", at=at)) for path, at in self.asked.items()]


def depth_of(path: str) -> int:
    """How many scopes and calls enclose this one."""
    scope = scope_of(path)
    return scope.count("/") + scope.count("|") if scope else 0
