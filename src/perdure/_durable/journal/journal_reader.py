"""Read a task's journal from the store: a line of it, what can be read of a damaged one, how calls failed.

A function that failed must not read its failed calls again, nor the entries of a lost transaction: `read_entries`
leaves both out. failed_calls.py and block_entries.py decide which entries those are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import DecodeError

from perdure._durable.journal.block_entries import without_lost
from perdure._durable.journal.failed_calls import AGAIN, remembered
from perdure._ground.encoding import codec
from perdure._ground.secrets import envelope
from perdure._ground.secrets.known_secrets import redact
from perdure._model import Entry, decode_entry, missing_in, open_entry
from perdure._store import AttemptRow, CallRow, PauseRow, Row, Store, TaskRow
from perdure.errors import JournalDamaged, RecordDamaged

# How an attempt ended whose function raised, whatever the consequence was.
FAILED = ("failed", "error: ")


class Failure(NamedTuple):
    """How a call failed, as recorded in its entries: the kind of its exception, its message, where it was raised."""

    type: str = ""
    message: str = ""
    traceback: str = ""

    def __str__(self) -> str:
        first = next(iter(self.message.splitlines()), "")
        return redact(f"{self.type}: {first}" if first else self.type)


def failure_in(entry: Entry | None) -> Failure:
    """The failure in this entry: its own, or, in an intent, that of the try before."""
    if entry is None:
        return Failure()
    if entry.error is not None:
        found = codec.peek(entry.error)
        parts: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        return Failure(*(str(parts.get(name) or "") for name in Failure._fields))
    note = entry.note or {}
    return Failure(*(str(note.get(name) or "") for name in ("error", "message", "traceback")))


async def least_length(store: Store, uid: str, line: int) -> int:
    """A lower bound of a line's number of entries. Ask before reading its entries: more can be added meanwhile.

    Raises:
        RecordDamaged: this is the task's line, as its row says, and its journal ends on another one.
    """
    found = await store.rows(CallRow, "get_call", uid=uid)
    if not found:
        return 0
    await require_line(store, uid, found[0], line)
    return length_of(found[0], line)


async def require_line(store: Store, uid: str, call: CallRow, line: int, task_id: str = "") -> None:
    """See that a row of get_call does not contradict the row of its task. A new line begins with an entry, in one
    transaction with its number, so the journal ends on the task's own line.

    Raises:
        RecordDamaged: it ends on another one. To go on would be to begin anew, effects included.
    """
    end = call.line
    if end == line or not end:
        return
    (now,) = await store.rows(TaskRow, "get_task_by_uid", uid=uid)
    again = await store.rows(CallRow, "get_call", uid=uid)
    if now.line != line or not again or again[0].line != end:
        return  # it is a line that the task has left, or leaves just now
    if end < line and await store.query("read_journal", uid=uid, line=line):
        return  # a process of an older perdure has begun it, and did not say so
    raise RecordDamaged(
        f"the row of task {task_id or now.id!r}",
        f"it says that the task is on line {line:,} of its journal, and the journal ends on line {end:,}",
        kept="all that the task has done; nothing was run",
        do="restore the store from a backup",
    )


def length_of(call: CallRow, line: int) -> int:
    """The same, of a row of get_call."""
    return call.position if call.line == line else 0


async def read_line(store: Store, uid: str, line: int) -> list[tuple[int, Entry]]:
    """A line of the journal, as it was written.

    Raises:
        JournalDamaged: one of its entries cannot be read, or is missing.
    """
    least = await least_length(store, uid, line)
    rows = await store.query("read_journal", uid=uid, line=line)
    try:
        return opened(store, uid, rows, least=least)
    except JournalDamaged as damaged:
        (row,) = await store.rows(TaskRow, "get_task_by_uid", uid=uid)
        raise JournalDamaged(row.id, damaged.position, damaged.problem) from None


def opened(store: Store, uid: str, rows: Sequence[Row], task_id: str = "", least: int = 0) -> list[tuple[int, Entry]]:
    """Rows of read_journal with their decoded entries; `least`: the line has at least so many entries.

    Raises:
        JournalDamaged: one of them cannot be read, or is missing.
    """
    ring = store.ring
    try:
        entries = [  # open_entry, without a call for each
            (position, decode_entry(envelope.unseal(sealed, kind="entry", bound_to=uid, ring=ring, place=position)))
            for position, sealed in rows
        ]
    except (RecordDamaged, DecodeError):
        first, problem = readable_of(store, uid, rows, least).damaged[0]
        raise JournalDamaged(task_id or uid, first, problem) from None
    for first, problem in missing_in(entries, least):
        raise JournalDamaged(task_id or uid, first, problem)
    return entries


class Readable(NamedTuple):
    """The readable entries of a journal line, and the positions of damaged or missing ones, with the reason."""

    entries: list[tuple[int, Entry]]
    damaged: list[tuple[int, str]]


async def read_readable(store: Store, uid: str, line: int) -> Readable:
    """The same for people, who want to see what there is; the function itself does not go on from such a line."""
    least = await least_length(store, uid, line)
    return readable_of(store, uid, await store.query("read_journal", uid=uid, line=line), least)


def readable_of(store: Store, uid: str, rows: Sequence[Row], least: int = 0) -> Readable:
    """Rows of read_journal: what can be read of them."""
    found: list[tuple[int, Entry | None]] = []
    damaged: list[tuple[int, str]] = []
    for position, sealed in rows:
        entry = None
        try:
            entry = open_entry(sealed, uid, position, store.ring)
        except RecordDamaged as error:
            damaged.append((position, error.problem))
        found.append((position, entry))
    entries = [(position, entry) for position, entry in found if entry is not None]
    return Readable(entries, sorted(damaged + missing_in(found, least)))


async def require_all_entries(store: Store, task_id: str, uid: str, line: int) -> None:
    """Raises:
    JournalDamaged: an entry of this line is missing. One that is there and cannot be read is not looked for.
    """
    readable = await read_readable(store, uid, line)
    there = {position for position, _ in await store.query("read_journal", uid=uid, line=line)}
    for position, why in readable.damaged:
        if position not in there:
            raise JournalDamaged(task_id, position, why)


async def read_entries(store: Store, uid: str, line: int) -> list[tuple[int, Entry]]:
    """A line of the journal, without what a function that failed is not to meet again."""
    return await without_failed(store, uid, await read_line(store, uid, line))


async def without_failed(store: Store, uid: str, entries: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    entries = without_lost(entries)
    if all(entry.op != AGAIN for _, entry in entries):
        return entries
    attempts = await store.rows(AttemptRow, "read_attempts", uid=uid)
    return remembered(entries, [attempt.number for attempt in attempts if attempt.ended.startswith(FAILED)])


async def read_answers(store: Store, uid: str) -> dict[str, Any]:
    """The answers to a task's questions, by the path where they were asked; None: not answered yet."""
    rows = await store.rows(PauseRow, "read_pauses", uid=uid)
    return {row.path: None if row.answer is None else store.unseal(uid, "answer", row.answer) for row in rows}
