"""From which lines of its journal a task has gone on by a rollback.

A process may die between a checkpoint that a call has made and the entry that tells of it. The next attempt finds the
checkpoint by its cause, which names the line and the call. After a rollback to that checkpoint the call is made on a
new line, and what it made is still part of the state: so the lines before are known there, too. A line that
`carry_over` has begun makes calls of its own, and knows none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from perdure._model import CARRIED, Entry

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

_LINES = "lines"


def with_origin(entry: Entry, entries: Iterable[tuple[int, Entry]], line: int) -> Entry:
    """The entry that a rollback adds, which says that the new line goes on from this one and those before it."""
    lines = [*lines_before(entries), line]
    return replace(entry, note={**(entry.note or {}), _LINES: ",".join(map(str, lines))})


def lines_before(entries: Iterable[tuple[int, Entry]]) -> list[int]:
    """The lines that this one goes on from, oldest first."""
    notes = [entry.note.get(_LINES) for _, entry in entries if entry.path == CARRIED and entry.note]
    return [int(line) for line in str(next((note for note in reversed(notes) if note), "")).split(",") if line]


def causes(attempt: Attempt, what: str, place: str) -> list[str]:
    """What a checkpoint of this call says that it was made for: on this line first, then on those before it."""
    return [f"{what} {line} {place}" for line in (attempt.line, *reversed(lines_before(attempt.entries)))]
