"""From which lines of its journal a task has gone on by a rollback.

A process can die between the checkpoint of a call and the entry that records it. The next attempt finds the checkpoint
by its cause, which names the line and the call. After a rollback to that checkpoint the call is made on a new line, and
its checkpoint is still part of the state. So the earlier lines are known there, too. A line begun by `carry_over` makes
its own calls and knows no earlier lines.

A fork begins with the state of its source. So it is told which items in it come from calls that were not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from perdure._model import CARRIED, Entry

if TYPE_CHECKING:
    from perdure._durable.attempt.attempt import Attempt

_LINES, _APPENDED = "lines", "appended"


def with_origin(entry: Entry, entries: Iterable[tuple[int, Entry]], line: int) -> Entry:
    """The entry added by a rollback: it says that the new line continues this one and those before it."""
    lines = [*lines_before(entries), line]
    return replace(entry, note={**(entry.note or {}), _LINES: ",".join(map(str, lines))})


def lines_before(entries: Iterable[tuple[int, Entry]]) -> list[int]:
    """The lines this one continues, oldest first."""
    notes = [entry.note.get(_LINES) for _, entry in entries if entry.path == CARRIED and entry.note]
    return [int(line) for line in str(next((note for note in reversed(notes) if note), "")).split(",") if line]


def with_appended(entry: Entry, made: Mapping[str, str]) -> Entry:
    """The entry added by a fork: it names the calls whose items are in its first state, and their checkpoints."""
    return replace(entry, note={**(entry.note or {}), _APPENDED: json.dumps(made)}, epoch=-1)


def appended_before(entries: Iterable[tuple[int, Entry]]) -> dict[str, str]:
    """The checkpoints, by their calls, that the state of a fork began with and that its journal does not tell of."""
    found: dict[str, str] = {}
    for _, entry in entries:
        if entry.path == CARRIED and entry.note and _APPENDED in entry.note:
            found |= json.loads(str(entry.note[_APPENDED]))
    return found


def unrecorded(made: Mapping[str, str], entries: Sequence[tuple[int, Entry]], line: int) -> dict[str, str]:
    """Find checkpoints of appends that the journal does not record. `made` maps causes to checkpoints. Pure."""
    recorded = {entry.path for _, entry in entries if entry.kind != "intent"}
    found: dict[str, str] = {}
    for number in (line, *lines_before(entries)):
        of_line = f"append {number} "
        ours = {cause.removeprefix(of_line): id for cause, id in made.items() if cause.startswith(of_line)}
        found |= {path: id for path, id in ours.items() if path not in recorded}
    return found


def causes(attempt: Attempt, what: str, place: str) -> list[str]:
    """The causes a checkpoint of this call can name: on this line first, then on the earlier ones."""
    return [f"{what} {line} {place}" for line in (attempt.line, *reversed(lines_before(attempt.entries)))]
