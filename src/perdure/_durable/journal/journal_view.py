"""A journal for people: each call a durable function made, in the order its code was told how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from perdure._durable.journal.journal_reader import failure_in, read_readable
from perdure._ground.clock import moment
from perdure._model import Entry, scope_of
from perdure._tasks import Tasks, current_row, store_of

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


class JournalLine(Struct, frozen=True, kw_only=True):
    """One call of a durable function."""

    position: int
    step: str  # its path: scope, name, and the how-manieth of that name
    kind: str
    state: Literal["done", "raised", "cut", "open", "damaged"]
    at: datetime | None
    took: timedelta
    error: str = ""  # what it raised, or what the try before raised
    traceback: str = ""  # where that was


async def journal_of(tasks: Tasks, id: str) -> Sequence[JournalLine]:
    """What the task has done on its present line, calls that failed and are made anew included; empty for a task of
    no durable function.

    Raises:
        NotFound: there is no such task.
    """
    task = await tasks.handle(id)
    row = await current_row(store_of(tasks), id, task.uid)
    found: dict[str, JournalLine] = {}
    entries, damaged = await read_readable(store_of(tasks), task.uid, row.line)
    for position, entry in entries:
        if entry.op not in MARKS and "|" not in scope_of(entry.path):
            found.pop(entry.path, None)  # its end stands where its result was given
            found[entry.path] = _line(position, entry)
    lines = [*found.values(), *(_unreadable(position) for position, _ in damaged)]
    return sorted(lines, key=lambda line: line.position) if damaged else lines


def _unreadable(position: int) -> JournalLine:
    return JournalLine(position=position, step="", kind="", state="damaged", at=None, took=timedelta(0))


def _line(position: int, entry: Entry) -> JournalLine:
    state: Literal["done", "raised", "cut", "open"] = "done"
    if entry.kind == "intent":
        state = "open"
    elif entry.kind == "cut":
        state = "cut"
    elif entry.error is not None:
        state = "raised"
    failure = failure_in(entry)
    return JournalLine(
        position=position,
        step=entry.path.removeprefix("|"),
        kind=entry.op.partition(".")[0],
        state=state,
        at=moment(entry.at) if entry.at else None,
        took=timedelta(milliseconds=entry.took_ms),
        error=str(failure),
        traceback=failure.traceback,
    )
