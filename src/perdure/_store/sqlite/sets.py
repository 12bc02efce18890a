"""Carry out many starts, entries and ends by few statements.

One by one, each costs up to six statements, most of them for looking the same things up again, and with each the
interpreter's lock goes to and fro. Inside a transaction nobody else changes anything: so it is looked once whether
all attempts have their leases, and the rows of many tasks go in together. When one of the writes would be refused,
nothing is done here, and they are run one by one.

Writes of different tasks know nothing of each other, so all starts, then all entries, then all ends is an order as
good as the one they were given in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw

from perdure._model import GENESIS, chain
from perdure._store.contract import Params, Row
from perdure._store.sql import Queries
from perdure._store.sqlite.plan import Plan
from perdure._store.write import Write

START, APPEND, END = "start_function", "append_entry", "complete_function"
_ANSWERS = {START: "uid", APPEND: "position", END: "uid"}
# From this many on it is worth it; and never more at once, as the transaction's time is looked at in between.
FEW, _MOST = 4, 512
_AT_ONCE = (64, 16, 4, 1)
_ROW = re.compile(r"(.*\bVALUES\s*)(\([^()]*(?:\([^()]*\)[^()]*)*\))(.*)", re.DOTALL)
_NAME = re.compile(r":(\w+)")

_STATEMENTS = Queries(Path(__file__).parent / "statements")


def stretch(writes: Sequence[Write], place: int) -> Sequence[Write]:
    """The writes of these verbs that follow one another from here."""
    end, limit = place, min(len(writes), place + _MOST)
    while end < limit and writes[end].verb in _ANSWERS:
        end += 1
    return writes[place:end]


def are_few_entries(writes: Sequence[Write]) -> bool:
    """Whether they are what a chain of effects waits for, again and again."""
    return len(writes) < FEW and all(write.verb == APPEND for write in writes)


def append_few(cursor: apsw.Cursor, writes: Sequence[Write]) -> list[Row | None] | None:
    """Append them by one statement that is its own transaction; None, with nothing done, when one may be refused."""
    text, values_of = _widened(_STATEMENTS["append_surely"][0], len(writes))
    values: list[Any] = []
    for write in writes:
        values += values_of(write.params)
    try:
        cursor.execute(text, values)
    except apsw.ConstraintError:
        return None
    return [(write.params["position"],) for write in writes]


def carry_out(cursor: apsw.Cursor, writes: Sequence[Write], starting: Plan) -> list[Row] | None:
    """Do them all, and give their answers; None, with nothing done, when one of them may be refused.

    Of nothing but entries, which go in as they were given, the first may be done and the others not.
    """
    if {write.verb for write in writes} == {APPEND}:
        return _append(cursor, [write.params for write in writes])
    given: dict[str, list[Params]] = {START: [], APPEND: [], END: []}
    last: dict[str, None] = {}  # tasks after whose start or end nothing may follow here
    for write in writes:
        params = write.params
        if params["uid"] in last:
            return None
        if write.verb != APPEND:
            last[params["uid"]] = None
        given[write.verb].append(params)
    entries, ends = given[APPEND], given[END]
    if not _are_held(cursor, [*entries, *ends]) or (heads := _heads(cursor, ends)) is None:
        return None
    cursor.execute("SAVEPOINT together")
    try:
        _start(cursor, given[START], starting)
        _run(cursor, _STATEMENTS["append_entries"][0], entries)
        _end(cursor, ends, heads)
    except apsw.ConstraintError:  # an id that is in use, a position that is taken
        cursor.execute("ROLLBACK TO together")
        return None
    finally:
        cursor.execute("RELEASE together")
    return [(write.params[_ANSWERS[write.verb]],) for write in writes]


def _append(cursor: apsw.Cursor, entries: Sequence[Params]) -> list[Row] | None:
    if not _are_held(cursor, entries):
        return None
    done = 0
    for piece in _pieces(len(entries)):
        try:
            _run(cursor, _STATEMENTS["append_entries"][0], entries[done : done + piece])
        except apsw.ConstraintError:  # a position that is taken; of its piece nothing is in
            break
        done += piece
    return [(params["position"],) for params in entries[:done]]


# ── looking ──────────────────────────────────────────────────────────────────────────────────────


def _are_held(cursor: apsw.Cursor, written: Sequence[Params]) -> bool:
    """Whether each task is written for by one attempt, the one that has its lease."""
    fences: dict[Any, tuple[Any, Any]] = {}
    for params in written:
        fence = params["epoch"], params["worker"]
        if fences.setdefault(params["uid"], fence) != fence:
            return False
    held = cursor.execute(_STATEMENTS["read_leases"][0], (json.dumps(list(fences)),)) if fences else ()
    return fences == {uid: (epoch, worker) for uid, epoch, worker in held}


def _heads(cursor: apsw.Cursor, ends: Sequence[Params]) -> dict[Any, Any] | None:
    """Of each task how many events it has, and the newest one's hash; None when one of them is not at work."""
    if not ends:
        return {}
    uids = json.dumps([params["uid"] for params in ends])
    found = {uid: (count, head) for uid, count, head in cursor.execute(_STATEMENTS["read_heads"][0], (uids,))}
    return found if len(found) == len(ends) else None


# ── writing ──────────────────────────────────────────────────────────────────────────────────────


def _start(cursor: apsw.Cursor, starts: Sequence[Params], plan: Plan) -> None:
    rows = [{**params, "head": chain(GENESIS, params["digest"])} for params in starts]
    for needed, statement in (("", plan.first), *plan.others) if rows else ():
        _run(cursor, statement, [row for row in rows if row[needed] is not None] if needed else rows)


def _end(cursor: apsw.Cursor, ends: Sequence[Params], heads: dict[Any, Any]) -> None:
    if not ends:
        return
    rows = []
    for params in ends:
        count, head = heads[params["uid"]]
        rows.append({**params, "number": count + 1, "head": chain(head, params["digest"])})
    tasks, leases, attempts, events = _STATEMENTS["complete_functions"]
    uids = (json.dumps([params["uid"] for params in ends]),)
    _run(cursor, tasks, rows)
    cursor.execute(leases, uids)
    cursor.execute(attempts, uids)
    _run(cursor, events, rows)


def _run(cursor: apsw.Cursor, statement: str, rows: Sequence[Params]) -> None:
    """Run a statement that takes one row of VALUES for all of these."""
    done = 0
    for piece in _pieces(len(rows)):
        text, values_of = _widened(statement, piece)
        values: list[Any] = []
        for row in rows[done : done + piece]:
            values += values_of(row)
        cursor.execute(text, values)
        done += piece


def _pieces(many: int) -> Iterator[int]:
    """So many rows as few statements take them: each size is prepared once, and kept."""
    for size in _AT_ONCE:
        for _ in range(many // size):
            yield size
        many %= size


@cache
def _widened(statement: str, many: int) -> tuple[str, Callable[[Params], tuple[Any, ...]]]:
    """The statement with so many rows in place of its one, and what a row is made of. A conflict is an error here."""
    found = _ROW.fullmatch(statement)
    assert found is not None, statement
    head, row, tail = found.groups()
    return head + ",".join([_NAME.sub("?", row)] * many) + tail.replace("ON CONFLICT DO NOTHING", ""), itemgetter(
        *_NAME.findall(row)
    )
