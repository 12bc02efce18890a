"""Note a statement that is a transaction by itself before it goes out, so that it is not repeated after a machine died.

The session's own memory of its statements, its ledger, is in the machine's memory. A statement inside a transaction
needs no other: it is gone with its transaction. One outside a transaction has happened at once. So the store notes it
first, as it notes the intent of an effect. A later attempt that finds another ledger does not repeat it.

There is one note for each step that is under way, not for each statement: those of ended steps are used again.
"""

from __future__ import annotations

import os
import re
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from perdure._durable import Attempt, UnitCall
from perdure._store import Store
from perdure._tasks import Kept, Shelf
from perdure.errors import StatementUnanswered

_KIND = "statement"
# Notes of one session that an attempt keeps: as many steps can be under way at once.
_SLOTS = 64
_READ = re.compile(r"\s*(?:SELECT|VALUES|SHOW)\b", re.IGNORECASE)
_CALLED = re.compile(r"([\w.\"$]+)\s*\(")
_WRITES = re.compile(r"\b(?:INTO|UPDATE|INSERT|DELETE|MERGE)\b", re.IGNORECASE)
_HARMLESS = frozenset(
    {"count", "sum", "min", "max", "avg", "total", "coalesce", "nullif", "ifnull", "typeof", "cast", "extract"}
    | {"length", "lower", "upper", "trim", "abs", "round", "now", "date", "group_concat", "string_agg", "array_agg"}
    | {"in", "and", "or", "not", "exists", "any", "all", "some", "where", "from", "on", "as", "using", "over", "by"}
    | {"values", "select", "case", "when", "then", "else", "like", "json_agg", "jsonb_agg", "pg_backend_pid"}
)


class Sent(Struct, frozen=True, kw_only=True):
    """The last statement of a step that went out by itself."""

    ledger: str  # which memory of the session knows it
    line: str
    scope: str  # the step and the session
    number: int  # of the statement in it
    text: str


class _Notes:
    """The notes of one session, as one attempt reads and writes them."""

    def __init__(self, attempt: Attempt, label: str) -> None:
        self._shelf, self._label = _shelf(attempt.store, attempt.task_id, attempt.uid), label
        self._former: list[Sent] | None = None  # of attempts before this one
        self._mine: dict[str, Kept[Sent]] = {}  # by scope, the one that was used longest ago first

    async def begin(self, sent: Sent) -> None:
        """
        Raises:
            StatementUnanswered: an earlier attempt may have done it, and the session of that time is gone.
        """
        await self._load(sent)
        for one in self._former or ():
            is_same = (one.line, one.scope) == (sent.line, sent.scope)
            if is_same and one.number >= sent.number and one.ledger != sent.ledger:
                raise StatementUnanswered(
                    self._label,
                    sent.text,
                    "it went out before the machine or the session's memory of it was lost, and whether it was carried "
                    "out is not known",
                    do=f"look at the data; then catch this error in the code, or have it sent by "
                    f"rt.release({self._label!r}); resume the task",
                )
        await self._write(sent)

    async def _load(self, sent: Sent) -> None:
        if self._former is not None:
            return
        found = [kept for kept in await self._shelf.all() if kept.key.partition("\n")[0] == self._label]
        if self._former is None:  # else another step has loaded them meanwhile
            self._former = [kept.value for kept in found]
            free = [one for one in found if (one.value.line, one.value.ledger) == (sent.line, sent.ledger)]
            self._mine = {one.value.scope: one for one in free}

    async def _write(self, sent: Sent) -> None:
        kept = self._mine.pop(sent.scope, None)
        if kept is None and len(self._mine) >= _SLOTS:
            kept = self._mine.pop(next(iter(self._mine)))
        if kept is None or not await self._shelf.change(kept, sent):
            key = f"{self._label}\n{os.urandom(6).hex()}"
            await self._shelf.add(key, sent)
            kept = Kept(key, 0, None, 0, {}, sent)
        self._mine[sent.scope] = replace(kept, version=kept.version + 1, value=sent)


_notes: WeakKeyDictionary[Attempt, dict[str, _Notes]] = WeakKeyDictionary()


async def note_lone(place: UnitCall, label: str, ledger: str, path: str, text: str) -> None:
    """Before a statement outside a transaction goes out: have it on record. A read that changes nothing needs none.

    Raises:
        StatementUnanswered: an earlier attempt may have done it, and the session of that time is gone.
    """
    if not ledger or _only_reads(text):
        return
    scope, _, number = path.rpartition("#")
    sent = Sent(ledger=ledger, line=place.line, scope=scope, number=int(number), text=text[:200])
    notes = _notes.setdefault(place.attempt, {})
    await notes.setdefault(label, _Notes(place.attempt, label)).begin(sent)


def _only_reads(text: str) -> bool:
    if not _READ.match(text) or _WRITES.search(text) or ";" in text.rstrip().rstrip(";"):
        return False
    return all(name.lower() in _HARMLESS for name in _CALLED.findall(text))


async def forget_lone(store: Store, task_id: str, uid: str, label: str) -> None:
    """Let the statements of a session be sent again: a person has looked."""
    shelf = _shelf(store, task_id, uid)
    for kept in await shelf.all():
        if kept.key.partition("\n")[0] == label:
            await shelf.drop(kept)


def _shelf(store: Store, task_id: str, uid: str) -> Shelf[Sent]:
    return Shelf(store, _KIND, Sent, task=(task_id, uid))
